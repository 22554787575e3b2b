//! What the user types after allowing a call of a vault tool: the passphrase of a vault that is locked or has to be created,
//! and the value of a requested secret. The turn waits for the answer meanwhile, so nothing else writes to the terminal.

use super::{EmptyAnswer, Silence, UserVaults, new_passphrase, read_confirmed};
use crate::exit::{Exit, Failure};
use crate::screen;
use lango_core::{Answer, RecordSelection, UserId, Waiting};
use lango_secrets::{LEAST_MASKED_BYTES, SecretName, SecretValue, UNLOCK_REASON};
use lango_vault::VaultProvider;

/// The prefixes of the tools that need the vault.
const VAULT_TOOLS: [&str; 2] = ["secrets_", "crypto_"];

/// The tool whose value the user types.
const REQUEST_TOOL: &str = "secrets_request";

impl UserVaults {
    /// Prompts for what an allowed call needs. Returns the answer that takes the place of the user's if they typed
    /// nothing, or something wrong. A command or an MCP server that only uses bound secrets then goes on without them, and
    /// this process does not prompt for those again. Fails with Ctrl-C, and with a signal that ends the process; the call then
    /// still waits for an answer.
    pub async fn prepare(
        &self,
        user: &UserId,
        waiting: &Waiting,
    ) -> Result<Option<Answer>, Failure> {
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
            Err(failure) if matches!(failure.exit, Exit::Interrupted | Exit::Terminated) => {
                Err(failure)
            }
            Err(failure) if !is_vault_tool => {
                self.decline(user);
                screen::say(&format!(
                    "{failure}\nthe vault stays locked, so the call goes on without its secrets"
                ));
                Ok(None)
            }
            Err(failure) => {
                screen::say(&failure.to_string());
                let reason = "the user allowed it and then did not type what was needed";
                Ok(Some(Answer::No {
                    reason: Some(reason.into()),
                }))
            }
        }
    }

    async fn prompt(&self, user: &UserId, waiting: &Waiting) -> Result<(), Failure> {
        let access = self.access().for_user(user.clone());
        let access = access.silent_between_prompts();
        if self.opened(user).await.is_err() {
            let open = match access.read(RecordSelection::None).await? {
                Some(_) => access.ask(EmptyAnswer::Declines).await?,
                None => {
                    screen::say("there is no vault yet; choose the passphrase that will unlock it");
                    let passphrase = new_passphrase(&access).await?;
                    access.vault.create(vec![passphrase]).await?
                }
            };
            self.keep_open(user, open).await;
        }
        if waiting.request.tool.as_str() == REQUEST_TOOL {
            let name = waiting.request.arguments["name"]
                .as_str()
                .unwrap_or_default();
            let name = SecretName::new(name)?;
            let value = typed_value(&access.silence(), &name).await?;
            let call = format!("{}/{}", waiting.turn, waiting.request.call);
            self.keep_typed(call, value);
        }
        Ok(())
    }
}

/// Prompts for the value of a secret, twice.
pub async fn typed_value(silence: &Silence, name: &SecretName) -> Result<SecretValue, Failure> {
    let value = typed(silence, &format!("value of {name}")).await?;
    warn_if_short(name, &value);
    Ok(value)
}

/// Prompts for something that can also be piped in, twice.
pub async fn typed(silence: &Silence, thing: &str) -> Result<SecretValue, Failure> {
    let check = |typed: &SecretValue| {
        if typed.is_empty() {
            let failure = Failure::new(Exit::Usage, "the value is empty");
            return Err(failure.next("nothing was changed; give another one"));
        }
        Ok(())
    };
    let (first, again) = (format!("{thing} (not shown): "), format!("{thing} again: "));
    let value = read_confirmed(silence, &first, &again, check).await;
    value.map_err(|failure| match failure.exit {
        Exit::Interrupted => {
            failure.next("run the command again, or pipe the value to standard input")
        }
        _ => failure,
    })
}

/// Warns about a value that is too short to be masked.
pub fn warn_if_short(name: &SecretName, value: &SecretValue) {
    if value.len() < LEAST_MASKED_BYTES {
        screen::say(&format!(
            "warning: {name} has fewer than {LEAST_MASKED_BYTES} bytes; if a service echoes it, lango cannot mask it"
        ));
    }
}
