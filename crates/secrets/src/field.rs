//! Tools whose arguments may be secrets: `secret:NAME` in a bound argument is replaced after the call was allowed, in what the
//! tool gets and nowhere else. What is stored, shown and asked about has the handle.

use crate::binding::{Binding, BindingTarget, Origin};
use crate::name::SecretName;
use crate::source::{BoundSecret, SecretSource};
use lango_core::{BoxFuture, Caller, Extent, Inspection, Tool, ToolError, ToolOutput, ToolSpec};
use serde_json::Value;
use std::sync::Arc;

/// The beginning of an argument that stands for a secret.
const HANDLE: &str = "secret:";

/// Returns the secret that an argument stands for, if it is exactly `secret:NAME`.
pub fn secret_handle(argument: &str) -> Option<SecretName> {
    SecretName::new(argument.strip_prefix(HANDLE)?).ok()
}

/// Returns the secret among these that may be this argument. A binding with an origin needs the same origin.
pub fn field_binding<'a>(
    bound: &'a [BoundSecret],
    name: &SecretName,
    argument: &str,
    origin: Option<&Origin>,
) -> Option<&'a BoundSecret> {
    bound.iter().find(|secret| match &secret.binding.target {
        BindingTarget::Field {
            field,
            origin: wanted,
        } => secret.name == *name && **field == *argument && wanted.as_ref() == origin,
        BindingTarget::Header { .. } | BindingTarget::Program { .. } => false,
    })
}

/// A tool that contacts no sites, whose text arguments may be secrets.
pub struct FieldTool {
    tool: Arc<dyn Tool>,
    source: Arc<dyn SecretSource>,
}

impl FieldTool {
    /// Wraps a tool.
    pub fn new(tool: Arc<dyn Tool>, source: Arc<dyn SecretSource>) -> Self {
        Self { tool, source }
    }

    async fn run_resolved(
        &self,
        caller: &Caller,
        arguments: Arc<Value>,
    ) -> Result<ToolOutput, ToolError> {
        let handles = handles(&arguments);
        if handles.is_empty() {
            return self.tool.run(caller, arguments).await;
        }
        let name = self.spec().name.as_str();
        let bound = self.source.bound(&caller.user, name).await;
        let bound = bound.map_err(|error| ToolError::trusted(error.to_string()))?;
        let mut resolved = Value::clone(&arguments);
        let mut remarks = Vec::new();
        for (argument, secret) in handles {
            match field_binding(&bound, &secret, &argument, None) {
                Some(own) => resolved[&argument] = self.resolve(caller, own).await?.into(),
                None => remarks.push(not_bound(name, &argument, &secret)),
            }
        }
        let result = self.tool.run(caller, Arc::new(resolved)).await;
        with_remarks(result, &remarks)
    }

    async fn resolve(&self, caller: &Caller, secret: &BoundSecret) -> Result<String, ToolError> {
        let value = self.source.resolve(&caller.user, secret).await;
        let value = value.map_err(|error| ToolError::trusted(error.to_string()))?;
        let text = value.expose_text().map(str::to_owned);
        text.ok_or_else(|| {
            let name = &secret.name;
            ToolError::trusted(format!(
                "the secret `{name}` is no text, so it cannot be an argument"
            ))
        })
    }
}

impl Tool for FieldTool {
    fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    fn run<'a>(
        &'a self,
        caller: &'a Caller,
        arguments: Arc<Value>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(self.run_resolved(caller, arguments))
    }

    fn preview<'a>(
        &'a self,
        arguments: Arc<Value>,
        extent: Extent,
    ) -> BoxFuture<'a, Option<String>> {
        self.tool.preview(arguments, extent)
    }

    fn inspect<'a>(
        &'a self,
        caller: &'a Caller,
        arguments: Arc<Value>,
    ) -> BoxFuture<'a, Inspection> {
        self.tool.inspect(caller, arguments)
    }
}

/// Returns the arguments that stand for secrets.
fn handles(arguments: &Value) -> Vec<(String, SecretName)> {
    let fields = arguments.as_object().into_iter().flatten();
    let handles = fields.filter_map(|(name, value)| {
        let secret = secret_handle(value.as_str()?)?;
        Some((name.clone(), secret))
    });
    handles.collect()
}

/// Says that a handle was passed as it is.
pub fn not_bound(tool: &str, argument: &str, secret: &SecretName) -> String {
    let binding = Binding::field(tool, argument, None);
    let command = match binding {
        Ok(_) => format!("`lango secrets bind {secret} --tool {tool} --field {argument}` binds it"),
        Err(_) => "it cannot be bound there".to_owned(),
    };
    format!(
        "{HANDLE}{secret} is not bound to `{argument}` of `{tool}`, so it was passed as this literal text; {command}"
    )
}

fn with_remarks(
    result: Result<ToolOutput, ToolError>,
    remarks: &[String],
) -> Result<ToolOutput, ToolError> {
    let remarks = remarks.iter().map(|remark| format!("\n[{remark}]"));
    let remarks: String = remarks.collect();
    match result {
        Ok(mut output) => {
            output.text.push_str(&remarks);
            Ok(output)
        }
        Err(mut error) => {
            error.message.push_str(&remarks);
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests;
