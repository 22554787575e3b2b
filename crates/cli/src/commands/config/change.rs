//! `lango config set` and `unset`: change one key of the user's or the project's file.

use crate::screen;
use lango::app::Failure;
use lango_config::edit::{self, EditError, FileChange};
use lango_config::{ConfigValue, Origin, Paths, ProcessEnv, TrustedFiles};
use std::path::{Path, PathBuf};

/// The configuration file to change.
pub(super) struct TargetFile {
    pub path: PathBuf,
    pub process_env: ProcessEnv,
    pub paths: Paths,
    is_of_project: bool,
}

impl TargetFile {
    /// Returns the user's file, or the project's: the one that lango reads in this folder, or else a new one here.
    pub(super) fn locate(flags: Vec<String>, is_of_project: bool) -> Result<Self, Failure> {
        let process_env = ProcessEnv::from_process(flags)?;
        let paths = Paths::locate(&process_env)?;
        let path = if is_of_project {
            let foreign = paths.foreign_project_file().map(|foreign| &foreign.path);
            let existing = paths.project_file.as_ref().or(foreign).cloned();
            existing.unwrap_or_else(|| process_env.cwd.join("lango.toml"))
        } else {
            paths.user_file.clone()
        };
        if is_of_project && path == paths.user_file {
            let message = format!("`{}` is your own file, not a project's", path.display());
            return Err(Failure::usage(message).next("leave out --project"));
        }
        Ok(Self {
            path,
            process_env,
            paths,
            is_of_project,
        })
    }

    pub(super) fn set(&self, key: &str, text: &str) -> Result<(), Failure> {
        let value = edit::parse_value(&self.process_env, &self.path, key, text)?;
        self.refuse_if_ignored(key)?;
        let change = edit::set(&self.path, key, &value)?;
        let shown = lango_config::redact_value(value);
        screen::print(&format!("{key} = {shown} in {}", self.path.display()))?;
        self.trust_again(&change)?;
        note_if_overridden(&self.process_env, key, &self.path);
        Ok(())
    }

    pub(super) fn unset(&self, key: &str) -> Result<(), Failure> {
        let change = match edit::unset(&self.path, key) {
            Err(error @ EditError::NotSet { .. }) => {
                // A misspelled key is the likelier cause.
                edit::check_key(key)?;
                return Err(error.into());
            }
            changed => changed?,
        };
        screen::print(&format!("removed {key} from {}", self.path.display()))?;
        self.trust_again(&change)?;
        note_if_overridden(&self.process_env, key, &self.path);
        Ok(())
    }

    /// Trusts the new content of a project's file if the user trusted the content before, or if there was none. The user
    /// made this change, so there is nothing in the file that they have not seen.
    pub(super) fn trust_again(&self, change: &FileChange) -> Result<(), Failure> {
        if !self.is_of_project {
            return Ok(());
        }
        let mut trust = TrustedFiles::read(&self.paths);
        let was_trusted = change
            .before
            .as_ref()
            .is_none_or(|before| trust.is_trusted(&self.path, before));
        if was_trusted {
            trust.add(&self.path, &change.after);
            trust.write()?;
        } else {
            screen::say("the file is not trusted; `lango config trust` shows it and trusts it");
        }
        Ok(())
    }

    /// Refuses a key that lango would ignore in the project's file, because the user does not trust the file.
    fn refuse_if_ignored(&self, key: &str) -> Result<(), Failure> {
        if !self.is_of_project || !edit::check_key(key)?.is_ignored_while_untrusted() {
            return Ok(());
        }
        let trust = TrustedFiles::read(&self.paths);
        match edit::read(&self.path)? {
            Some(content) if !trust.is_trusted(&self.path, &content) => {
                let message = format!(
                    "`{key}` would be ignored in `{}`, because you do not trust this file",
                    self.path.display()
                );
                Err(Failure::usage(message).next(
                    "read and trust it with `lango config trust`, or leave out --project to set the key for all projects",
                ))
            }
            _ => Ok(()),
        }
    }
}

/// Tells the user if another layer decides about a key that was changed in a file, or if the configuration is invalid.
fn note_if_overridden(process_env: &ProcessEnv, key: &str, file: &Path) {
    let loaded = match lango_config::load(process_env) {
        Ok(loaded) => loaded,
        Err(problems) => {
            return screen::say(&format!(
                "warning: the configuration has problems:\n{problems}"
            ));
        }
    };
    let value = loaded.values.iter().find(|value| value.name == key);
    let Some(ConfigValue { origin, .. }) = value else {
        return;
    };
    let is_overridden = match origin {
        Origin::Default => false,
        Origin::File { path, .. } => path != file,
        Origin::Variable(_) | Origin::Flag => true,
    };
    if is_overridden {
        screen::say(&format!("{origin} sets {key} here, and wins"));
    }
}
