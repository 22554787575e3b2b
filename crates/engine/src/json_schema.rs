//! Compiles JSON schemas and describes violations, for the arguments of tools and for answers. A `$ref` never fetches
//! anything.

use serde_json::Value;
use std::collections::HashMap;

/// The maximum number of schemas after each reference is replaced by its target. A validator visits all of them, and
/// nested references multiply exponentially.
const MAX_NODES: u64 = 50_000;

/// The maximum number of problems in one error message.
const MAX_PROBLEMS: usize = 5;

/// Compiles a schema. The error gives the location in the schema.
pub(crate) fn compile(schema: &Value) -> Result<jsonschema::Validator, String> {
    if UnfoldedSize::of(schema) > MAX_NODES {
        return Err(format!(
            "its references expand to more than {MAX_NODES} schemas"
        ));
    }
    jsonschema::validator_for(schema).map_err(|error| describe(&error))
}

/// Validates a value. The error names up to five locations that are missing or wrong.
pub(crate) fn check(validator: &jsonschema::Validator, value: &Value) -> Result<(), String> {
    if validator.is_valid(value) {
        return Ok(());
    }
    let problems: Vec<String> = validator
        .iter_errors(value)
        .take(MAX_PROBLEMS)
        .map(|error| describe(&error))
        .collect();
    Err(problems.join("; "))
}

fn describe(error: &jsonschema::ValidationError<'_>) -> String {
    let location = error.instance_path().to_string();
    // A wrong value may be as long as a file, so only its beginning is included.
    let text: String = error.to_string().chars().take(200).collect();
    if location.is_empty() {
        text
    } else {
        format!("at `{location}`: {text}")
    }
}

/// Counts the values of a schema with all references expanded.
struct UnfoldedSize<'a> {
    root: &'a Value,
    /// Schemas by `$id`, `$anchor` and `$dynamicAnchor`.
    named: HashMap<&'a str, &'a Value>,
    /// Sizes of the targets of references, by address. A reference to a target that is still being counted is
    /// recursive and counts as 1, because the depth of the validated value limits how often it is followed.
    sizes: HashMap<*const Value, u64>,
}

impl<'a> UnfoldedSize<'a> {
    fn of(root: &'a Value) -> u64 {
        let mut named = HashMap::new();
        add_names(root, &mut named);
        let sizes = HashMap::new();
        Self { root, named, sizes }.count(root)
    }

    fn count(&mut self, value: &'a Value) -> u64 {
        match value {
            Value::Object(fields) => {
                let mut size = 1_u64;
                for (name, value) in fields {
                    size = size.saturating_add(match (name.as_str(), value) {
                        ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                            self.count_reference(reference)
                        }
                        _ => self.count(value),
                    });
                }
                size
            }
            Value::Array(items) => items
                .iter()
                .fold(1, |size, item| size.saturating_add(self.count(item))),
            _ => 0,
        }
    }

    fn count_reference(&mut self, reference: &'a str) -> u64 {
        let Some(target) = self.resolve(reference) else {
            return 1;
        };
        let address = std::ptr::from_ref(target);
        if let Some(size) = self.sizes.get(&address) {
            return *size;
        }
        self.sizes.insert(address, 1);
        let size = self.count(target);
        self.sizes.insert(address, size);
        size
    }

    fn resolve(&self, reference: &str) -> Option<&'a Value> {
        let (base, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let document = match base {
            "" => self.root,
            id => self.named.get(id)?,
        };
        match fragment {
            "" => Some(document),
            pointer if pointer.starts_with('/') => {
                document.pointer(&pointer.replace("%25", "%").replace("%24", "$"))
            }
            anchor => self.named.get(anchor).copied(),
        }
    }
}

fn add_names<'a>(value: &'a Value, named: &mut HashMap<&'a str, &'a Value>) {
    match value {
        Value::Object(fields) => {
            for name in ["$id", "id", "$anchor", "$dynamicAnchor"] {
                if let Some(name) = fields.get(name).and_then(Value::as_str) {
                    named.insert(name.trim_end_matches('#'), value);
                }
            }
            fields.values().for_each(|value| add_names(value, named));
        }
        Value::Array(items) => items.iter().for_each(|item| add_names(item, named)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::{check, compile};
    use serde_json::{Value, json};

    #[test]
    fn a_schema_whose_references_multiply_is_rejected() {
        let mut definitions = serde_json::Map::new();
        for at in 0..20 {
            let next = json!({ "$ref": format!("#/$defs/a{}", at + 1) });
            let all: Vec<Value> = vec![next; 4];
            definitions.insert(format!("a{at}"), json!({ "allOf": all }));
        }
        definitions.insert("a20".to_owned(), json!({ "type": "object" }));
        let schema = json!({ "$ref": "#/$defs/a0", "$defs": definitions });
        let error = compile(&schema).unwrap_err();
        assert!(
            error.contains("its references expand to more than"),
            "{error}"
        );
    }

    #[test]
    fn a_recursive_schema_is_accepted() {
        let tree = json!({
            "$ref": "#/$defs/node",
            "$defs": { "node": { "type": "object", "properties": {
                "left": { "$ref": "#/$defs/node" }, "right": { "$ref": "#/$defs/node" },
            } } },
        });
        let validator = compile(&tree).unwrap();
        assert!(check(&validator, &json!({ "left": { "right": {} } })).is_ok());
        assert!(check(&validator, &json!({ "left": 1 })).is_err());
    }
}
