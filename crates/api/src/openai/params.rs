//! The parameters of a request. Unknown ones are ignored, because clients send many that do not apply.

use super::error::{ApiError, Result};
use serde_json::{Map, Value};

/// The parameters of a request. `null` counts as missing.
#[derive(Debug)]
pub(super) struct Params(Map<String, Value>);

impl Params {
    /// Reads the body of a request.
    pub(super) fn new(body: Value) -> Result<Self> {
        match body {
            Value::Object(params) => Ok(Self(params)),
            _ => Err(ApiError::invalid("body", "the body must be a JSON object")),
        }
    }

    /// Returns a parameter of any type.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// Returns a boolean parameter, false by default.
    pub(super) fn flag(&self, name: &'static str) -> Result<bool> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(ApiError::invalid(
                name,
                format!("`{name}` must be true or false"),
            )),
        }
    }

    /// Returns a string parameter.
    pub(super) fn text(&self, name: &'static str) -> Result<Option<&str>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(ApiError::invalid(
                name,
                format!("`{name}` must be a string"),
            )),
        }
    }

    /// Fails if a parameter is set, unless it is `null` or an empty list.
    pub(super) fn refuse_list(&self, name: &'static str, message: &str) -> Result<()> {
        match self.get(name) {
            None => Ok(()),
            Some(Value::Array(list)) if list.is_empty() => Ok(()),
            Some(_) => Err(ApiError::unsupported(name, message)),
        }
    }

    /// Fails if a parameter is true.
    pub(super) fn refuse_flag(&self, name: &'static str, message: &str) -> Result<()> {
        if self.flag(name)? {
            return Err(ApiError::unsupported(name, message));
        }
        Ok(())
    }
}
