//! Wraps tools that do not resolve secrets. If an argument contains the `secret:NAME` of a stored secret, the result
//! says that it was passed as literal text. Otherwise an agent might believe that a file or a note contains the value.

use crate::field::{find_handle, with_remarks};
use crate::name::SecretName;
use crate::source::{SecretSource, SecretStatus};
use lango_core::{
    BoxFuture, Caller, Inspection, PreviewRequest, Tool, ToolError, ToolOutput, ToolSpec,
};
use serde_json::Value;
use std::sync::Arc;

/// A tool that does not resolve secrets, with a notice in the result if an argument names one.
pub struct LiteralSecretNotice {
    tool: Arc<dyn Tool>,
    source: Arc<dyn SecretSource>,
}

impl LiteralSecretNotice {
    pub fn new(tool: Arc<dyn Tool>, source: Arc<dyn SecretSource>) -> Self {
        Self { tool, source }
    }

    async fn remark(&self, caller: &Caller, arguments: &Value) -> Option<String> {
        let name = first_handle(arguments)?;
        let status = self.source.status(&caller.user, &name).await.ok()?;
        (status != SecretStatus::Missing).then(|| {
            let tool = &self.spec().name;
            format!(
                "secret:{name} is not resolved in arguments of {tool}; it was passed as literal text"
            )
        })
    }
}

impl Tool for LiteralSecretNotice {
    fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    fn run<'a>(
        &'a self,
        caller: &'a Caller,
        arguments: Arc<Value>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let remark = self.remark(caller, &arguments).await;
            let result = self.tool.run(caller, arguments).await;
            with_remarks(result, remark.as_slice())
        })
    }

    fn preview<'a>(
        &'a self,
        arguments: Arc<Value>,
        request: PreviewRequest,
    ) -> BoxFuture<'a, Option<String>> {
        self.tool.preview(arguments, request)
    }

    fn inspect<'a>(
        &'a self,
        caller: &'a Caller,
        arguments: Arc<Value>,
    ) -> BoxFuture<'a, Inspection> {
        self.tool.inspect(caller, arguments)
    }
}

/// Returns the first `secret:NAME` in any text of the arguments.
fn first_handle(arguments: &Value) -> Option<SecretName> {
    match arguments {
        Value::String(text) => find_handle(text),
        Value::Array(items) => items.iter().find_map(first_handle),
        Value::Object(fields) => fields.values().find_map(first_handle),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}
