//! What OpenAI's Responses refuse.

use super::{ensure, list, plain, text};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The first rule that a request breaks.
pub(super) fn broken_by(body: &Value) -> Result<(), String> {
    ensure(body["store"] == false, || {
        "items of a response that was not stored cannot be found".to_owned()
    })?;
    let tools = body["tools"].as_array().into_iter().flatten();
    for tool in tools {
        ensure(tool["strict"].is_boolean(), || {
            "a function without `strict` is made strict".to_owned()
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
                ensure(open.insert(id), || format!("two calls are called `{id}`"))?;
                plain(text(&item["name"]))?;
                let arguments = text(&item["arguments"]);
                let parsed = serde_json::from_str::<Map<String, Value>>(arguments);
                ensure(parsed.is_ok(), || {
                    format!("arguments that are no object: {arguments}")
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
    ids_with_their_reasoning(items)
}

fn message(item: &Value) -> Result<(), String> {
    let wanted: &[&str] = match text(&item["role"]) {
        "assistant" => &["output_text", "refusal"],
        "user" => &["input_text", "input_image"],
        role => return Err(format!("a message of `{role}`")),
    };
    for part in list(&item["content"])? {
        let kind = text(&part["type"]);
        ensure(wanted.contains(&kind), || format!("a part `{kind}`"))?;
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

/// An item of the script's that followed reasoning (`…_r` at the end of its id) must not come alone.
fn ids_with_their_reasoning(items: &[Value]) -> Result<(), String> {
    for (at, item) in items.iter().enumerate() {
        let id = text(&item["id"]);
        let is_led = at > 0 && items[at - 1]["type"] != "function_call_output";
        let is_led = is_led && items[..at].iter().any(|item| item["type"] == "reasoning");
        ensure(!id.ends_with("_r") || is_led, || {
            format!("`{id}` was provided without its required `reasoning` item")
        })?;
    }
    Ok(())
}
