//! A tool in the tree: its spec, and the validation of its arguments.

use crate::json_schema;
use lango_core::{Function, Text, ToolSpec};
use serde_json::Value;
use std::sync::{Arc, OnceLock};

/// A tool's spec with its compiled schema. It gives no access to the tool's code.
#[derive(Debug)]
pub struct OwnedTool {
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
            parameters: self.spec.parameters.clone(),
        }
    }

    /// Validates arguments against the schema. The error names up to five fields that are missing or wrong.
    pub fn check(&self, arguments: &Value) -> Result<(), String> {
        json_schema::check(self.validator()?, arguments)
    }

    /// Returns the compiled schema. It is compiled on first use, so starting is not slowed down.
    pub(super) fn validator(&self) -> Result<&jsonschema::Validator, String> {
        let compile = || json_schema::compile(&self.spec.parameters);
        self.validator
            .get_or_init(compile)
            .as_ref()
            .map_err(Clone::clone)
    }
}
