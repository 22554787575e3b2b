//! The tools of the vault agent: `secrets_*` list secrets and change where they may go; `crypto_*` perform operations
//! with keys that lango created. No tool returns a value or a key.

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
    BoxFuture, Caller, Clock, Effect, Inspection, Risk, RuleSubject, Text, Tool, ToolDeclaration,
    ToolError, UserId,
};
use lango_secrets::{
    Binding, BindingTarget, SecretError, SecretName, SecretValue, ServerToolId, UNLOCK_REASON,
    agent_actor,
};
use std::sync::Arc;

/// Maximum length of a text that a tool hashes, signs or encrypts, in bytes.
const MAX_TEXT_BYTES: usize = 64 << 10;

/// Maximum number of names that an error lists.
const MAX_NAMED: usize = 10;

/// Minimum similarity of a name to be suggested.
const MIN_SIMILARITY: f64 = 0.6;

/// Opens the vaults of users for tools.
pub trait VaultProvider: Send + Sync {
    /// Reads the user's vault without unlocking it; `None` if there is none.
    fn sealed<'a>(
        &'a self,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<Option<SealedVault>, SecretError>>;

    /// Opens the user's vault without a prompt. If there is no vault, or it can only be unlocked with a prompt, fails
    /// with an error that says what to do next.
    fn open<'a>(&'a self, user: &'a UserId) -> BoxFuture<'a, Result<Arc<OpenVault>, SecretError>>;

    /// Tells the user that a call failed because the vault cannot be opened.
    fn report(&self, problem: &str);

    /// Returns whether the user can type a passphrase or a value after approving a call.
    fn can_prompt(&self) -> bool;

    /// Removes and returns the value that the user typed after approving the call with this key.
    fn take_typed(&self, call: &str) -> Option<SecretValue>;

    /// Lists the tools with arguments that can be bound.
    fn fields(&self) -> Vec<SecretField>;

    /// Checks the target of a binding. Fails if it does not exist here. If settings keep the binding from working,
    /// returns a hint that says what to change.
    fn check_place(&self, binding: &Binding) -> Result<Option<String>, String>;
}

/// The arguments of a tool that can be bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretField {
    /// The name that models use for the tool.
    pub tool: Text,
    pub place: FieldPlace,
    /// The names of the arguments that can be bound; `None` if the tool does not declare its arguments.
    pub arguments: Option<Vec<Text>>,
}

/// Where the value of a bound argument goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldPlace {
    /// A tool of an MCP server, which sees the value.
    Server(ServerToolId),
    /// A tool that contacts sites. A binding must name the site that receives the value.
    Site,
}

impl SecretField {
    /// Completes the draft of a binding to an argument: replaces the tool name that models use by the id of the MCP
    /// server and the server's name for the tool. Fails if the tool does not exist or does not accept secrets.
    pub fn complete(fields: &[Self], draft: &BindingDraft) -> Result<BindingDraft, String> {
        let (Some(tool), Some(_)) = (&draft.tool, &draft.field) else {
            return Ok(draft.clone());
        };
        let own = fields.iter().find(|own| own.is_named(tool));
        let own = own.ok_or_else(|| takes_no_secrets(fields, tool))?;
        match &own.place {
            FieldPlace::Site if draft.host.is_none() => Err(format!(
                "`{tool}` contacts sites; name the one host that may receive the value"
            )),
            FieldPlace::Site => Ok(draft.clone()),
            FieldPlace::Server(id) => Ok(BindingDraft {
                tool: Some(id.to_string()),
                ..draft.clone()
            }),
        }
    }

    /// Fails if no tool has the argument that a binding names.
    pub fn check(fields: &[Self], binding: &Binding) -> Result<(), String> {
        let (tool, argument) = match &binding.target {
            BindingTarget::Header { .. } | BindingTarget::Program { .. } => return Ok(()),
            BindingTarget::Field { origin: None, .. } => {
                return Err(format!(
                    "the binding to `{}` does not name an MCP server; remove it, and bind to `mcp:ID/TOOL`",
                    binding.tool
                ));
            }
            BindingTarget::Field { field, .. } => (binding.tool.to_string(), field),
            BindingTarget::ServerField { tool, field } => {
                (format!("{}/{tool}", binding.tool), field)
            }
        };
        let own = fields.iter().find(|own| own.is_named(&tool));
        let own = own.ok_or_else(|| takes_no_secrets(fields, &tool))?;
        match &own.arguments {
            Some(names) if names.iter().all(|name| name != argument) => {
                let names: Vec<&str> = names.iter().map(|name| &**name).collect();
                Err(format!(
                    "`{tool}` has no argument `{argument}` that can be a secret; {}",
                    describe_choice(argument, &names, "none of its arguments can")
                ))
            }
            _ => Ok(()),
        }
    }

    fn is_named(&self, tool: &str) -> bool {
        let is_id = |id: &ServerToolId| ServerToolId::parse(tool).as_ref() == Some(id);
        *self.tool == *tool || matches!(&self.place, FieldPlace::Server(id) if is_id(id))
    }
}

fn takes_no_secrets(fields: &[SecretField], tool: &str) -> String {
    let names = fields.iter().map(|own| match &own.place {
        FieldPlace::Server(id) if tool.contains(':') => id.to_string(),
        _ => own.tool.to_string(),
    });
    let names: Vec<String> = names.collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let choice = describe_choice(tool, &names, "no available tool does");
    if tool.contains(':') {
        format!("lango does not know a tool `{tool}` that takes secrets; {choice}")
    } else {
        format!("the tool `{tool}` takes no secrets as arguments; {choice}")
    }
}

/// Lists the names that the user may have meant instead of `wrong`, the most similar one first. Returns `none` if there
/// are no names.
pub fn describe_choice(wrong: &str, names: &[&str], none: &str) -> String {
    if names.is_empty() {
        return none.to_owned();
    }
    let mut names: Vec<(f64, &str)> = names
        .iter()
        .map(|name| (strsim::normalized_damerau_levenshtein(wrong, name), *name))
        .collect();
    names.sort_by(|(left, _), (right, _)| right.total_cmp(left));
    let (similarity, nearest) = names[0];
    let guess = if similarity >= MIN_SIMILARITY {
        format!("did you mean `{nearest}`? ")
    } else {
        String::new()
    };
    let rest = if names.len() > MAX_NAMED { ", …" } else { "" };
    let shown: Vec<&str> = names
        .iter()
        .take(MAX_NAMED)
        .map(|(_, name)| *name)
        .collect();
    format!("{guess}possible: {}{rest}", shown.join(", "))
}

/// Creates the tools for the vaults of `provider`.
pub fn vault_tools(
    provider: &Arc<dyn VaultProvider>,
    clock: &Arc<dyn Clock>,
) -> Vec<Arc<dyn Tool>> {
    let mut tools = list::tools(provider, clock);
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
) -> ToolDeclaration {
    ToolDeclaration {
        name,
        description,
        effect,
        risk,
        subject: RuleSubject::Arguments,
    }
}

/// What a call requires of the vault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VaultNeed {
    /// The vault must exist.
    Existing,
    /// The vault may be created.
    Creatable,
}

/// Returns why the user must approve a call: the vault is locked, or must be created first. Returns `None` if the user
/// cannot type a passphrase; the call then fails with an error that says what to do next.
async fn unlock_reason(
    provider: &Arc<dyn VaultProvider>,
    caller: &Caller,
    need: VaultNeed,
) -> Option<Text> {
    if !provider.can_prompt() {
        return None;
    }
    match provider.sealed(&caller.user).await {
        Ok(Some(_)) => match provider.open(&caller.user).await {
            Ok(_) => None,
            Err(_) => Some(UNLOCK_REASON.into()),
        },
        Ok(None) if need == VaultNeed::Creatable => {
            Some("there is no vault yet; you will be asked for its new passphrase".into())
        }
        _ => None,
    }
}

/// Inspects a call that needs the vault.
async fn inspect_vault(
    provider: Arc<dyn VaultProvider>,
    caller: Caller,
    need: VaultNeed,
) -> Inspection {
    Inspection {
        user_only: unlock_reason(&provider, &caller, need).await,
        ..Inspection::default()
    }
}

async fn open_vault(
    provider: &Arc<dyn VaultProvider>,
    caller: &Caller,
) -> Result<OpenVault, ToolError> {
    let open = provider.open(&caller.user).await.map_err(|error| {
        let problem = error.to_string();
        provider.report(&problem);
        ToolError::trusted(problem)
    })?;
    Ok(open.acting_as(agent_actor(caller)))
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
    if text.len() <= MAX_TEXT_BYTES {
        return Ok(());
    }
    Err(ToolError::trusted(format!(
        "the text has {} bytes; the limit is {MAX_TEXT_BYTES}",
        text.len()
    )))
}
