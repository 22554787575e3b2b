//! A home, a workspace and the file of effects, with nothing of the developer's environment.

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Where lango runs. Each effect of a tool is one line in a file that only the commands of agents write.
pub struct Place {
    root: TempDir,
    has_browser: bool,
}

/// One line of the file of effects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectLine {
    /// The job it was done for.
    pub number: u64,
    /// The key of the call that did it.
    pub key: String,
}

impl Place {
    /// With this model, and these lines of configuration besides.
    pub fn new(model_url: &str, more: &str) -> Self {
        Self::with_configuration(&format!(
            "[agent]\nmodel = 'mock/any'\n\
             [providers.mock]\nkind = 'openai'\nbaseUrl = '{model_url}'\n\
             [[approval.rules]]\naction = 'allow'\n\
             {more}"
        ))
    }

    /// With nothing but these lines of configuration.
    pub fn with_configuration(configuration: &str) -> Self {
        let place = Self {
            root: tempfile::tempdir().expect("a temporary folder"),
            has_browser: false,
        };
        fs::create_dir_all(place.home()).expect("a home");
        fs::create_dir_all(place.workspace().join("written")).expect("a workspace");
        fs::write(place.workspace().join("notes.md"), "# Notes\n").expect("a file");
        fs::write(place.effects_file(), "").expect("a file");
        fs::write(place.home().join("lango.toml"), configuration).expect("a file");
        place
    }

    /// The same for agents with a browser.
    pub fn with_browser(mut self) -> Self {
        self.has_browser = true;
        self
    }

    /// How many browsers have their private directory, alive or left behind.
    pub fn browsers(&self) -> usize {
        let entries = fs::read_dir(self.home().join("browsers"));
        let entries = entries.into_iter().flatten().flatten();
        let is_lock = |path: &Path| {
            path.extension()
                .is_some_and(|extension| extension == "lock")
        };
        entries.filter(|entry| is_lock(&entry.path())).count()
    }

    pub fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    pub fn database(&self) -> PathBuf {
        self.home().join("lango.db")
    }

    pub fn workspace(&self) -> PathBuf {
        self.root.path().join("workspace")
    }

    /// Keeps everything for a look at it.
    pub fn keep(self) -> PathBuf {
        self.root.keep()
    }

    fn effects_file(&self) -> PathBuf {
        self.workspace().join(super::script::EFFECTS_FILE)
    }

    /// The program with its surroundings, ready to be given arguments and started.
    pub fn lango(&self) -> Command {
        self.lango_with_home(&self.home())
    }

    /// The same with another home, as another machine has.
    pub fn lango_with_home(&self, home: &Path) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lango"));
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("LANGO_HOME", home)
            .env("LANGO_BROWSER_ENABLED", self.has_browser.to_string())
            .current_dir(self.workspace())
            .stdin(Stdio::null());
        command
    }

    /// What a command prints as JSON; none if it failed.
    pub fn json(&self, arguments: &[&str]) -> Option<Value> {
        let output = self.lango().args(arguments).output().expect("it starts");
        let is_fine = output.status.success();
        is_fine.then(|| serde_json::from_slice(&output.stdout).expect("JSON"))
    }

    /// The effects so far. A line that is not whole is nobody's: it would mean that a command did not write it at once.
    pub fn effects(&self) -> Vec<EffectLine> {
        let text = fs::read_to_string(self.effects_file()).expect("the file of effects");
        assert!(
            text.is_empty() || text.ends_with('\n'),
            "half a line of effects"
        );
        let line = |line: &str| {
            let (number, key) = line.split_once(' ').expect("number and key");
            EffectLine {
                number: number.parse().expect("a number"),
                key: key.to_owned(),
            }
        };
        text.lines().map(line).collect()
    }

    /// The jobs whose file is there, as it has to be.
    pub fn written(&self) -> BTreeSet<u64> {
        let files = fs::read_dir(self.workspace().join("written")).expect("the folder");
        let paths = files.map(|file| file.expect("a file").path());
        let right = paths.filter_map(|path| {
            let number: u64 = path.file_name()?.to_str()?.parse().ok()?;
            let text = fs::read_to_string(&path).ok()?;
            (text == super::script::content(number)).then_some(number)
        });
        right.collect()
    }

    /// Who there is: the names that may stand in the log.
    pub fn authors(&self) -> BTreeSet<String> {
        let tree = self.json(&["agents", "--json"]).expect("the agents");
        let agents = tree["agents"].as_array().expect("a list").iter();
        let names = agents.chain([&tree["root"]]).map(|agent| &agent["name"]);
        let names = names.map(|name| name.as_str().expect("a name").to_owned());
        names.chain(["user".to_owned()]).collect()
    }
}
