//! What makes a message the same as one that came before: its id and what it says.
//!
//! The protocol lets a server use a message's id to recognise a duplicate. A duplicate says the same; the same id over other
//! words is a client's mistake or bad luck, and to answer it with the task of the earlier message would pass something
//! else off as done. So it counts as a message of its own.

use a2a::Message;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// A message's id and a digest of its parts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Said {
    id: String,
    parts: [u8; 32],
}

impl Said {
    pub fn of(message: &Message) -> Self {
        let mut hasher = Sha256::new();
        // What cannot be written as JSON has not come as JSON.
        let parts = serde_json::to_value(&message.parts).unwrap_or_default();
        feed(&mut hasher, &parts);
        Self {
            id: message.message_id.clone(),
            parts: hasher.finalize().into(),
        }
    }
}

/// What a message that opens a task is recognised by, over all copies and restarts: the message, and the context it names.
pub(super) fn mark(message: &Message) -> String {
    let said = Said::of(message);
    let mut hasher = Sha256::new();
    match &message.context_id {
        Some(context) => hasher.update(format!("{} {context}", context.len())),
        None => hasher.update("-"),
    }
    hasher.update(format!("{} {}", said.id.len(), said.id));
    hasher.update(said.parts);
    let mut mark = String::with_capacity(64);
    for byte in hasher.finalize() {
        let _ = write!(mark, "{byte:02x}");
    }
    mark
}

/// The fields of an object count in the order of their names, however they came.
fn feed(hasher: &mut Sha256, value: &Value) {
    match value {
        Value::Array(values) => {
            hasher.update(format!("[{} ", values.len()));
            values.iter().for_each(|value| feed(hasher, value));
        }
        Value::Object(fields) => {
            hasher.update(format!("{{{} ", fields.len()));
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| name.as_str());
            for (name, value) in fields {
                hasher.update(format!("{} {name}", name.len()));
                feed(hasher, value);
            }
        }
        Value::String(text) => hasher.update(format!("\"{} {text}", text.len())),
        Value::Null | Value::Bool(_) | Value::Number(_) => hasher.update(format!("{value} ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn said(id: &str, parts: Value) -> Said {
        let message = json!({ "messageId": id, "role": "ROLE_USER", "parts": parts });
        Said::of(&serde_json::from_value(message).unwrap())
    }

    #[test]
    fn the_same_id_with_the_same_parts_is_the_same_whatever_the_order_of_their_fields() {
        let one =
            json!([{ "data": { "a": 1, "b": [2, "x"] }, "metadata": { "p": 1, "q": 2, "r": 3 } }]);
        let other =
            json!([{ "metadata": { "r": 3, "q": 2, "p": 1 }, "data": { "b": [2, "x"], "a": 1 } }]);
        for _ in 0..20 {
            assert_eq!(said("m", one.clone()), said("m", other.clone()));
        }
    }

    #[test]
    fn a_mark_is_of_the_message_and_of_the_context_it_names() {
        let marked = |context: Option<&str>, id: &str, text: &str| {
            let parts = json!([{ "text": text }]);
            let message = json!({ "messageId": id, "role": "ROLE_USER", "parts": parts });
            let mut message: Message = serde_json::from_value(message).unwrap();
            message.context_id = context.map(str::to_owned);
            mark(&message)
        };
        let one = marked(None, "m", "one");
        assert_eq!(one, marked(None, "m", "one"));
        for other in [
            marked(Some(""), "m", "one"),
            marked(Some("c"), "m", "one"),
            marked(None, "n", "one"),
            marked(None, "m", "two"),
        ] {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn another_id_or_other_parts_are_another_message() {
        let all = [
            said("m", json!([{ "text": "one" }])),
            said("n", json!([{ "text": "one" }])),
            said("m", json!([{ "text": "two" }])),
            said("m", json!([{ "text": "on" }, { "text": "e" }])),
            said(
                "m",
                json!([{ "text": "one", "mediaType": "text/markdown" }]),
            ),
            said("m", json!([{ "data": "one" }])),
            said("m", json!([{ "data": { "a": 1 } }])),
            said("m", json!([{ "data": { "a": "1" } }])),
        ];
        for (at, one) in all.iter().enumerate() {
            for other in &all[at + 1..] {
                assert_ne!(one, other);
            }
        }
    }
}
