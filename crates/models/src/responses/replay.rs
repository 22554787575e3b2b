//! Replays the items of an earlier reply to the model that sent them. The API links them: a reasoning item must be
//! followed by the item it led to, and that item must not come without its reasoning.

use super::request::call_id;
use crate::names::Names;
use crate::wire::valid_arguments;
use lango_core::Call;
use serde_json::Value;

/// Returns the items to store for the next request, in order; `None` if the reply's text and calls contain everything.
pub(super) fn items_to_replay(mut items: Vec<Value>) -> Option<Vec<Value>> {
    if items.iter().any(is_lost_reasoning) {
        items.retain(|item| !is_lost_reasoning(item));
        // With its id, the API would require an item's reasoning.
        for item in items.iter_mut().filter_map(Value::as_object_mut) {
            item.remove("id");
        }
    }
    while items.last().is_some_and(is_reasoning) {
        items.pop();
    }
    (!is_plain(&items)).then_some(items)
}

/// Returns the items exactly as the provider sent them, except for the calls' ids and names, which come from the log.
/// `None` if the calls are not those of the log.
pub(super) fn as_received(own: &Value, calls: &[Call], names: &Names) -> Option<Vec<Value>> {
    let mut items = own.as_array()?.clone();
    let mut calls = calls.iter();
    for item in items.iter_mut().filter(|item| is_call(item)) {
        let call = calls.next()?;
        item["call_id"] = Value::from(call_id(&call.id));
        item["name"] = Value::from(names.sent(&call.name));
        item["arguments"] = Value::from(valid_arguments(&call.arguments));
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

/// Returns whether the item is reasoning without any content, so that it cannot be sent back. The content is encrypted,
/// or, from open models, plain in `content`.
fn is_lost_reasoning(item: &Value) -> bool {
    let is_encrypted = item["encrypted_content"]
        .as_str()
        .is_some_and(|content| !content.is_empty());
    let is_shown = item["content"]
        .as_array()
        .is_some_and(|content| !content.is_empty());
    is_reasoning(item) && !is_encrypted && !is_shown
}

/// Returns whether the items are at most one text message, followed only by calls.
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
