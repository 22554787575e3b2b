//! What makes a message the same as an earlier one: its id and its parts.
//!
//! The protocol lets a server use a message's id to recognise a duplicate. The same id with other parts is a client's mistake
//! or bad luck, and to answer it with the task of the earlier message would claim that something else was done. So it is a
//! message of its own.

use a2a::Message;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// A message's id and a digest of its parts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct MessageIdentity {
    id: String,
    parts: [u8; 32],
}

impl MessageIdentity {
    pub fn of(message: &Message) -> Self {
        let mut hasher = Sha256::new();
        // All parts were read from JSON.
        let parts = serde_json::to_value(&message.parts).unwrap_or_default();
        feed(&mut hasher, &parts);
        Self {
            id: message.message_id.clone(),
            parts: hasher.finalize().into(),
        }
    }
}

/// Returns the key by which replicas recognise a message that opens a task: a digest of the message and its context.
pub(super) fn idempotency_key(message: &Message) -> String {
    let identity = MessageIdentity::of(message);
    let mut hasher = Sha256::new();
    match &message.context_id {
        Some(context) => hasher.update(format!("{} {context}", context.len())),
        None => hasher.update("-"),
    }
    hasher.update(format!("{} {}", identity.id.len(), identity.id));
    hasher.update(identity.parts);
    hex(&hasher.finalize())
}

/// Returns the SHA-256 of a text in hexadecimal.
pub(super) fn digest(text: &str) -> String {
    hex(&Sha256::digest(text))
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Returns the id of a message of the agent, in the form of a UUID. It is derived from what is unique to the message (the
/// task, its revision, the count and time of the message), so that the task needs no source of randomness.
pub(super) fn agent_message_id(task: &str, numbers: [u64; 3]) -> String {
    let mut hasher = Sha256::new();
    hasher.update(format!("{} {task}", task.len()));
    for number in numbers {
        hasher.update(number.to_be_bytes());
    }
    let digest = hasher.finalize();
    let mut id = String::with_capacity(36);
    for (at, byte) in digest[..16].iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            id.push('-');
        }
        // Version 8: a UUID whose content the application defines.
        let byte = match at {
            6 => byte & 0x0f | 0x80,
            8 => byte & 0x3f | 0x80,
            _ => *byte,
        };
        let _ = write!(id, "{byte:02x}");
    }
    id
}

/// Hashes a value with the fields of objects in the order of their names.
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

    fn identity(id: &str, parts: Value) -> MessageIdentity {
        let message = json!({ "messageId": id, "role": "ROLE_USER", "parts": parts });
        MessageIdentity::of(&serde_json::from_value(message).unwrap())
    }

    #[test]
    fn the_same_id_with_the_same_parts_is_the_same_whatever_the_order_of_their_fields() {
        let one =
            json!([{ "data": { "a": 1, "b": [2, "x"] }, "metadata": { "p": 1, "q": 2, "r": 3 } }]);
        let other =
            json!([{ "metadata": { "r": 3, "q": 2, "p": 1 }, "data": { "b": [2, "x"], "a": 1 } }]);
        for _ in 0..20 {
            assert_eq!(identity("m", one.clone()), identity("m", other.clone()));
        }
    }

    #[test]
    fn a_key_depends_on_the_message_and_on_the_context_it_names() {
        let key = |context: Option<&str>, id: &str, text: &str| {
            let parts = json!([{ "text": text }]);
            let message = json!({ "messageId": id, "role": "ROLE_USER", "parts": parts });
            let mut message: Message = serde_json::from_value(message).unwrap();
            message.context_id = context.map(str::to_owned);
            idempotency_key(&message)
        };
        let one = key(None, "m", "one");
        assert_eq!(one, key(None, "m", "one"));
        for other in [
            key(Some(""), "m", "one"),
            key(Some("c"), "m", "one"),
            key(None, "n", "one"),
            key(None, "m", "two"),
        ] {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn another_id_or_other_parts_are_another_message() {
        let all = [
            identity("m", json!([{ "text": "one" }])),
            identity("n", json!([{ "text": "one" }])),
            identity("m", json!([{ "text": "two" }])),
            identity("m", json!([{ "text": "on" }, { "text": "e" }])),
            identity(
                "m",
                json!([{ "text": "one", "mediaType": "text/markdown" }]),
            ),
            identity("m", json!([{ "data": "one" }])),
            identity("m", json!([{ "data": { "a": 1 } }])),
            identity("m", json!([{ "data": { "a": "1" } }])),
        ];
        for (at, one) in all.iter().enumerate() {
            for other in &all[at + 1..] {
                assert_ne!(one, other);
            }
        }
    }
}
