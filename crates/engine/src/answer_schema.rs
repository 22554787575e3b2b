//! The JSON schema of an answer: parsing it, and validating an answer against it.
//!
//! If a turn has a schema, the root must answer with one JSON value that matches it; otherwise the turn fails. The
//! schema is stored with the turn's first event, so a resumed turn is validated in the same way.

use crate::json_schema;
use serde_json::Value;
use std::sync::{Arc, OnceLock};

/// A JSON schema that answers must match.
#[derive(Debug)]
pub struct AnswerSchema {
    value: Arc<Value>,
    /// Compiled when the first answer is validated; replaying a turn does not need it.
    validator: OnceLock<Result<jsonschema::Validator, String>>,
}

/// A text that cannot be used as an answer schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerSchemaError {
    #[error(
        "it has {bytes} bytes; a schema may have {} KiB at most",
        AnswerSchema::MAX_KIB
    )]
    TooLarge { bytes: usize },
    #[error("it is not JSON: {detail}")]
    NotJson {
        /// What is wrong, with line and column.
        detail: String,
    },
    #[error("it is not a JSON schema: {detail}")]
    NotASchema { detail: String },
}

impl AnswerSchema {
    /// The maximum size of a schema in KiB. It is part of every model request.
    pub const MAX_KIB: usize = 64;

    /// Parses and compiles a schema.
    ///
    /// # Errors
    /// The text is too long or not a JSON schema. The error names the location.
    pub fn parse(text: &str) -> Result<Self, AnswerSchemaError> {
        if text.len() > Self::MAX_KIB * 1024 {
            return Err(AnswerSchemaError::TooLarge { bytes: text.len() });
        }
        let value: Value =
            serde_json::from_str(text).map_err(|error| AnswerSchemaError::NotJson {
                detail: error.to_string(),
            })?;
        let not_a_schema = |detail| AnswerSchemaError::NotASchema { detail };
        if !value.is_object() {
            return Err(not_a_schema("it must be a JSON object".to_owned()));
        }
        let schema = Self::from(Arc::new(value));
        schema.validator().map_err(not_a_schema)?;
        Ok(schema)
    }

    pub fn value(&self) -> &Arc<Value> {
        &self.value
    }

    /// Validates an answer, which must be one JSON value and nothing else. The error gives locations as JSON pointers.
    pub(crate) fn check(&self, answer: &str) -> Result<(), String> {
        let value: Value = serde_json::from_str(answer)
            .map_err(|error| format!("it is not one JSON value: {error}"))?;
        json_schema::check(self.validator()?, &value)
    }

    fn validator(&self) -> Result<&jsonschema::Validator, String> {
        let compiled = self
            .validator
            .get_or_init(|| json_schema::compile(&self.value));
        compiled.as_ref().map_err(Clone::clone)
    }
}

impl From<Arc<Value>> for AnswerSchema {
    /// Wraps a schema that is already parsed, such as the schema of a stored turn.
    fn from(value: Arc<Value>) -> Self {
        Self {
            value,
            validator: OnceLock::new(),
        }
    }
}

impl PartialEq for AnswerSchema {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

/// Removes a code fence that encloses the whole answer. Models often add one, whatever the prompt says.
pub(crate) fn without_fence(answer: &str) -> &str {
    let answer = answer.trim();
    let inside = || {
        let (info, rest) = answer.strip_prefix("```")?.split_once('\n')?;
        let is_json = info.trim().is_empty() || info.trim().eq_ignore_ascii_case("json");
        let body = rest.strip_suffix("```").filter(|_| is_json)?;
        Some(body.trim())
    };
    inside().unwrap_or(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_fence_around_the_whole_answer_is_removed() {
        for (answer, json) in [
            ("{\"a\": 1}", "{\"a\": 1}"),
            ("```json\n{\"a\": 1}\n```", "{\"a\": 1}"),
            ("\n```JSON \n[1,\n2]\n```\n", "[1,\n2]"),
            ("```\n1\n```", "1"),
            ("Here:\n```json\n1\n```", "Here:\n```json\n1\n```"),
            ("```json\n1\n```\nDone.", "```json\n1\n```\nDone."),
            ("```python\n1\n```", "```python\n1\n```"),
            ("```json\n1", "```json\n1"),
            ("```", "```"),
        ] {
            assert_eq!(without_fence(answer), json);
        }
    }

    #[test]
    fn a_text_that_is_not_a_schema_is_rejected_with_the_location() {
        for (text, expected) in [
            (
                "{",
                "it is not JSON: EOF while parsing an object at line 1 column 1",
            ),
            ("{\n  \"type\": }", "line 2 column 11"),
            ("[]", "it must be a JSON object"),
            (
                r#"{"properties": {"a": {"type": "text"}}}"#,
                "at `/properties/a/type`",
            ),
            (r#"{"pattern": "("}"#, "pattern"),
            // A schema on another host or in a file is never fetched.
            (
                r#"{"$ref": "http://127.0.0.1:9/schema.json"}"#,
                "127.0.0.1:9",
            ),
            (r#"{"$ref": "file:///etc/passwd"}"#, "file:///etc/passwd"),
            (r##"{"$ref": "#/$defs/none"}"##, "/$defs/none"),
        ] {
            let error = AnswerSchema::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let long = format!("{{\"title\": \"{}\"}}", "x".repeat(64 * 1024));
        let error = AnswerSchema::parse(&long).unwrap_err();
        assert_eq!(error, AnswerSchemaError::TooLarge { bytes: long.len() });
    }

    #[test]
    fn an_answer_is_one_json_value_that_matches_the_schema() {
        let schema = r##"{"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"},
            "next": {"$ref": "#"}}}"##;
        let schema = AnswerSchema::parse(schema).unwrap();
        assert_eq!(schema.check(r#"{"n": 1, "next": {"n": 2}}"#), Ok(()));
        for (answer, expected) in [
            (r#"{"n": "1"}"#, "at `/n`: \"1\" is not of type \"integer\""),
            (
                r#"{"n": 1, "next": {}}"#,
                "at `/next`: \"n\" is a required property",
            ),
            (
                r#"{"n": 1} and more"#,
                "it is not one JSON value: trailing characters",
            ),
            ("One.", "it is not one JSON value"),
            ("", "it is not one JSON value"),
        ] {
            let error = schema.check(answer).unwrap_err();
            assert!(error.starts_with(expected), "{answer}: {error}");
        }
    }

    #[test]
    fn a_schema_that_only_refers_to_itself_terminates() {
        if let Ok(schema) = AnswerSchema::parse(r##"{"$ref": "#"}"##) {
            let _ = schema.check("1");
        }
    }
}
