//! The secrets of a command. For a secret that is bound to a header it gets a placeholder, which its proxy replaces; for one
//! that is bound to a program it gets the value, after the user allowed this very call.

use super::Commands;
use super::request::Words;
use lango_core::{Caller, Text, UserId};
use lango_net::{Credentials, ProgramCredentials};
use lango_secrets::{Binding, BindingTarget, BoundSecret, SecretError};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// What a command gets.
#[derive(Debug, Default)]
pub(super) struct CommandSecrets {
    pub(super) variables: Vec<(OsString, OsString)>,
    pub(super) credentials: Option<Credentials>,
    /// A file of certificates that it must be able to read.
    pub(super) certificates: Option<PathBuf>,
    /// Remarks for the result.
    pub(super) remarks: Vec<String>,
}

/// The secrets whose values the program of a command would see.
#[derive(Debug, Default)]
pub(super) struct ProgramUses(Vec<BoundSecret>);

impl ProgramUses {
    fn of(bound: &[BoundSecret], words: &Words) -> Self {
        let only = words.only_program();
        let is_used = |secret: &&BoundSecret| {
            program_of(secret).is_some_and(|(program, _)| Some(program) == only)
        };
        Self(bound.iter().filter(is_used).cloned().collect())
    }

    /// Returns why only the user can allow the command; `None` if it sees no value.
    pub(super) fn reason(&self) -> Option<Text> {
        let uses = self.0.iter().filter_map(|secret| {
            let (program, variable) = program_of(secret)?;
            let name = &secret.name;
            Some(format!(
                "`{program}` would see the value of the secret `{name}` in the variable {variable}"
            ))
        });
        let uses: Vec<String> = uses.collect();
        (!uses.is_empty()).then(|| uses.join("; ").into())
    }
}

fn program_of(secret: &BoundSecret) -> Option<(&str, &str)> {
    match &secret.binding.target {
        BindingTarget::Program { program, variable } => Some((program, variable)),
        _ => None,
    }
}

impl Commands {
    /// Returns the secrets whose values a command would see. None if they cannot be listed: then it sees none.
    pub(super) async fn program_uses(&self, user: &UserId, words: &Words) -> ProgramUses {
        let bound = self.bound(user).await.unwrap_or_default();
        ProgramUses::of(&bound, words)
    }

    async fn bound(&self, user: &UserId) -> Result<Vec<BoundSecret>, SecretError> {
        match &self.inner.secrets {
            Some(access) => access.source().bound(user, Binding::COMMANDS).await,
            None => Ok(Vec::new()),
        }
    }

    /// Prepares the secrets of a command that was allowed. The error says why it cannot run.
    pub(super) async fn command_secrets(
        &self,
        caller: &Caller,
        words: &Words,
    ) -> Result<CommandSecrets, String> {
        let mut secrets = CommandSecrets::default();
        let bound = match self.bound(&caller.user).await {
            Ok(bound) => bound,
            Err(error) => {
                let remark = format!("secrets: this command ran without bound secrets: {error}");
                secrets.remarks.push(remark);
                return Ok(secrets);
            }
        };
        if self.inner.proxy.is_some() {
            self.add_placeholders(caller, &bound, &mut secrets)?;
        } else {
            // Without the proxy nothing would replace a placeholder.
            secrets.remarks.extend(missing_placeholders(&bound, words));
        }
        self.add_values(caller, &bound, words, &mut secrets).await?;
        Ok(secrets)
    }

    fn add_placeholders(
        &self,
        caller: &Caller,
        bound: &[BoundSecret],
        secrets: &mut CommandSecrets,
    ) -> Result<(), String> {
        let Some(access) = &self.inner.secrets else {
            return Ok(());
        };
        let prepared = access.credentials(&caller.user, bound);
        let prepared = prepared.map_err(|error| {
            format!("the command was not run: its secrets cannot be prepared: {error}")
        })?;
        if let Some(ProgramCredentials {
            credentials,
            variables,
            certificates,
        }) = prepared
        {
            let variables = variables.into_iter();
            secrets.variables = variables
                .map(|(name, value)| (name.into(), value.into()))
                .collect();
            secrets.credentials = Some(credentials);
            secrets.certificates = Some(certificates);
        }
        Ok(())
    }

    async fn add_values(
        &self,
        caller: &Caller,
        bound: &[BoundSecret],
        words: &Words,
        secrets: &mut CommandSecrets,
    ) -> Result<(), String> {
        let uses = ProgramUses::of(bound, words);
        let reason = uses.reason();
        let is_allowed = reason.is_some() && reason == caller.inspection.user_only;
        for secret in bound {
            let Some((program, variable)) = program_of(secret) else {
                continue;
            };
            let name = &secret.name;
            if uses.0.contains(secret) && is_allowed {
                let Some(access) = &self.inner.secrets else {
                    continue;
                };
                let value = access.source().resolve(&caller.user, secret).await;
                let value = value.map_err(|error| format!("the command was not run: {error}"))?;
                if value.expose().contains(&0) {
                    return Err(format!(
                        "the command was not run: the secret `{name}` has a NUL byte, which no variable can hold"
                    ));
                }
                let value = OsString::from_vec(value.expose().to_vec());
                secrets.variables.push((variable.into(), value));
            } else if uses.0.contains(secret) {
                secrets.remarks.push(format!(
                    "secrets: `{program}` did not get `{name}`: its binding changed after you were asked; run the command again"
                ));
            } else if words.mentions(program) {
                secrets.remarks.push(format!(
                    "secrets: `{program}` did not get `{name}`: run `{program}` alone, without a path, shell operators or substitutions"
                ));
            }
        }
        Ok(())
    }
}

/// Returns a remark for each secret whose variable a command names although the command has no proxy.
fn missing_placeholders(bound: &[BoundSecret], words: &Words) -> Vec<String> {
    let line = words.shown();
    let remark = |secret: &BoundSecret| {
        let BindingTarget::Header {
            origin, variable, ..
        } = &secret.binding.target
        else {
            return None;
        };
        line.contains(&**variable).then(|| {
            let (name, host) = (&secret.name, origin.host());
            format!(
                "secrets: {variable} was not set: commands use `{name}` only where `tools.exec.network` lists the hosts that they reach, such as `{host}`"
            )
        })
    };
    bound.iter().filter_map(remark).collect()
}
