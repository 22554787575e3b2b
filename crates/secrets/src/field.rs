//! Tools whose arguments may be secrets. After a call was approved, `secret:NAME` in a bound argument is replaced by
//! the value, but only in the arguments that the tool receives. Logs, screens and approval questions show
//! `secret:NAME`.

use crate::binding::{Binding, BindingTarget, Origin, ServerToolId};
use crate::name::SecretName;
use crate::source::{BoundSecret, SecretSource, SecretStatus, SecretUser, UNLOCK_REASON};
use lango_core::{
    BoxFuture, Caller, Inspection, PreviewRequest, Tool, ToolError, ToolOutput, ToolSpec,
};
use serde_json::Value;
use std::sync::Arc;

/// The prefix of an argument that refers to a secret.
const HANDLE: &str = "secret:";

/// Returns the secret that an argument refers to, if the argument is exactly `secret:NAME`.
pub fn secret_handle(argument: &str) -> Option<SecretName> {
    SecretName::new(argument.strip_prefix(HANDLE)?).ok()
}

/// Returns the first `secret:NAME` within a text. It is for texts in which secrets are not resolved.
pub fn find_handle(text: &str) -> Option<SecretName> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let mut found = text.match_indices(HANDLE).filter_map(|(at, _)| {
        let is_word = !text[..at].ends_with(is_part);
        let rest = &text[at + HANDLE.len()..];
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let name = rest[..end].trim_end_matches('.');
        is_word.then(|| SecretName::new(name).ok()).flatten()
    });
    found.next()
}

/// Returns the secret in `bound` that may be used as this argument for this origin.
pub fn field_binding<'a>(
    bound: &'a [BoundSecret],
    name: &SecretName,
    argument: &str,
    origin: &Origin,
) -> Option<&'a BoundSecret> {
    bound.iter().find(|secret| match &secret.binding.target {
        BindingTarget::Field {
            field,
            origin: Some(wanted),
        } => secret.name == *name && **field == *argument && wanted == origin,
        _ => false,
    })
}

/// A tool of an MCP server whose text arguments may be secrets.
pub struct FieldTool {
    tool: Arc<dyn Tool>,
    id: ServerToolId,
    source: Arc<dyn SecretSource>,
}

/// An argument that refers to a secret.
struct Handle {
    argument: String,
    name: SecretName,
}

impl FieldTool {
    /// Wraps a tool of an MCP server.
    pub fn new(tool: Arc<dyn Tool>, id: ServerToolId, source: Arc<dyn SecretSource>) -> Self {
        Self { tool, id, source }
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
        let bound = self.bound_secrets(caller).await;
        let bound = bound.map_err(ToolError::trusted)?;
        let mut resolved = Value::clone(&arguments);
        for handle in &handles {
            match self.binding(&bound, handle) {
                Some(secret) => {
                    resolved[&handle.argument] = self.resolve(caller, secret).await?.into();
                }
                None => return Err(self.unusable(caller, handle).await),
            }
        }
        self.tool.run(caller, Arc::new(resolved)).await
    }

    async fn bound_secrets(&self, caller: &Caller) -> Result<Vec<BoundSecret>, String> {
        let server = Binding::mcp_server(&self.id.server);
        let bound = self.source.bound_secrets(&caller.user, &server).await;
        bound.map_err(|error| error.to_string())
    }

    /// Returns the secret that a handle refers to, if it is bound to this argument of this tool.
    fn binding<'a>(&self, bound: &'a [BoundSecret], handle: &Handle) -> Option<&'a BoundSecret> {
        bound.iter().find(|secret| match &secret.binding.target {
            BindingTarget::ServerField { tool, field } => {
                secret.name == handle.name && *tool == self.id.tool && **field == *handle.argument
            }
            _ => false,
        })
    }

    /// Returns the error for a handle that is not bound to its argument.
    async fn unusable(&self, caller: &Caller, handle: &Handle) -> ToolError {
        let status = self.source.status(&caller.user, &handle.name).await;
        ToolError::trusted(match status {
            Ok(status) => status
                .problem(&handle.name)
                .unwrap_or_else(|| self.not_bound(handle)),
            Err(error) => error.to_string(),
        })
    }

    fn not_bound(&self, handle: &Handle) -> String {
        let Handle { argument, name } = handle;
        let id = &self.id;
        let command = match Binding::server_field(id, argument) {
            Ok(_) => format!("`lango secrets bind {name} --tool {id} --field {argument}` binds it"),
            Err(_) => "it cannot be bound there".to_owned(),
        };
        format!("{HANDLE}{name} is not bound to `{argument}` of {id}; {command}")
    }

    async fn resolve(&self, caller: &Caller, secret: &BoundSecret) -> Result<String, ToolError> {
        let value = self
            .source
            .resolve(&SecretUser::agent(caller), secret)
            .await;
        let value = value.map_err(|error| ToolError::trusted(error.to_string()))?;
        let text = value.expose_text().map(str::to_owned);
        text.ok_or_else(|| {
            let name = &secret.name;
            ToolError::trusted(format!(
                "the secret `{name}` is binary, so it cannot be used as an argument"
            ))
        })
    }

    /// Adds the consequences of a call's secrets to its inspection. If the vault is locked, only the user can approve
    /// the call, and the approval also unlocks the vault. A call that cannot work is refused.
    async fn inspect_secrets(
        &self,
        caller: &Caller,
        arguments: Arc<Value>,
        mut inspection: Inspection,
    ) -> Inspection {
        let handles = handles(&arguments);
        let server = Binding::mcp_server(&self.id.server);
        let locked = self.source.locked_secrets(&caller.user, &server).await;
        let is_needed = |secret: &BoundSecret| {
            let is_named = handles.iter().any(|handle| handle.name == secret.name);
            is_named || secret.binding.target.is_header()
        };
        if locked.iter().any(is_needed) {
            inspection.user_only = inspection.user_only.or(Some(UNLOCK_REASON.into()));
        } else if !handles.is_empty() {
            let refusal = self.refusal(caller, &handles).await;
            refusal
                .iter()
                .for_each(|problem| self.source.report(problem));
            inspection.refused = refusal.map(Into::into);
        }
        inspection
    }

    /// Returns why a call with these handles cannot work; `None` if it can.
    async fn refusal(&self, caller: &Caller, handles: &[Handle]) -> Option<String> {
        let bound = match self.bound_secrets(caller).await {
            Ok(bound) => bound,
            Err(problem) => return Some(problem),
        };
        for handle in handles {
            let name = &handle.name;
            let status = self.source.status(&caller.user, name).await.ok()?;
            let is_bound = self.binding(&bound, handle).is_some();
            match status {
                SecretStatus::Missing | SecretStatus::Expired => return status.problem(name),
                SecretStatus::Stored if !is_bound => return Some(self.not_bound(handle)),
                SecretStatus::Stored => {}
            }
        }
        None
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
        request: PreviewRequest,
    ) -> BoxFuture<'a, Option<String>> {
        self.tool.preview(arguments, request)
    }

    fn inspect<'a>(
        &'a self,
        caller: &'a Caller,
        arguments: Arc<Value>,
    ) -> BoxFuture<'a, Inspection> {
        Box::pin(async move {
            let inspection = self.tool.inspect(caller, Arc::clone(&arguments)).await;
            self.inspect_secrets(caller, arguments, inspection).await
        })
    }
}

/// Returns the arguments that refer to secrets.
fn handles(arguments: &Value) -> Vec<Handle> {
    let fields = arguments.as_object().into_iter().flatten();
    let handles = fields.filter_map(|(argument, value)| {
        Some(Handle {
            name: secret_handle(value.as_str()?)?,
            argument: argument.clone(),
        })
    });
    handles.collect()
}

/// Adds remarks to the end of a result.
pub(crate) fn with_remarks(
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
