//! The tools of the vault agent: which secrets there are and where they may go (`secrets_*`), and operations with keys that
//! lango created (`crypto_*`). No tool returns a value or a key.

mod bind;
mod keys;
mod list;
mod request;
mod texts;

use crate::binding_draft::BindingDraft;
use crate::error::VaultError;
use crate::head::SealedVault;
use crate::open_vault::OpenVault;
use lango_core::{
    BoxFuture, Caller, Declaration, Effect, Inspection, Risk, Subject, Text, Tool, ToolError,
    UserId,
};
use lango_secrets::{SecretError, SecretName, SecretValue, ServerToolId, UNLOCK_REASON};
use std::sync::Arc;

/// Maximum length of a text that a tool hashes, signs or encrypts, in bytes.
const MOST_TEXT_BYTES: usize = 64 << 10;

/// Maximum number of tools that an error names.
const MOST_NAMED: usize = 10;

/// Opens the vaults of users for tools.
pub trait VaultProvider: Send + Sync {
    /// Reads the user's vault without unlocking it; `None` if there is none.
    fn sealed<'a>(
        &'a self,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<Option<SealedVault>, SecretError>>;

    /// Returns the user's vault. Fails with the next step if there is none, or if nothing but a prompt unlocks it.
    fn open<'a>(&'a self, user: &'a UserId) -> BoxFuture<'a, Result<Arc<OpenVault>, SecretError>>;

    /// Returns whether a person can type a passphrase or a value after allowing a call.
    fn can_prompt(&self) -> bool;

    /// Takes the value that the person typed after allowing the call with this key.
    fn take_typed(&self, call: &str) -> Option<SecretValue>;

    /// Lists the tools and arguments that take `secret:NAME`, for errors and descriptions.
    fn fields(&self) -> Vec<SecretField>;
}

/// An argument of a tool that can be bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretField {
    /// The name by which models call the tool.
    pub tool: Text,
    /// The place of the argument.
    pub place: FieldPlace,
}

/// Where the value of a bound argument goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldPlace {
    /// A tool of an MCP server, which sees the value. Every text argument can be bound.
    Server(ServerToolId),
    /// A tool that contacts sites, so that a binding must name the one that receives the value.
    Site {
        /// The only argument that can be bound.
        field: Text,
    },
}

impl SecretField {
    /// Completes the draft of a binding for an argument: puts the MCP server and its own name of the tool in the place of the
    /// name that models call. Fails if no tool takes a secret there.
    pub fn complete(fields: &[Self], draft: &BindingDraft) -> Result<BindingDraft, String> {
        let (Some(tool), Some(argument)) = (&draft.tool, &draft.field) else {
            return Ok(draft.clone());
        };
        let own = fields.iter().find(|own| own.is_named(tool));
        let own = own.ok_or_else(|| takes_no_secrets(fields, tool))?;
        match &own.place {
            FieldPlace::Site { field } if **field != **argument => Err(format!(
                "the argument `{argument}` of `{tool}` takes no secret; `{field}` does"
            )),
            FieldPlace::Site { .. } if draft.host.is_none() => Err(format!(
                "`{tool}` contacts sites; name the one host that may receive the value"
            )),
            FieldPlace::Site { .. } => Ok(draft.clone()),
            FieldPlace::Server(_) if draft.host.is_some() => Err(format!(
                "lango does not see which hosts `{tool}` contacts; leave the host out"
            )),
            FieldPlace::Server(id) => Ok(BindingDraft {
                tool: Some(id.to_string()),
                ..draft.clone()
            }),
        }
    }

    fn is_named(&self, tool: &str) -> bool {
        let is_id = |id: &ServerToolId| ServerToolId::parse(tool).as_ref() == Some(id);
        *self.tool == *tool || matches!(&self.place, FieldPlace::Server(id) if is_id(id))
    }
}

fn takes_no_secrets(fields: &[SecretField], tool: &str) -> String {
    let tools: Vec<&str> = fields.iter().map(|own| &*own.tool).collect();
    let tools = match tools.as_slice() {
        [] => "no tool here does".to_owned(),
        tools if tools.len() > MOST_NAMED => {
            format!("tools that do: {}, …", tools[..MOST_NAMED].join(", "))
        }
        tools => format!("tools that do: {}", tools.join(", ")),
    };
    format!("the tool `{tool}` takes no secrets as arguments; {tools}")
}

/// Returns the tools over the vaults of `provider`.
pub fn vault_tools(provider: &Arc<dyn VaultProvider>) -> Vec<Arc<dyn Tool>> {
    let mut tools = list::tools(provider);
    tools.push(request::tool(provider));
    tools.extend(bind::tools(provider));
    tools.extend(texts::tools(provider));
    tools.extend(keys::tools(provider));
    tools
}

fn declaration(
    name: &'static str,
    description: &'static str,
    (effect, risk): (Effect, Risk),
) -> Declaration {
    Declaration {
        name,
        description,
        effect,
        risk,
        subject: Subject::Arguments,
    }
}

/// What a call needs of the vault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// The vault must exist.
    Existing,
    /// The vault may be created.
    Creatable,
}

/// Returns why the user must be asked: a vault that is locked, or that has to be created first. Where no person can type a
/// passphrase the call is not asked for on this account; it then fails with the next step.
async fn unlock_reason(
    provider: &Arc<dyn VaultProvider>,
    caller: &Caller,
    need: Need,
) -> Option<Text> {
    if !provider.can_prompt() {
        return None;
    }
    match provider.sealed(&caller.user).await {
        Ok(Some(_)) => match provider.open(&caller.user).await {
            Ok(_) => None,
            Err(_) => Some(UNLOCK_REASON.into()),
        },
        Ok(None) if need == Need::Creatable => {
            Some("there is no vault yet; you will be asked for its new passphrase".into())
        }
        _ => None,
    }
}

/// Returns what a call that needs the vault touches.
async fn inspect_vault(provider: Arc<dyn VaultProvider>, caller: Caller, need: Need) -> Inspection {
    Inspection {
        user_only: unlock_reason(&provider, &caller, need).await,
        ..Inspection::default()
    }
}

async fn opened(
    provider: &Arc<dyn VaultProvider>,
    caller: &Caller,
) -> Result<Arc<OpenVault>, ToolError> {
    let open = provider.open(&caller.user).await;
    open.map_err(|error| ToolError::trusted(error.to_string()))
}

fn name(text: &str) -> Result<SecretName, ToolError> {
    SecretName::new(text).map_err(|error| ToolError::trusted(error.to_string()))
}

fn failed(error: VaultError) -> ToolError {
    ToolError::trusted(match &error {
        VaultError::NotFound { .. } => format!("{error}; `secrets_list` shows all"),
        _ => error.to_string(),
    })
}

fn check_length(text: &str) -> Result<(), ToolError> {
    if text.len() <= MOST_TEXT_BYTES {
        return Ok(());
    }
    Err(ToolError::trusted(format!(
        "the text has {} bytes; at most {MOST_TEXT_BYTES} are taken",
        text.len()
    )))
}
