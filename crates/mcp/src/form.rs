//! What a server says of one tool: the part of it that an agent acts on, and a hash over that part.

use lango_core::Schema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// What a server says of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Form {
    /// What it does, in the server's words.
    pub description: String,
    /// The schema of its arguments, as the server gave it.
    pub schema: Schema,
    /// Stands for both.
    pub hash: String,
}

impl Form {
    pub(crate) fn new(description: String, schema: Value) -> Self {
        let hash = hash_of(&description, &schema);
        Self {
            description,
            schema: schema.into(),
            hash,
        }
    }

    /// All of it, for a person to read: the description, then the arguments with their keys in order.
    pub fn text(&self) -> String {
        let schema = format!("{:#}", sorted(&self.schema));
        format!("{}\n\narguments: {schema}\n", self.description)
    }

    /// Whether the hash stands for what is here.
    pub(crate) fn is_whole(&self) -> bool {
        self.hash == hash_of(&self.description, &self.schema)
    }

    /// How much there is of it, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.description.len() + self.schema.to_string().len()
    }
}

fn hash_of(description: &str, schema: &Value) -> String {
    let mut hash = Sha256::new();
    hash.update(description.len().to_le_bytes());
    hash.update(description);
    hash.update(sorted(schema).to_string());
    hex(&hash.finalize())
}

/// The same value with the keys of every object in order. A server may list them as it likes.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| name.as_str());
            let fields = fields
                .into_iter()
                .map(|(name, value)| (name.clone(), sorted(value)));
            Value::Object(fields.collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_order_of_keys_does_not_matter_and_everything_else_does() {
        let form = |description: &str, schema: &str| {
            Form::new(description.into(), serde_json::from_str(schema).unwrap()).hash
        };
        let one = form("d", r#"{"type":"object","properties":{"a":{},"b":{}}}"#);
        let two = form("d", r#"{"properties":{"b":{},"a":{}},"type":"object"}"#);
        assert_eq!(one, two);
        assert_ne!(
            one,
            form("e", r#"{"type":"object","properties":{"a":{},"b":{}}}"#)
        );
        assert_ne!(one, form("d", r#"{"type":"object","properties":{"a":{}}}"#));
        let array = |items: Value| Form::new(String::new(), json!({ "enum": items })).hash;
        assert_ne!(array(json!(["a", "b"])), array(json!(["b", "a"])));
    }

    #[test]
    fn a_form_that_was_tampered_with_is_not_whole() {
        let mut form = Form::new("reads".into(), json!({ "type": "object" }));
        assert!(form.is_whole());
        form.description.push('!');
        assert!(!form.is_whole());
    }
}
