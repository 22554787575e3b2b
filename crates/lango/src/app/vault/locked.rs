//! A vault that no method unlocked: the reasons, and the next step for each of its unlock methods.

use super::VaultAccess;
use crate::app::failure::Failure;
use lango_vault::{MethodKind, SealedVault};

#[derive(Debug, Clone)]
pub struct LockedVault {
    /// Why the methods of this machine failed.
    pub problems: Vec<String>,
    methods: Vec<MethodKind>,
    has_key_file_setting: bool,
    is_passphrase_wrong: bool,
    name: String,
    command: &'static str,
    /// The environment variable for the passphrase.
    variable: &'static str,
}

impl LockedVault {
    pub(super) fn new(access: &VaultAccess, sealed: &SealedVault, problems: Vec<String>) -> Self {
        let methods = sealed.methods().iter().map(|method| method.kind());
        Self {
            problems,
            methods: methods.collect(),
            has_key_file_setting: access.key_file.is_some(),
            is_passphrase_wrong: false,
            name: access.name(),
            command: access.command(),
            variable: access.own_passphrase_variable(),
        }
    }

    /// Marks that the passphrase in the environment is wrong.
    pub(super) fn with_wrong_passphrase(mut self) -> Self {
        self.is_passphrase_wrong = true;
        let (variable, name) = (self.variable, &self.name);
        self.problems = vec![format!("{variable} does not unlock the {name}")];
        self
    }

    /// Returns whether typing the passphrase at a terminal would unlock it.
    pub fn can_be_typed(&self) -> bool {
        !self.is_passphrase_wrong && self.methods.contains(&MethodKind::Passphrase)
    }

    /// Returns the name of the vault, without an article.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Describes that it is locked, and why the methods of this machine failed.
    pub fn status(&self) -> String {
        let problems = self.problems.join("; ");
        if self.is_passphrase_wrong {
            return problems;
        }
        match problems.as_str() {
            "" => format!("the {} is locked", self.name),
            problems => format!("the {} is locked: {problems}", self.name),
        }
    }

    /// Describes how to unlock it.
    pub fn next_step(&self) -> String {
        let (command, variable) = (self.command, self.variable);
        if self.is_passphrase_wrong {
            return format!("correct {variable}, or unset it to unlock the vault in another way");
        }
        let mut steps = Vec::new();
        for method in &self.methods {
            let step = match method {
                MethodKind::Passphrase => format!(
                    "`{command} unlock` at a terminal, or set {variable} for scripts and servers"
                ),
                MethodKind::KeyFile if self.has_key_file_setting => {
                    "put the key file of this vault, readable only by you, at the path in `vault.keyFile`"
                        .to_owned()
                }
                MethodKind::KeyFile => {
                    "set `vault.keyFile` to the key file of this vault".to_owned()
                }
                MethodKind::Keyring => {
                    "run the command in the desktop session whose keyring has the key".to_owned()
                }
            };
            if !steps.contains(&step) {
                steps.push(step);
            }
        }
        steps.join("; or ")
    }

    /// Returns status and next step on one line, for tool results.
    pub fn line(&self) -> String {
        let next = self.next_step();
        let status = self.status();
        if self.is_passphrase_wrong {
            return format!("{status}; the user can {next}");
        }
        format!("{status}; only the user can unlock it: {next}")
    }
}

impl From<LockedVault> for Failure {
    fn from(locked: LockedVault) -> Self {
        let text = if locked.is_passphrase_wrong {
            locked.problems.join("\n  ")
        } else {
            let problems = locked.problems.iter();
            let problems: String = problems.map(|problem| format!("\n  {problem}")).collect();
            format!("the {} is locked{problems}", locked.name)
        };
        Self::config(text).next(locked.next_step())
    }
}
