//! The seam to a tool: what it says of itself, and its code, in one value.

use crate::{BoxFuture, CallId, Text, ToolName};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// A tool that an agent can be given.
pub trait Tool: Send + Sync {
    /// What it is.
    fn spec(&self) -> &ToolSpec;

    /// Runs it. `arguments` fit the schema; `call` is the key under which an effect must not happen twice.
    fn run<'a>(
        &'a self,
        call: &'a CallId,
        arguments: Arc<Value>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

/// What a tool says of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The name; its prefix decides which agent owns it.
    pub name: ToolName,
    /// What it does, for the model.
    pub description: Text,
    /// The JSON schema of its arguments.
    pub parameters: Arc<Value>,
    /// What happens when it runs twice.
    pub effect: Effect,
    /// How much harm it can do.
    pub risk: Risk,
}

/// What happens to the world when a tool runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Nothing.
    Pure,
    /// Something, and running it again changes nothing more.
    Idempotent,
    /// Something, every time.
    Effect,
}

/// How much harm a tool can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// None that matters.
    Safe,
    /// Some that can be undone.
    Moderate,
    /// Some that cannot.
    Dangerous,
}

/// What a tool gave back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutput {
    /// The text for the model.
    pub text: String,
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self { text }
    }
}

/// Why a tool gave nothing back. The text goes to the model, so it says what to do instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// What went wrong and the way out.
    pub message: String,
}

impl ToolError {
    /// An error with this text.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }
}
