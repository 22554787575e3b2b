//! The secrets of a command. For a secret that is bound to a header it gets a placeholder, which its proxy replaces; for one
//! that is bound to a program it gets the value, after the user allowed this very call.

use super::Commands;
use super::jobs::Ground;
use super::request::{Request, Words};
use lango_core::{Caller, Inspection, Text, UserId};
use lango_net::{Credentials, ProgramCredentials};
use lango_secrets::{
    Binding, BindingTarget, BoundSecret, SecretError, SecretStatus, SecretUser, UNLOCK_REASON,
    handle_in,
};
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

/// The secrets of a command that was allowed.
pub(super) struct FoundSecrets {
    /// The bindings for commands, or why they cannot be used.
    bound: Result<Vec<BoundSecret>, SecretError>,
    uses: ProgramUses,
    /// Whether its program gets values.
    pub(super) sees_values: bool,
}

/// Settings for git, by whichever program it is started: a directory of the workspace that only looks like a repository is
/// none. Directories called `.git` are protected already.
const GIT_SETTINGS: [(&str, &str); 3] = [
    ("GIT_CONFIG_COUNT", "1"),
    ("GIT_CONFIG_KEY_0", "safe.bareRepository"),
    ("GIT_CONFIG_VALUE_0", "explicit"),
];

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
    fn reason(&self) -> Option<String> {
        let uses = self.0.iter().filter_map(|secret| {
            let (program, variable) = program_of(secret)?;
            let name = &secret.name;
            Some(format!(
                "`{program}` would see the value of the secret `{name}` in the variable {variable}"
            ))
        });
        let uses: Vec<String> = uses.collect();
        (!uses.is_empty()).then(|| format!("{}, and so would all that it starts", uses.join("; ")))
    }

    /// Returns whether the user allowed exactly these uses.
    fn is_allowed(&self, caller: &Caller) -> bool {
        let asked = caller.inspection.user_only.as_deref();
        let asked = asked.map(|asked| asked.strip_suffix(&unlock_suffix()).unwrap_or(asked));
        asked.is_some() && self.reason().as_deref() == asked
    }
}

/// What follows another reason if the vault is locked too.
fn unlock_suffix() -> String {
    format!("; {UNLOCK_REASON}")
}

/// Describes where the secrets of a command go, for the user who is asked.
fn notes(usable: &[&BoundSecret]) -> Vec<Text> {
    let mut notes = Vec::new();
    for BoundSecret { name, binding } in usable {
        match &binding.target {
            BindingTarget::Header {
                origin,
                header,
                variable,
            } => notes.push(format!(
                "may use: {name}, only in the header {header} of requests to {origin} (placeholder in {variable})"
            )),
            BindingTarget::Program { program, variable } => notes.extend([
                format!("SEES: {name}, in the variable {variable} of {program}"),
                format!(
                    "{program} may execute what its arguments and files of the workspace tell it to, and all that it starts sees the value"
                ),
            ]),
            BindingTarget::Field { .. } | BindingTarget::ServerField { .. } => {}
        }
    }
    notes.into_iter().map(Into::into).collect()
}

fn program_of(secret: &BoundSecret) -> Option<(&str, &str)> {
    match &secret.binding.target {
        BindingTarget::Program { program, variable } => Some((program, variable)),
        _ => None,
    }
}

impl Commands {
    /// Inspects the secrets of a command: what the user has to allow and should know, and why it cannot work.
    pub(super) async fn inspect_secrets(
        &self,
        caller: &Caller,
        request: &Request,
        ground: Ground,
    ) -> Inspection {
        let Some(access) = &self.inner.secrets else {
            return Inspection::default();
        };
        let source = access.source();
        let locked = source.locked(&caller.user, Binding::COMMANDS).await;
        let bound = match locked.is_empty() {
            true => self.bound(&caller.user).await.unwrap_or_default(),
            false => locked.clone(),
        };
        let uses = ProgramUses::of(&bound, &request.words);
        let has_proxy = self.inner.proxy.is_some();
        let is_usable = |secret: &&BoundSecret| {
            uses.0.contains(secret) || has_proxy && secret.binding.target.is_header()
        };
        let usable: Vec<&BoundSecret> = bound.iter().filter(is_usable).collect();
        let needs_unlock = !locked.is_empty() && !usable.is_empty();
        let user_only = match (uses.reason(), needs_unlock) {
            (Some(reason), true) => Some(reason + &unlock_suffix()),
            (None, true) => Some(UNLOCK_REASON.to_owned()),
            (reason, false) => reason,
        };
        Inspection {
            user_only: user_only.map(Into::into),
            refused: self.refusal(caller, &uses, ground).await.map(Into::into),
            notes: notes(&usable),
            ..Inspection::default()
        }
    }

    /// Returns why a command that would see values cannot run.
    async fn refusal(&self, caller: &Caller, uses: &ProgramUses, ground: Ground) -> Option<String> {
        let (program, _) = program_of(uses.0.first()?)?;
        let source = self.inner.secrets.as_ref()?.source();
        for secret in &uses.0 {
            let status = source.status(&caller.user, &secret.name).await.ok()?;
            if let Some(problem) = status.problem(&secret.name) {
                return Some(problem);
            }
        }
        if ground == Ground::Back {
            return Some(format!(
                "`{program}` sees the value of a secret, and nothing else may run meanwhile; run it with `exec`"
            ));
        }
        if program == "git" && self.policy().allow_git_init {
            return Some(
                "`git` sees no secrets while `tools.exec.allowGitInit` is on, because commands can then make repositories \
                 whose settings it executes; bind the secret to a host instead"
                    .to_owned(),
            );
        }
        self.inner.jobs.conflict(&caller.session)
    }

    async fn bound(&self, user: &UserId) -> Result<Vec<BoundSecret>, SecretError> {
        match &self.inner.secrets {
            Some(access) => access.source().bound(user, Binding::COMMANDS).await,
            None => Ok(Vec::new()),
        }
    }

    /// Finds the secrets of a command that was allowed.
    pub(super) async fn find_secrets(&self, caller: &Caller, words: &Words) -> FoundSecrets {
        let bound = self.bound(&caller.user).await;
        let uses = ProgramUses::of(bound.as_deref().unwrap_or_default(), words);
        FoundSecrets {
            sees_values: uses.is_allowed(caller),
            uses,
            bound,
        }
    }

    /// Prepares the secrets of a command that was allowed. The error says why it cannot run.
    pub(super) async fn command_secrets(
        &self,
        caller: &Caller,
        request: &Request,
        ground: Ground,
        found: FoundSecrets,
    ) -> Result<CommandSecrets, String> {
        let mut secrets = CommandSecrets::default();
        let words = &request.words;
        let bound = match &found.bound {
            Ok(bound) => bound,
            Err(error) => {
                let remark = format!(
                    "secrets: no bound secret was inserted into this command, it ran without: {error}"
                );
                secrets.remarks.push(remark);
                return Ok(secrets);
            }
        };
        if found.sees_values
            && ground == Ground::Back
            && let Some(refusal) = self.refusal(caller, &found.uses, ground).await
        {
            return Err(format!("the command was not run: {refusal}"));
        }
        if self.inner.proxy.is_some() {
            self.add_placeholders(caller, bound, &mut secrets)?;
        } else {
            // Without the proxy nothing would replace a placeholder.
            secrets.remarks.extend(missing_placeholders(bound, words));
        }
        self.add_values(caller, &found, words, &mut secrets).await?;
        secrets
            .remarks
            .extend(self.literal_handle(caller, words).await);
        Ok(secrets)
    }

    /// Returns a remark if the command has a `secret:NAME`, which nothing replaces there.
    async fn literal_handle(&self, caller: &Caller, words: &Words) -> Option<String> {
        let source = self.inner.secrets.as_ref()?.source();
        let name = handle_in(&words.shown())?;
        let status = source.status(&caller.user, &name).await.ok()?;
        (status != SecretStatus::Missing).then(|| {
            format!(
                "secrets: secret:{name} is not resolved in commands; bind the secret to a host or program, and use its variable"
            )
        })
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
        let prepared = access.credentials(&SecretUser::agent(caller), bound);
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
        found: &FoundSecrets,
        words: &Words,
        secrets: &mut CommandSecrets,
    ) -> Result<(), String> {
        let FoundSecrets { uses, bound, .. } = found;
        if found.sees_values {
            let settings = GIT_SETTINGS.iter();
            let settings = settings.map(|(name, value)| (name.into(), value.into()));
            secrets.variables.extend(settings);
        }
        for secret in bound.as_deref().unwrap_or_default() {
            let Some((program, variable)) = program_of(secret) else {
                continue;
            };
            let name = &secret.name;
            if uses.0.contains(secret) && found.sees_values {
                let Some(access) = &self.inner.secrets else {
                    continue;
                };
                let value = access
                    .source()
                    .resolve(&SecretUser::agent(caller), secret)
                    .await;
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
            let (name, host) = (&secret.name, origin.host_and_port());
            format!(
                "secrets: {variable} was not set: commands use `{name}` only where `tools.exec.network` lists the hosts that they reach, such as `{host}`"
            )
        })
    };
    bound.iter().filter_map(remark).collect()
}
