//! The secrets of a command. If a secret is bound to a header, the command gets a placeholder, which its proxy
//! replaces. If it is bound to a program, the command gets the value after the user approved exactly this call.

use super::Commands;
use super::jobs::RunMode;
use super::request::{CommandLine, CommandRequest};
use lango_core::{Caller, Inspection, Text, UserId};
use lango_net::{Credentials, ProgramCredentials};
use lango_secrets::{
    Binding, BindingTarget, BoundSecret, SecretError, SecretStatus, SecretUser, UNLOCK_REASON,
    find_handle,
};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// The secrets that a command gets.
#[derive(Debug, Default)]
pub(super) struct CommandSecrets {
    pub(super) variables: Vec<(OsString, OsString)>,
    pub(super) credentials: Option<Credentials>,
    /// A certificate file that the command must be able to read.
    pub(super) certificates: Option<PathBuf>,
    /// Notes for the result.
    pub(super) remarks: Vec<String>,
}

/// The secrets of an approved command.
pub(super) struct SecretLookup {
    /// The bindings for commands, or why they cannot be used.
    bound: Result<Vec<BoundSecret>, SecretError>,
    uses: ProgramUses,
    /// Whether the program gets values.
    pub(super) sees_values: bool,
}

/// Settings for git, whichever program starts it: they stop git from using a workspace directory that only looks like a
/// bare repository. Directories named `.git` are protected already.
const GIT_SETTINGS: [(&str, &str); 3] = [
    ("GIT_CONFIG_COUNT", "1"),
    ("GIT_CONFIG_KEY_0", "safe.bareRepository"),
    ("GIT_CONFIG_VALUE_0", "explicit"),
];

/// The secrets whose values the program of a command would see.
#[derive(Debug, Default)]
pub(super) struct ProgramUses(Vec<BoundSecret>);

impl ProgramUses {
    fn of(bound: &[BoundSecret], command_line: &CommandLine) -> Self {
        let only = command_line.only_program();
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
        (!uses.is_empty())
            .then(|| format!("{}, and so would all programs it starts", uses.join("; ")))
    }

    /// Returns whether the user allowed exactly these uses.
    fn is_allowed(&self, caller: &Caller) -> bool {
        let asked = caller.inspection.user_only.as_deref();
        let asked = asked.map(|asked| asked.strip_suffix(&unlock_suffix()).unwrap_or(asked));
        asked.is_some() && self.reason().as_deref() == asked
    }
}

/// The text appended to another reason if the vault is locked too.
fn unlock_suffix() -> String {
    format!("; {UNLOCK_REASON}")
}

/// Describes where the secrets of a command go, for the user who approves it.
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
                    "{program} may execute code that its arguments or workspace files name, and all programs it starts see the value"
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
    /// Inspects the secrets of a command: what the user must approve, what the user should know, and why the command
    /// would fail.
    pub(super) async fn inspect_secrets(
        &self,
        caller: &Caller,
        request: &CommandRequest,
        mode: RunMode,
    ) -> Inspection {
        let Some(access) = &self.inner.secrets else {
            return Inspection::default();
        };
        let source = access.source();
        let locked = source.locked_secrets(&caller.user, Binding::COMMANDS).await;
        let bound = if locked.is_empty() {
            self.bound(&caller.user).await.unwrap_or_default()
        } else {
            locked.clone()
        };
        let uses = ProgramUses::of(&bound, &request.command_line);
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
            refused: self.refusal(caller, &uses, mode).await.map(Into::into),
            notes: notes(&usable),
            ..Inspection::default()
        }
    }

    /// Returns why a command that would see values cannot run.
    async fn refusal(&self, caller: &Caller, uses: &ProgramUses, mode: RunMode) -> Option<String> {
        let (program, _) = program_of(uses.0.first()?)?;
        let source = self.inner.secrets.as_ref()?.source();
        for secret in &uses.0 {
            let status = source.status(&caller.user, &secret.name).await.ok()?;
            if let Some(problem) = status.problem(&secret.name) {
                return Some(problem);
            }
        }
        if mode == RunMode::Background {
            return Some(format!(
                "`{program}` sees the value of a secret and must run alone; run it with `exec`"
            ));
        }
        if program == "git" && self.policy().allow_git_init {
            return Some(
                "`git` gets no secrets while `tools.exec.allowGitInit` is on, because commands can then create repositories \
                 with settings that git executes; bind the secret to a host instead"
                    .to_owned(),
            );
        }
        self.inner.jobs.conflict(&caller.session)
    }

    async fn bound(&self, user: &UserId) -> Result<Vec<BoundSecret>, SecretError> {
        match &self.inner.secrets {
            Some(access) => access.source().bound_secrets(user, Binding::COMMANDS).await,
            None => Ok(Vec::new()),
        }
    }

    /// Looks up the secrets of an approved command.
    pub(super) async fn look_up_secrets(
        &self,
        caller: &Caller,
        command_line: &CommandLine,
    ) -> SecretLookup {
        let bound = self.bound(&caller.user).await;
        let uses = ProgramUses::of(bound.as_deref().unwrap_or_default(), command_line);
        SecretLookup {
            sees_values: uses.is_allowed(caller),
            uses,
            bound,
        }
    }

    /// Prepares the secrets of an approved command. The error says why the command cannot run.
    pub(super) async fn command_secrets(
        &self,
        caller: &Caller,
        request: &CommandRequest,
        mode: RunMode,
        found: SecretLookup,
    ) -> Result<CommandSecrets, String> {
        let mut secrets = CommandSecrets::default();
        let command_line = &request.command_line;
        let bound = match &found.bound {
            Ok(bound) => bound,
            Err(error) => {
                let remark = format!("secrets: the command ran without its bound secrets: {error}");
                secrets.remarks.push(remark);
                return Ok(secrets);
            }
        };
        if found.sees_values
            && mode == RunMode::Background
            && let Some(refusal) = self.refusal(caller, &found.uses, mode).await
        {
            return Err(format!("the command was not run: {refusal}"));
        }
        if self.inner.proxy.is_some() {
            self.add_placeholders(caller, bound, &mut secrets)?;
        } else {
            // Without the proxy nothing would replace a placeholder.
            secrets
                .remarks
                .extend(missing_placeholders(bound, command_line));
        }
        self.add_values(caller, &found, command_line, &mut secrets)
            .await?;
        secrets
            .remarks
            .extend(self.literal_handle(caller, command_line).await);
        Ok(secrets)
    }

    /// Returns a note if the command contains a `secret:NAME`, which is not replaced in commands.
    async fn literal_handle(&self, caller: &Caller, command_line: &CommandLine) -> Option<String> {
        let source = self.inner.secrets.as_ref()?.source();
        let name = find_handle(&command_line.display())?;
        let status = source.status(&caller.user, &name).await.ok()?;
        (status != SecretStatus::Missing).then(|| {
            format!(
                "secrets: secret:{name} is not replaced in commands; bind the secret to a host or program, and use its variable"
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
        found: &SecretLookup,
        command_line: &CommandLine,
        secrets: &mut CommandSecrets,
    ) -> Result<(), String> {
        let SecretLookup { uses, bound, .. } = found;
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
                        "the command was not run: the secret `{name}` contains a NUL byte, which no variable can have"
                    ));
                }
                let value = OsString::from_vec(value.expose().to_vec());
                secrets.variables.push((variable.into(), value));
            } else if uses.0.contains(secret) {
                secrets.remarks.push(format!(
                    "secrets: `{program}` did not get `{name}`: its binding changed after the call was approved; run the command again"
                ));
            } else if command_line.mentions(program) {
                secrets.remarks.push(format!(
                    "secrets: `{program}` did not get `{name}`: run `{program}` alone, without a path, shell operators or substitutions"
                ));
            }
        }
        Ok(())
    }
}

/// Returns a note for each secret whose variable a command names although the command has no proxy.
fn missing_placeholders(bound: &[BoundSecret], command_line: &CommandLine) -> Vec<String> {
    let line = command_line.display();
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
                "secrets: {variable} was not set: commands can use `{name}` only if `tools.exec.network` is a list of hosts, such as `{host}`"
            )
        })
    };
    bound.iter().filter_map(remark).collect()
}
