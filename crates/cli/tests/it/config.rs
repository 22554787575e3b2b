//! The configuration, read from real files in a folder of its own, with everything else made up.

mod layers;
mod problems;
mod show;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use lango_cli::config::{self, Loaded, Problems, Surroundings};
use tempfile::TempDir;

/// A home with a project in it.
struct Place {
    root: TempDir,
    surroundings: Surroundings,
}

impl Place {
    fn new() -> Self {
        let root = TempDir::new().unwrap();
        let cwd = root.path().join("home/project");
        fs::create_dir_all(&cwd).unwrap();
        let home = root.path().join("home").into_os_string();
        let env = BTreeMap::from([("HOME".into(), home), ("PATH".into(), "/bin".into())]);
        Self {
            root,
            surroundings: Surroundings {
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
        self.surroundings.env.insert(name.into(), value.into());
        self
    }

    fn flag(mut self, flag: &str) -> Self {
        self.surroundings.flags.push(flag.into());
        self
    }

    fn load(&self) -> Loaded {
        config::load(&self.surroundings).unwrap_or_else(|problems| panic!("{problems}"))
    }

    fn problems(&self) -> Problems {
        config::load(&self.surroundings).unwrap_err()
    }

    /// The problems as text, with the temporary folder cut out.
    fn complaint(&self) -> String {
        self.problems()
            .to_string()
            .replace(self.root.path().to_str().unwrap(), "")
    }
}

fn origin_of(loaded: &Loaded, name: &str) -> String {
    loaded
        .values
        .iter()
        .find(|value| value.key.name == name)
        .unwrap()
        .origin
        .to_string()
}
