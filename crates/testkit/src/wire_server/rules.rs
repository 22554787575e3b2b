//! What the providers refuse with status 400. The server holds requests against these rules, as the real ones do, so that
//! every test that sends one also tests its form.

mod responses;

use super::request::{Dialect, Recorded};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The first rule that a request breaks.
pub(super) fn broken_by(request: &Recorded) -> Result<(), String> {
    if request.method != "POST" {
        return Ok(());
    }
    if let Some(texts) = request.texts_to_embed() {
        return embedded(request, &texts);
    }
    for name in request.declared() {
        plain(&name)?;
    }
    let mut apart = BTreeSet::new();
    if let Some(twice) = request
        .declared()
        .into_iter()
        .find(|name| !apart.insert(name.clone()))
    {
        return Err(format!("function `{twice}` is declared twice"));
    }
    match request.dialect() {
        Dialect::OpenAi => openai(list(&request.body["messages"])?),
        Dialect::Responses => responses::broken_by(&request.body),
        Dialect::Anthropic => anthropic(&request.body, list(&request.body["messages"])?),
        Dialect::Gemini => gemini(list(&request.body["contents"])?),
    }
}

fn embedded(request: &Recorded, texts: &[String]) -> Result<(), String> {
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
            ensure(open.insert(id), || format!("two calls are called `{id}`"))?;
            plain(text(&call["function"]["name"]))?;
            let arguments = text(&call["function"]["arguments"]);
            let parsed = serde_json::from_str::<Map<String, Value>>(arguments);
            ensure(parsed.is_ok(), || {
                format!("arguments that are no object: {arguments}")
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
    ensure(marks <= 4, || format!("{marks} cache marks, of 4"))?;
    let mut open: BTreeSet<&str> = BTreeSet::new();
    take_turns(messages, ["user", "assistant"])?;
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
                    plain_characters(id)?;
                    ensure(open.insert(id), || format!("two calls are called `{id}`"))?;
                    plain(text(&block["name"]))?;
                    ensure(block["input"].is_object(), || {
                        "an input that is no object".to_owned()
                    })?;
                    ensure(body["tools"].is_array(), || {
                        "tool use without tools".to_owned()
                    })?;
                }
                "tool_result" => return Err("results come before everything else".to_owned()),
                "thinking" => ensure(block["signature"].is_string(), || {
                    "thinking without signature".to_owned()
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
    take_turns(contents, ["user", "model"])?;
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
            plain(name)?;
        }
    }
    ensure(called.is_empty(), || {
        format!("calls without results: {called:?}")
    })
}

fn take_turns(messages: &[Value], roles: [&str; 2]) -> Result<(), String> {
    for (at, message) in messages.iter().enumerate() {
        let role = text(&message["role"]);
        ensure(role == roles[at % 2], || {
            format!("message {at} is of `{role}`")
        })?;
    }
    Ok(())
}

fn list(value: &Value) -> Result<&[Value], String> {
    let list = value.as_array().filter(|list| !list.is_empty());
    list.map(Vec::as_slice)
        .ok_or_else(|| format!("an empty list, or none: {value}"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn plain(name: &str) -> Result<(), String> {
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    ensure(begins_well && name.len() <= 64, || {
        format!("the name `{name}` is not allowed")
    })?;
    plain_characters(name)
}

fn plain_characters(name: &str) -> Result<(), String> {
    let taken = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    ensure(!name.is_empty() && name.chars().all(taken), || {
        format!("`{name}` holds forbidden characters")
    })
}

fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}
