//! A tool as the tree knows it: its spec, and the check of its arguments.

use lango_core::{Function, Text, ToolSpec};
use serde_json::Value;
use std::sync::{Arc, OnceLock};

/// A tool's spec with its compiled schema. There is no way from here to the tool's code.
#[derive(Debug)]
pub struct OwnedTool {
    /// What the tool says of itself.
    pub spec: Arc<ToolSpec>,
    validator: OnceLock<Result<jsonschema::Validator, String>>,
}

impl OwnedTool {
    pub(super) fn new(spec: Arc<ToolSpec>) -> Self {
        Self {
            spec,
            validator: OnceLock::new(),
        }
    }

    pub(super) fn function(&self) -> Function {
        Function {
            name: Text::from(self.spec.name.as_str()),
            description: Arc::clone(&self.spec.description),
            parameters: Arc::clone(&self.spec.parameters),
        }
    }

    /// Checks arguments against the schema; the error names every field that is missing or wrong, up to five.
    pub fn check(&self, arguments: &Value) -> Result<(), String> {
        let validator = self.validator()?;
        if validator.is_valid(arguments) {
            return Ok(());
        }
        let faults: Vec<String> = validator
            .iter_errors(arguments)
            .take(5)
            .map(|error| describe(&error))
            .collect();
        Err(faults.join("; "))
    }

    /// The compiled schema; compiled when it is first needed, so that starting costs nothing.
    pub(super) fn validator(&self) -> Result<&jsonschema::Validator, String> {
        let compile =
            || jsonschema::validator_for(&self.spec.parameters).map_err(|error| error.to_string());
        self.validator
            .get_or_init(compile)
            .as_ref()
            .map_err(Clone::clone)
    }
}

fn describe(error: &jsonschema::ValidationError<'_>) -> String {
    let place = error.instance_path().to_string();
    // A wrong value may be as long as a file; its beginning tells enough.
    let text: String = error.to_string().chars().take(200).collect();
    if place.is_empty() {
        text
    } else {
        format!("at `{place}`: {text}")
    }
}
