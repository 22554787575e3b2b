//! `secrets_request`: asks the user for a secret that is not stored yet. After approving the call, the user types the
//! value at the terminal, from where it goes directly into the vault.

use super::bind::{build, describe, with_hint};
use super::{VaultProvider, declaration, failed, name, open_vault};
use crate::binding_draft::{BindingDraft, bind_command};
use crate::error::VaultError;
use crate::open_vault::NewSecret;
use lango_core::{Caller, Effect, Inspection, Risk, Tool, ToolError, ToolOutput};
use lango_secrets::SecretName;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// Maximum length of a purpose in characters.
const MAX_PURPOSE: usize = 300;

#[derive(Deserialize, JsonSchema)]
struct RequestArguments {
    /// The name for the new secret, such as GITHUB_TOKEN.
    name: String,
    /// Why it is needed, in a sentence for the user.
    purpose: String,
    /// Where its value may go; without this, only lango's own configuration can use the secret.
    #[serde(default)]
    binding: Option<BindingDraft>,
}

pub(super) fn tool(provider: &Arc<dyn VaultProvider>) -> Arc<dyn Tool> {
    let declaration = declaration(
        "secrets_request",
        "Asks the user for a credential that is not stored yet, with a name, the purpose and the place where it may be used. \
         The user types the value where you do not see it. Never ask for a credential in the conversation.",
        (Effect::Idempotent, Risk::Safe),
    );
    let (run_provider, inspect_provider, preview_provider) = (
        Arc::clone(provider),
        Arc::clone(provider),
        Arc::clone(provider),
    );
    declaration.with_parts(
        move |caller: Caller, arguments: RequestArguments| {
            let provider = Arc::clone(&run_provider);
            async move { request(&provider, &caller, arguments).await }
        },
        Some(Box::new(move |arguments: RequestArguments, _| {
            let provider = Arc::clone(&preview_provider);
            Box::pin(async move { preview(&provider, &arguments) })
        })),
        Some(Box::new(
            move |caller: Caller, arguments: RequestArguments| {
                let provider = Arc::clone(&inspect_provider);
                Box::pin(async move {
                    let is_possible = provider.can_prompt()
                        && !exists(&provider, &caller, &arguments.name).await
                        && preview(&provider, &arguments).is_ok();
                    let reason = "you will be asked to type the secret; the agent does not see it";
                    Inspection {
                        user_only: is_possible.then(|| reason.into()),
                        ..Inspection::default()
                    }
                })
            },
        )),
    )
}

async fn request(
    provider: &Arc<dyn VaultProvider>,
    caller: &Caller,
    arguments: RequestArguments,
) -> Result<ToolOutput, ToolError> {
    let name = name(&arguments.name)?;
    let draft = arguments.binding.as_ref();
    let binding = draft
        .map(|draft| build(provider, &name, draft))
        .transpose()?;
    let typed = provider.take_typed(&caller.key());
    let Some(value) = typed.filter(|_| caller.inspection.user_only.is_some()) else {
        if exists(provider, caller, &arguments.name).await {
            return Err(ToolError::trusted(format!(
                "there is a secret `{name}` already; `secrets_describe` shows where it can be used, `secrets_bind` \
                 proposes another place"
            )));
        }
        return Ok(ToolOutput::trusted(format!(
            "the user cannot type the value here; tell the user to store it with `lango secrets set {name}`{}",
            match binding {
                Some(binding) => {
                    format!(", and to bind it with `{}`", bind_command(&name, &binding))
                }
                None => String::new(),
            }
        )));
    };
    let open = open_vault(provider, caller).await?;
    match open.add(&name, NewSecret::new(value)).await {
        Err(VaultError::NameTaken { .. }) => {
            return Err(ToolError::trusted(format!(
                "`{name}` was stored in the meantime; `secrets_describe` shows it"
            )));
        }
        stored => stored.map_err(failed)?,
    };
    let Some(binding) = binding else {
        return Ok(ToolOutput::trusted(format!("the user stored {name}")));
    };
    open.bind(&name, &binding).await.map_err(failed)?;
    let text = format!("the user stored {name} and bound it: {binding}");
    Ok(ToolOutput::trusted(with_hint(provider, &binding, text)))
}

fn preview(
    provider: &Arc<dyn VaultProvider>,
    arguments: &RequestArguments,
) -> Result<String, ToolError> {
    let name = name(&arguments.name)?;
    // The purpose is put on one line, so that the agent cannot imitate lango's own lines.
    let words: Vec<&str> = arguments.purpose.split_whitespace().collect();
    let purpose: String = words.join(" ").chars().take(MAX_PURPOSE).collect();
    let place = match &arguments.binding {
        Some(draft) => describe(&name, &build(provider, &name, draft)?),
        None => format!("secret: {name}\nused by: nothing yet\n"),
    };
    Ok(format!("{place}the agent says: {purpose}\n"))
}

/// Returns whether a secret of this name is stored, according to the manifest, which is not authenticated here.
async fn exists(provider: &Arc<dyn VaultProvider>, caller: &Caller, text: &str) -> bool {
    let Ok(name) = SecretName::new(text) else {
        return false;
    };
    let sealed = provider.sealed(&caller.user).await.ok().flatten();
    sealed.is_some_and(|sealed| sealed.entries().any(|entry| entry.name == name))
}
