//! What providers require of the JSON schemas for structured answers.

use serde_json::Value;

/// Returns whether OpenAI's strict mode can enforce a schema: every object is closed and requires all its properties.
pub(crate) fn is_strict(schema: &Value) -> bool {
    match schema {
        Value::Array(items) => items.iter().all(is_strict),
        Value::Object(fields) => {
            let is_object = schema["type"] == "object" || fields.contains_key("properties");
            (!is_object || is_closed(schema)) && fields.values().all(is_strict)
        }
        _ => true,
    }
}

fn is_closed(object: &Value) -> bool {
    let required = object["required"].as_array();
    let is_required = |name: &String| {
        required.is_some_and(|required| required.iter().any(|entry| entry == name.as_str()))
    };
    let properties = object["properties"].as_object();
    let mut names = properties
        .into_iter()
        .flat_map(|properties| properties.keys());
    object["additionalProperties"] == false && names.all(is_required)
}

#[cfg(test)]
mod tests {
    use super::is_strict;
    use serde_json::json;

    #[test]
    fn a_schema_is_strict_only_if_every_object_in_it_is_closed() {
        let inner = json!({ "type": "object", "properties": { "a": {} }, "required": ["a"], "additionalProperties": false });
        assert!(is_strict(&inner));
        let open = json!({ "type": "object", "properties": { "a": {} }, "required": ["a"] });
        assert!(!is_strict(&open));
        let optional =
            json!({ "type": "object", "properties": { "a": {} }, "additionalProperties": false });
        assert!(!is_strict(&optional));
        assert!(!is_strict(&json!({ "type": "array", "items": open })));
        assert!(is_strict(&json!({ "type": "array", "items": inner })));
    }
}
