//! The identity of a message, to recognise duplicates: its id and its parts.
//!
//! The protocol lets a server use a message's id to recognise a duplicate. If a client reuses an id with different
//! parts, by mistake or by chance, the answer must not be the task of the earlier message. So the server treats it as a
//! different message.

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
    pub(super) fn of(message: &Message) -> Self {
        let mut hasher = Sha256::new();
        // Cannot fail, because all parts were parsed from JSON.
        let parts = serde_json::to_value(&message.parts).unwrap_or_default();
        hash_value(&mut hasher, &parts);
        Self {
            id: message.message_id.clone(),
            parts: hasher.finalize().into(),
        }
    }
}

/// Returns the idempotency key of a message that opens a task: a digest of the message and its context. All replicas
/// compute the same key.
pub(super) fn idempotency_key(message: &Message) -> String {
    let identity = MessageIdentity::of(message);
    let mut hasher = Sha256::new();
    match &message.context_id {
        Some(context) => hasher.update(format!("{} {context}", context.len())),
        None => hasher.update("-"),
    }
    hasher.update(format!("{} {}", identity.id.len(), identity.id));
    hasher.update(identity.parts);
    base16ct::lower::encode_string(&hasher.finalize())
}

/// Returns the SHA-256 digest of a text in hexadecimal.
pub(super) fn digest(text: &str) -> String {
    base16ct::lower::encode_string(&Sha256::digest(text))
}

/// Derives the id of an agent message, in the form of a UUID, from values that are unique to the message: the task, its
/// revision, and the number and time of the message. So the task needs no source of randomness.
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

/// Hashes a value. The fields of objects are sorted by name, so their order does not matter.
fn hash_value(hasher: &mut Sha256, value: &Value) {
    match value {
        Value::Array(values) => {
            hasher.update(format!("[{} ", values.len()));
            values.iter().for_each(|value| hash_value(hasher, value));
        }
        Value::Object(fields) => {
            hasher.update(format!("{{{} ", fields.len()));
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| name.as_str());
            for (name, value) in fields {
                hasher.update(format!("{} {name}", name.len()));
                hash_value(hasher, value);
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
    fn the_order_of_fields_does_not_change_the_identity_of_a_message() {
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
    fn messages_with_different_ids_or_parts_have_different_identities() {
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
