//! Tests of the configuration with real files in a temporary folder and a made-up environment.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod edit;
mod layers;
mod paths;
mod problems;
mod show;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use lango_config::{ConfigProblems, LoadedConfig, ProcessEnv};
use tempfile::TempDir;

/// A temporary home with a project folder in it.
struct Fixture {
    root: TempDir,
    process_env: ProcessEnv,
}

impl Fixture {
    fn new() -> Self {
        let root = TempDir::new().unwrap();
        let cwd = root.path().join("home/project");
        fs::create_dir_all(&cwd).unwrap();
        let home = root.path().join("home").into_os_string();
        let env = BTreeMap::from([("HOME".into(), home), ("PATH".into(), "/bin".into())]);
        Self {
            root,
            process_env: ProcessEnv {
                env,
                cwd,
                flags: Vec::new(),
                vault_passphrase: None,
                server_vault_passphrase: None,
                new_vault_passphrase: None,
            },
        }
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.root.path().join(relative)
    }

    fn file(self, relative: &str, text: &str) -> Self {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn user_file(self, text: &str) -> Self {
        self.file("home/.config/lango/lango.toml", text)
    }

    fn project_file(self, text: &str) -> Self {
        self.file("home/project/lango.toml", text)
    }

    fn variable(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.process_env.env.insert(name.into(), value.into());
        self
    }

    fn flag(mut self, flag: &str) -> Self {
        self.process_env.flags.push(flag.into());
        self
    }

    fn load(&self) -> LoadedConfig {
        lango_config::load(&self.process_env).unwrap_or_else(|problems| panic!("{problems}"))
    }

    fn problems(&self) -> ConfigProblems {
        lango_config::load(&self.process_env).unwrap_err()
    }

    /// Returns the problems as text, without the path of the temporary folder.
    fn problem_text(&self) -> String {
        self.problems()
            .to_string()
            .replace(self.root.path().to_str().unwrap(), "")
    }
}

fn origin_of(loaded: &LoadedConfig, name: &str) -> String {
    loaded
        .values
        .iter()
        .find(|value| value.key.name == name)
        .unwrap()
        .origin
        .to_string()
}
