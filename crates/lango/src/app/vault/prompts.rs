//! Prompts after the user allowed a call of a vault tool: for the passphrase of a vault that is locked or must be
//! created, and for the value of a requested secret. The turn waits meanwhile, so nothing else writes to the
//! terminal.

use super::{EchoGuard, EmptyAnswer, UserVaults, new_passphrase, read_confirmed};
use crate::app::failure::{Failure, FailureKind};
use crate::app::notice::notice;
use lango_core::{ApprovalAnswer, PendingApproval, RecordSelection, UserId};
use lango_secrets::{MIN_MASKED_BYTES, SecretName, SecretValue, UNLOCK_REASON};
use lango_vault::VaultProvider;

/// The prefixes of tools that need the vault.
const VAULT_TOOLS: [&str; 2] = ["secrets_", "crypto_"];

/// The tool for which the user types a value.
const REQUEST_TOOL: &str = "secrets_request";

impl UserVaults {
    /// Prompts for what an allowed call needs. If the user types nothing, or something wrong, the result depends on
    /// the tool. For a vault tool, returns a denial that replaces the user's answer. A command or an MCP server, which
    /// only uses bound secrets, continues without them, and this process does not prompt for them again. Fails on
    /// Ctrl-C and termination signals; the call then stays pending.
    pub async fn prepare(
        &self,
        user: &UserId,
        waiting: &PendingApproval,
    ) -> Result<Option<ApprovalAnswer>, Failure> {
        let request = &waiting.request;
        let tool = request.tool.as_str();
        let is_vault_tool = VAULT_TOOLS.iter().any(|prefix| tool.starts_with(prefix));
        let reason = request.inspection.user_only.as_deref();
        let needs_unlock = reason.is_some_and(|reason| reason.ends_with(UNLOCK_REASON));
        let is_prompted = is_vault_tool && reason.is_some() || needs_unlock;
        if !is_prompted || !self.can_prompt() {
            return Ok(None);
        }
        match self.prompt(user, waiting).await {
            Ok(()) => Ok(None),
            Err(failure)
                if matches!(
                    failure.kind,
                    FailureKind::Interrupted | FailureKind::Terminated
                ) =>
            {
                Err(failure)
            }
            Err(failure) if !is_vault_tool => {
                self.decline(user);
                notice(&format!(
                    "{failure}\nthe vault stays locked, so the call continues without its secrets"
                ));
                Ok(None)
            }
            Err(failure) => {
                notice(&failure.to_string());
                let reason = "the user allowed the call but did not enter what it needs";
                Ok(Some(ApprovalAnswer::No {
                    reason: Some(reason.into()),
                }))
            }
        }
    }

    async fn prompt(&self, user: &UserId, waiting: &PendingApproval) -> Result<(), Failure> {
        let access = self.access().for_user(user.clone());
        let access = access.without_echo_between_prompts();
        if self.opened(user).await.is_err() {
            let open = match access.read(RecordSelection::None).await? {
                Some(_) => access.ask(EmptyAnswer::Declines).await?,
                None => {
                    notice("there is no vault yet; choose the passphrase that will unlock it");
                    let passphrase = new_passphrase(&access).await?;
                    access.vault.create(vec![passphrase]).await?
                }
            };
            self.store_open(user, open).await;
        }
        if waiting.request.tool.as_str() == REQUEST_TOOL {
            let name = waiting.request.arguments["name"]
                .as_str()
                .unwrap_or_default();
            let name = SecretName::new(name)?;
            let value = read_secret_value(&access.echo_guard(), &name).await?;
            let call = format!("{}/{}", waiting.turn, waiting.request.call);
            self.store_typed(call, value);
        }
        Ok(())
    }
}

/// Prompts for the value of a secret, twice, and warns if it is short.
pub async fn read_secret_value(
    echo_guard: &EchoGuard,
    name: &SecretName,
) -> Result<SecretValue, Failure> {
    let value = read_typed(echo_guard, &format!("value of {name}")).await?;
    warn_if_short(name, &value);
    Ok(value)
}

/// Prompts twice for a value that can also be piped in.
pub async fn read_typed(echo_guard: &EchoGuard, thing: &str) -> Result<SecretValue, Failure> {
    let check = |typed: &SecretValue| {
        if typed.is_empty() {
            let failure = Failure::usage("the value is empty");
            return Err(failure.next("nothing was changed; give a different one"));
        }
        Ok(())
    };
    let (first, again) = (format!("{thing} (not shown): "), format!("{thing} again: "));
    let value = read_confirmed(echo_guard, &first, &again, check).await;
    value.map_err(|failure| match failure.kind {
        FailureKind::Interrupted => {
            failure.next("run the command again, or pipe the value to standard input")
        }
        _ => failure,
    })
}

/// Warns if a value is too short to be masked.
pub fn warn_if_short(name: &SecretName, value: &SecretValue) {
    if value.len() < MIN_MASKED_BYTES {
        notice(&format!(
            "warning: {name} has fewer than {MIN_MASKED_BYTES} bytes; if a service echoes it, lango cannot mask it"
        ));
    }
}
