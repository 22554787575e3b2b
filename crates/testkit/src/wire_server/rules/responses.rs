//! The rules of OpenAI's Responses API.

use super::{check_name, ensure, list, text};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Checks a request. The error describes the first rule that it breaks.
pub(super) fn check(body: &Value) -> Result<(), String> {
    ensure(body["store"] == false, || {
        "items of a response that was not stored cannot be found".to_owned()
    })?;
    let tools = body["tools"].as_array().into_iter().flatten();
    for tool in tools {
        ensure(tool["strict"].is_boolean(), || {
            "a function must set `strict`, because the default is strict".to_owned()
        })?;
    }
    let items = list(&body["input"])?;
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for (at, item) in items.iter().enumerate() {
        match text(&item["type"]) {
            "message" => message(item)?,
            "function_call" => {
                let id = text(&item["call_id"]);
                ensure((1..=64).contains(&id.chars().count()), || {
                    format!("the id `{id}` is too short or too long")
                })?;
                ensure(open.insert(id), || format!("two calls have the id `{id}`"))?;
                check_name(text(&item["name"]))?;
                let arguments = text(&item["arguments"]);
                let parsed = serde_json::from_str::<Map<String, Value>>(arguments);
                ensure(parsed.is_ok(), || {
                    format!("arguments are not an object: {arguments}")
                })?;
            }
            "function_call_output" => {
                let id = text(&item["call_id"]);
                ensure(open.remove(id), || {
                    format!("`{id}` answers no call before it")
                })?;
                ensure(!item["output"].is_null(), || "no output".to_owned())?;
            }
            "reasoning" => reasoning(item, items.get(at + 1))?,
            _ => {}
        }
        let is_of_user = item["role"] == "user";
        ensure(!is_of_user || open.is_empty(), || {
            format!("no tool output found for {open:?}")
        })?;
    }
    ensure(open.is_empty(), || {
        format!("no tool output found for {open:?}")
    })?;
    check_reasoning_precedes(items)
}

fn message(item: &Value) -> Result<(), String> {
    let allowed: &[&str] = match text(&item["role"]) {
        "assistant" => &["output_text", "refusal"],
        "user" => &["input_text", "input_image"],
        role => return Err(format!("a message must not have the role `{role}`")),
    };
    // Only messages without an id may have a string as content.
    if item["content"].is_string() && item["id"].is_null() {
        return Ok(());
    }
    for part in list(&item["content"])? {
        let kind = text(&part["type"]);
        ensure(allowed.contains(&kind), || {
            format!("a part must not have the type `{kind}`")
        })?;
    }
    Ok(())
}

fn reasoning(item: &Value, next: Option<&Value>) -> Result<(), String> {
    let id = text(&item["id"]);
    ensure(item["summary"].is_array(), || {
        format!("`{id}` has no summary")
    })?;
    ensure(
        item["encrypted_content"].is_string() || item["content"].is_array(),
        || format!("item `{id}` was not found"),
    )?;
    let is_followed = next.is_some_and(|next| {
        !matches!(text(&next["type"]), "function_call_output") && next["role"] != "user"
    });
    ensure(is_followed, || {
        format!("`{id}` of type `reasoning` was provided without its required following item")
    })
}

/// Checks that scripted items that followed reasoning (ids ending in `_r`) are sent after their reasoning item.
fn check_reasoning_precedes(items: &[Value]) -> Result<(), String> {
    for (at, item) in items.iter().enumerate() {
        let id = text(&item["id"]);
        let is_preceded = at > 0 && items[at - 1]["type"] != "function_call_output";
        let is_preceded = is_preceded && items[..at].iter().any(|item| item["type"] == "reasoning");
        ensure(!id.ends_with("_r") || is_preceded, || {
            format!("`{id}` was provided without its required `reasoning` item")
        })?;
    }
    Ok(())
}
