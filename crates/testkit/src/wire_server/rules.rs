//! The rules by which the real providers refuse a request with status 400. The fake provider checks every request
//! against them, so that every test that sends a request also tests its format.

mod responses;

use super::request::{Dialect, RecordedRequest};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Checks a request. The error describes the first rule that it breaks.
pub(super) fn check(request: &RecordedRequest) -> Result<(), String> {
    if request.method != "POST" {
        return Ok(());
    }
    if let Some(texts) = request.texts_to_embed() {
        return check_embedding(request, &texts);
    }
    for name in request.declared() {
        check_name(&name)?;
    }
    let mut seen = BTreeSet::new();
    if let Some(repeated) = request
        .declared()
        .into_iter()
        .find(|name| !seen.insert(name.clone()))
    {
        return Err(format!("function `{repeated}` is declared twice"));
    }
    match request.dialect() {
        Dialect::OpenAi => openai(list(&request.body["messages"])?),
        Dialect::Responses => responses::check(&request.body),
        Dialect::Anthropic => anthropic(&request.body, list(&request.body["messages"])?),
        Dialect::Gemini => gemini(list(&request.body["contents"])?),
    }
}

fn check_embedding(request: &RecordedRequest, texts: &[String]) -> Result<(), String> {
    ensure(!texts.is_empty(), || "nothing to embed".to_owned())?;
    ensure(texts.len() <= 100, || "more than 100 texts".to_owned())?;
    let is_blank = |text: &String| text.trim().is_empty();
    ensure(!texts.iter().any(is_blank), || "an empty text".to_owned())?;
    let is_named = |body: &Value| body["model"].is_string();
    let requests = match request.dialect() {
        Dialect::Gemini => list(&request.body["requests"])?,
        _ => std::slice::from_ref(&request.body),
    };
    ensure(requests.iter().all(is_named), || {
        "model: required".to_owned()
    })
}

fn openai(messages: &[Value]) -> Result<(), String> {
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for message in messages {
        let role = text(&message["role"]);
        if role == "tool" {
            let id = text(&message["tool_call_id"]);
            ensure(open.remove(id), || {
                format!("`{id}` answers no call before it")
            })?;
            continue;
        }
        ensure(open.is_empty(), || {
            format!("calls without results: {open:?}")
        })?;
        let calls = message["tool_calls"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        if role != "assistant" || calls.is_empty() {
            let content = &message["content"];
            let is_part = |part: &Value| match text(&part["type"]) {
                "text" => part["text"].is_string(),
                "image_url" => text(&part["image_url"]["url"]).starts_with("data:image/"),
                _ => false,
            };
            let has_parts = || {
                let parts = content.as_array().filter(|parts| !parts.is_empty());
                role == "user" && parts.is_some_and(|parts| parts.iter().all(is_part))
            };
            ensure(content.is_string() || has_parts(), || {
                "a message without content".to_owned()
            })?;
        }
        for call in calls {
            let id = text(&call["id"]);
            ensure((1..=40).contains(&id.len()), || {
                format!("the id `{id}` is too short or too long")
            })?;
            ensure(open.insert(id), || format!("two calls have the id `{id}`"))?;
            check_name(text(&call["function"]["name"]))?;
            let arguments = text(&call["function"]["arguments"]);
            let parsed = serde_json::from_str::<Map<String, Value>>(arguments);
            ensure(parsed.is_ok(), || {
                format!("arguments are not an object: {arguments}")
            })?;
        }
    }
    ensure(open.is_empty(), || {
        format!("calls without results: {open:?}")
    })
}

fn anthropic(body: &Value, messages: &[Value]) -> Result<(), String> {
    ensure(body["max_tokens"].is_u64(), || {
        "max_tokens: required".to_owned()
    })?;
    let marks = body.to_string().matches("\"cache_control\"").count();
    ensure(marks <= 4, || {
        format!("{marks} cache marks, but at most 4 are allowed")
    })?;
    let mut open: BTreeSet<&str> = BTreeSet::new();
    check_alternation(messages, ["user", "assistant"])?;
    for message in messages {
        let blocks = list(&message["content"])?;
        let results = blocks
            .iter()
            .take_while(|block| block["type"] == "tool_result");
        for result in results {
            let id = text(&result["tool_use_id"]);
            ensure(open.remove(id), || {
                format!("`{id}` answers no call before it")
            })?;
        }
        ensure(open.is_empty(), || {
            format!("calls without results: {open:?}")
        })?;
        let rest = blocks
            .iter()
            .skip_while(|block| block["type"] == "tool_result");
        for block in rest {
            match text(&block["type"]) {
                "text" => ensure(!text(&block["text"]).trim().is_empty(), || {
                    "an empty text".to_owned()
                })?,
                "tool_use" => {
                    let id = text(&block["id"]);
                    check_characters(id)?;
                    ensure(open.insert(id), || format!("two calls have the id `{id}`"))?;
                    check_name(text(&block["name"]))?;
                    ensure(block["input"].is_object(), || {
                        "input is not an object".to_owned()
                    })?;
                    ensure(body["tools"].is_array(), || {
                        "tool_use block, but no tools are declared".to_owned()
                    })?;
                }
                "tool_result" => return Err("tool results must come first".to_owned()),
                "thinking" => ensure(block["signature"].is_string(), || {
                    "thinking block without a signature".to_owned()
                })?,
                _ => {}
            }
        }
    }
    ensure(open.is_empty(), || {
        format!("calls without results: {open:?}")
    })
}

fn gemini(contents: &[Value]) -> Result<(), String> {
    check_alternation(contents, ["user", "model"])?;
    let named = |content: &Value, field: &str| -> Vec<String> {
        let parts = content["parts"].as_array().into_iter().flatten();
        parts
            .filter_map(|part| part.get(field))
            .map(|call| text(&call["name"]).to_owned())
            .collect()
    };
    let mut called = Vec::new();
    for content in contents {
        list(&content["parts"])?;
        let answered = named(content, "functionResponse");
        ensure(called == answered, || {
            format!("calls {called:?} were answered with {answered:?}")
        })?;
        called = named(content, "functionCall");
        for name in &called {
            check_name(name)?;
        }
    }
    ensure(called.is_empty(), || {
        format!("calls without results: {called:?}")
    })
}

fn check_alternation(messages: &[Value], roles: [&str; 2]) -> Result<(), String> {
    for (at, message) in messages.iter().enumerate() {
        let role = text(&message["role"]);
        ensure(role == roles[at % 2], || {
            format!("message {at} must not have the role `{role}`")
        })?;
    }
    Ok(())
}

fn list(value: &Value) -> Result<&[Value], String> {
    let list = value.as_array().filter(|list| !list.is_empty());
    list.map(Vec::as_slice)
        .ok_or_else(|| format!("expected a non-empty list: {value}"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn check_name(name: &str) -> Result<(), String> {
    let has_valid_start = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    ensure(has_valid_start && name.len() <= 64, || {
        format!("the name `{name}` is not allowed")
    })?;
    check_characters(name)
}

fn check_characters(name: &str) -> Result<(), String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    ensure(!name.is_empty() && name.chars().all(is_allowed), || {
        format!("`{name}` is empty or contains a forbidden character")
    })
}

fn ensure(is_valid: bool, error: impl FnOnce() -> String) -> Result<(), String> {
    if is_valid { Ok(()) } else { Err(error()) }
}
