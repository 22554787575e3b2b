//! Items of a reply that go back to the model that sent them. The API ties them together: a reasoning item must be followed
//! by what it led to, and what it led to must not come without it.

use super::request::call_id;
use crate::names::Names;
use crate::wire::whole_arguments;
use lango_core::Call;
use serde_json::Value;

/// The items to keep for the next request, in their order; none if the text and the calls say everything.
pub(super) fn items_to_keep(mut items: Vec<Value>) -> Option<Vec<Value>> {
    if items.iter().any(is_lost_reasoning) {
        items.retain(|item| !is_lost_reasoning(item));
        // Under its id the API would ask for the reasoning that belongs to an item.
        for item in items.iter_mut().filter_map(Value::as_object_mut) {
            item.remove("id");
        }
    }
    while items.last().is_some_and(is_reasoning) {
        items.pop();
    }
    (!is_plain(&items)).then_some(items)
}

/// The items exactly as the provider sent them, with the ids and names that the log has for the calls. None if these are
/// not the calls of the log.
pub(super) fn as_received(own: &Value, calls: &[Call], names: &Names) -> Option<Vec<Value>> {
    let mut items = own.as_array()?.clone();
    let mut calls = calls.iter();
    for item in items.iter_mut().filter(|item| is_call(item)) {
        let call = calls.next()?;
        item["call_id"] = Value::from(call_id(&call.id));
        item["name"] = Value::from(names.sent(&call.name));
        item["arguments"] = Value::from(whole_arguments(&call.arguments));
    }
    calls.next().is_none().then_some(items)
}

pub(super) fn is_call(item: &Value) -> bool {
    item["type"] == "function_call"
}

pub(super) fn is_message(item: &Value) -> bool {
    item["type"] == "message"
}

fn is_reasoning(item: &Value) -> bool {
    item["type"] == "reasoning"
}

/// Reasoning of which only the id is left, and that stands for something that was not stored. Open models show theirs in
/// `content`, which can go back.
fn is_lost_reasoning(item: &Value) -> bool {
    let is_encrypted = item["encrypted_content"]
        .as_str()
        .is_some_and(|content| !content.is_empty());
    let is_shown = item["content"]
        .as_array()
        .is_some_and(|content| !content.is_empty());
    is_reasoning(item) && !is_encrypted && !is_shown
}

/// One message of text at most, and calls after it.
fn is_plain(items: &[Value]) -> bool {
    let is_text = |part: &Value| part["type"] == "output_text";
    let is_plain_message = |item: &Value| {
        let content = item["content"].as_array();
        is_message(item)
            && item["phase"].is_null()
            && content.is_none_or(|content| content.iter().all(is_text))
    };
    let calls = match items {
        [first, rest @ ..] if is_plain_message(first) => rest,
        items => items,
    };
    calls.iter().all(is_call)
}
