//! The definition of a server's tool: the part that agents act on, and its hash.

use lango_core::Schema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// A server's definition of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolDefinition {
    pub description: String,
    /// The schema of its arguments, unchanged.
    pub schema: Schema,
    /// The hash of the description and the schema.
    pub hash: String,
}

impl ToolDefinition {
    pub(crate) fn new(description: String, schema: Value) -> Self {
        let hash = hash_of(&description, &schema);
        Self {
            description,
            schema: schema.into(),
            hash,
        }
    }

    /// Formats the definition for users: the description, then the arguments with sorted keys.
    pub fn text(&self) -> String {
        let schema = format!("{:#}", sorted(&self.schema));
        format!("{}\n\narguments: {schema}\n", self.description)
    }

    /// Returns whether the hash matches the description and the schema.
    pub(crate) fn is_intact(&self) -> bool {
        self.hash == hash_of(&self.description, &self.schema)
    }

    /// Returns the size in bytes.
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

/// Sorts the keys of every object, because a server may list them in any order.
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
    base16ct::lower::encode_string(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_hash_ignores_only_the_order_of_keys() {
        let form = |description: &str, schema: &str| {
            ToolDefinition::new(description.into(), serde_json::from_str(schema).unwrap()).hash
        };
        let one = form("d", r#"{"type":"object","properties":{"a":{},"b":{}}}"#);
        let two = form("d", r#"{"properties":{"b":{},"a":{}},"type":"object"}"#);
        assert_eq!(one, two);
        assert_ne!(
            one,
            form("e", r#"{"type":"object","properties":{"a":{},"b":{}}}"#)
        );
        assert_ne!(one, form("d", r#"{"type":"object","properties":{"a":{}}}"#));
        let array =
            |items: Value| ToolDefinition::new(String::new(), json!({ "enum": items })).hash;
        assert_ne!(array(json!(["a", "b"])), array(json!(["b", "a"])));
    }

    #[test]
    fn a_changed_definition_is_not_intact() {
        let mut definition = ToolDefinition::new("reads".into(), json!({ "type": "object" }));
        assert!(definition.is_intact());
        definition.description.push('!');
        assert!(!definition.is_intact());
    }
}
