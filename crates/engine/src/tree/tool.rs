//! A tool as the tree knows it: its spec, and the check of its arguments.

use crate::json_schema;
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
            parameters: self.spec.parameters.clone(),
        }
    }

    /// Checks arguments against the schema; the error names every field that is missing or wrong, up to five.
    pub fn check(&self, arguments: &Value) -> Result<(), String> {
        json_schema::check(self.validator()?, arguments)
    }

    /// The compiled schema; compiled when it is first needed, so that starting costs nothing.
    pub(super) fn validator(&self) -> Result<&jsonschema::Validator, String> {
        let compile = || json_schema::compile(&self.spec.parameters);
        self.validator
            .get_or_init(compile)
            .as_ref()
            .map_err(Clone::clone)
    }
}
