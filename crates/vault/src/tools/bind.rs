//! `secrets_bind` and `secrets_revoke`: change where a value may go. The user must approve each change.

use super::{SecretField, VaultProvider, declaration, failed, name, open_vault};
use crate::binding_draft::BindingDraft;
use crate::error::VaultError;
use lango_core::{Caller, Effect, Inspection, Risk, Text, Tool, ToolError, ToolOutput};
use lango_secrets::{Binding, BindingTarget, SecretName};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

#[derive(Deserialize, JsonSchema)]
struct BindArguments {
    /// The name of the secret.
    name: String,
    /// Where its value may go.
    binding: BindingDraft,
}

#[derive(Deserialize, JsonSchema)]
struct RevokeArguments {
    /// The name of the secret.
    name: String,
    /// The number of the binding, from secrets_describe.
    binding: usize,
}

pub(super) fn tools(provider: &Arc<dyn VaultProvider>) -> Vec<Arc<dyn Tool>> {
    vec![bind(provider), revoke(provider)]
}

fn bind(provider: &Arc<dyn VaultProvider>) -> Arc<dyn Tool> {
    let declaration = declaration(
        "secrets_bind",
        "Proposes a place where the value of a stored secret may be used: one header of requests to one host, one program, \
         or one argument of a tool. The user is asked each time. Neither you nor a command sees the value: commands get a \
         placeholder in the environment variable, and lango replaces it by the value in requests to the host.",
        (Effect::Idempotent, Risk::Dangerous),
    );
    let (run_provider, inspect_provider, preview_provider) = (
        Arc::clone(provider),
        Arc::clone(provider),
        Arc::clone(provider),
    );
    declaration.with_parts(
        move |caller: Caller, arguments: BindArguments| {
            let provider = Arc::clone(&run_provider);
            async move {
                let (name, binding) = parse(&provider, &arguments)?;
                check_approved(&caller, &bind_reason(&name, &binding))?;
                let open = open_vault(&provider, &caller).await?;
                match open.bind(&name, &binding).await {
                    // After a crash the call may run a second time.
                    Ok(_) | Err(VaultError::AlreadyBound { .. }) => {}
                    Err(error) => return Err(failed(error)),
                }
                let text = format!("bound {name}: {binding}");
                Ok(ToolOutput::trusted(with_hint(&provider, &binding, text)))
            }
        },
        Some(Box::new(move |arguments: BindArguments, _| {
            let provider = Arc::clone(&preview_provider);
            Box::pin(async move {
                let (name, binding) = parse(&provider, &arguments)?;
                Ok(describe(&name, &binding))
            })
        })),
        Some(Box::new(move |_, arguments: BindArguments| {
            let provider = Arc::clone(&inspect_provider);
            Box::pin(async move {
                let parsed = parse(&provider, &arguments).ok();
                inspection_for(parsed.map(|(name, binding)| bind_reason(&name, &binding)))
            })
        })),
    )
}

fn revoke(provider: &Arc<dyn VaultProvider>) -> Arc<dyn Tool> {
    let declaration = declaration(
        "secrets_revoke",
        "Removes a binding of a secret, so that its value can no longer be used there. The user is asked each time. The \
         secret itself is kept.",
        (Effect::Idempotent, Risk::Dangerous),
    );
    let (run_provider, inspect_provider) = (Arc::clone(provider), Arc::clone(provider));
    declaration.with_parts(
        move |caller: Caller, arguments: RevokeArguments| {
            let provider = Arc::clone(&run_provider);
            async move {
                let open = open_vault(&provider, &caller).await?;
                let name = name(&arguments.name)?;
                let entries = open.entries().await.map_err(failed)?;
                let entry = entries.iter().find(|entry| entry.name == name);
                let binding =
                    entry.and_then(|entry| binding_at(&entry.bindings, arguments.binding));
                let binding = binding.ok_or_else(|| no_binding(&name, arguments.binding))?;
                check_approved(&caller, &revoke_reason(&name, binding))?;
                open.unbind(&name, binding).await.map_err(failed)?;
                Ok(ToolOutput::trusted(format!(
                    "removed from {name}: {binding}"
                )))
            }
        },
        None,
        Some(Box::new(move |caller, arguments: RevokeArguments| {
            let provider = Arc::clone(&inspect_provider);
            Box::pin(async move {
                let sealed = provider.sealed(&caller.user).await.ok().flatten();
                let name = SecretName::new(&arguments.name).ok();
                let reason = sealed.zip(name).and_then(|(sealed, name)| {
                    let entry = sealed.entries().find(|entry| entry.name == name)?;
                    let binding = binding_at(&entry.bindings, arguments.binding)?;
                    Some(revoke_reason(&name, binding))
                });
                inspection_for(reason)
            })
        })),
    )
}

fn parse(
    provider: &Arc<dyn VaultProvider>,
    arguments: &BindArguments,
) -> Result<(SecretName, Binding), ToolError> {
    let name = name(&arguments.name)?;
    let binding = build(provider, &name, &arguments.binding)?;
    Ok((name, binding))
}

/// Builds a binding, and checks that the tool, field or MCP server that it names exists.
pub(super) fn build(
    provider: &Arc<dyn VaultProvider>,
    name: &SecretName,
    draft: &BindingDraft,
) -> Result<Binding, ToolError> {
    let draft = SecretField::complete(&provider.fields(), draft).map_err(ToolError::trusted)?;
    let binding = draft.build(name);
    let binding = binding.map_err(|error| ToolError::trusted(error.to_string()))?;
    provider.check_place(&binding).map_err(ToolError::trusted)?;
    Ok(binding)
}

/// Appends a hint if settings keep the binding from working.
pub(super) fn with_hint(
    provider: &Arc<dyn VaultProvider>,
    binding: &Binding,
    text: String,
) -> String {
    match provider.check_place(binding) {
        Ok(Some(hint)) => format!("{text}\nit cannot be used yet: {hint}; tell the user"),
        Ok(None) | Err(_) => text,
    }
}

/// Describes a binding for the approval question, one line per part.
pub(super) fn describe(name: &SecretName, binding: &Binding) -> String {
    let tool = &binding.tool;
    match &binding.target {
        BindingTarget::Header {
            origin,
            header,
            variable,
        } => format!(
            "secret: {name}\nused by: {tool}\nsent to: {origin}\nin the header: {header}\nplaceholder in: {variable}\n"
        ),
        BindingTarget::Program { program, variable } => format!(
            "secret: {name}\nused by: {tool}\nSEEN by the program: {program}\nin the variable: {variable}\n"
        ),
        BindingTarget::Field { field, origin } => {
            let origin = origin.as_ref().map(|origin| format!("sent to: {origin}\n"));
            let origin = origin.unwrap_or_default();
            format!("secret: {name}\nused by: {tool}\nin the argument: {field}\n{origin}")
        }
        BindingTarget::ServerField { tool: own, field } => {
            let server = Binding::mcp_server_of(tool).unwrap_or(tool);
            format!(
                "secret: {name}\nSEEN by the MCP server: {server}\nas the argument: {field}\nof its tool: {own}\n"
            )
        }
    }
}

fn bind_reason(name: &SecretName, binding: &Binding) -> Text {
    format!("the value of {name} could be used there ({binding})").into()
}

fn revoke_reason(name: &SecretName, binding: &Binding) -> Text {
    format!("{name} could no longer be used there ({binding})").into()
}

fn inspection_for(reason: Option<Text>) -> Inspection {
    Inspection {
        user_only: reason,
        ..Inspection::default()
    }
}

/// Fails unless the user approved exactly this change.
fn check_approved(caller: &Caller, reason: &Text) -> Result<(), ToolError> {
    if caller.inspection.user_only.as_ref() == Some(reason) {
        Ok(())
    } else {
        Err(ToolError::trusted(
            "the user has not approved this change; call the tool again",
        ))
    }
}

fn binding_at(bindings: &[Binding], number: usize) -> Option<&Binding> {
    bindings.get(number.checked_sub(1)?)
}

fn no_binding(name: &SecretName, number: usize) -> ToolError {
    ToolError::trusted(format!(
        "`{name}` has no binding {number}; `secrets_describe` shows its bindings"
    ))
}
