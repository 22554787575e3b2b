//! A temporary home, a workspace and an effects file, isolated from the developer's environment.

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// The folders that lango runs in. Each effect of a tool adds one line to the effects file, which only agents' commands
/// write.
pub(crate) struct TestEnv {
    root: TempDir,
    has_browser: bool,
}

/// One line of the effects file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EffectLine {
    /// The number of the job.
    pub number: u64,
    /// The idempotency key of the call.
    pub key: String,
}

impl TestEnv {
    /// Creates an environment with this model, everything allowed, and additional lines of configuration.
    pub(crate) fn new(model_url: &str, more: &str) -> Self {
        Self::with_configuration(&format!(
            "[agent]\nmodel = 'mock/any'\n\
             [providers.mock]\nkind = 'openai'\nbaseUrl = '{model_url}'\n\
             [[approval.rules]]\naction = 'allow'\n\
             {more}"
        ))
    }

    /// Creates an environment with exactly this configuration.
    pub(crate) fn with_configuration(configuration: &str) -> Self {
        let test_env = Self {
            root: tempfile::tempdir().expect("a temporary folder"),
            has_browser: false,
        };
        fs::create_dir_all(test_env.home()).expect("a home");
        fs::create_dir_all(test_env.workspace().join("written")).expect("a workspace");
        fs::write(test_env.workspace().join("notes.md"), "# Notes\n").expect("a file");
        fs::write(test_env.effects_file(), "").expect("a file");
        fs::write(test_env.home().join("lango.toml"), configuration).expect("a file");
        test_env
    }

    /// Enables the browser.
    pub(crate) fn with_browser(mut self) -> Self {
        self.has_browser = true;
        self
    }

    /// Counts the private directories of browsers, running or left behind.
    pub(crate) fn browsers(&self) -> usize {
        let entries = fs::read_dir(self.home().join("browsers"));
        let entries = entries.into_iter().flatten().flatten();
        let is_lock = |path: &Path| {
            path.extension()
                .is_some_and(|extension| extension == "lock")
        };
        entries.filter(|entry| is_lock(&entry.path())).count()
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.home().join("lango.db")
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.root.path().join("workspace")
    }

    /// Keeps the folders for inspection and returns their root.
    pub(crate) fn keep(self) -> PathBuf {
        self.root.keep()
    }

    fn effects_file(&self) -> PathBuf {
        self.workspace().join(super::script::EFFECTS_FILE)
    }

    /// Returns the `lango` command in this environment, without arguments.
    pub(crate) fn lango(&self) -> Command {
        self.lango_with_home(&self.home())
    }

    /// Returns the `lango` command with another home, as a replica on another machine has.
    pub(crate) fn lango_with_home(&self, home: &Path) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lango"));
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("LANGO_HOME", home)
            .env("LANGO_BROWSER_ENABLED", self.has_browser.to_string())
            .env("LANGO_AGENT_FIND_LOCAL_MODELS", "false")
            .current_dir(self.workspace())
            .stdin(Stdio::null());
        command
    }

    /// Runs a command and returns the JSON that it prints, or `None` if it failed.
    pub(crate) fn json(&self, arguments: &[&str]) -> Option<Value> {
        let output = self.lango().args(arguments).output().expect("lango starts");
        let is_success = output.status.success();
        is_success.then(|| serde_json::from_slice(&output.stdout).expect("JSON"))
    }

    /// Returns the effects so far. Panics on an incomplete line: commands write a line with a single call.
    pub(crate) fn effects(&self) -> Vec<EffectLine> {
        let text = fs::read_to_string(self.effects_file()).expect("the effects file");
        assert!(
            text.is_empty() || text.ends_with('\n'),
            "the effects file ends with an incomplete line"
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

    /// Returns the jobs whose file exists with the right content.
    pub(crate) fn written(&self) -> BTreeSet<u64> {
        let files = fs::read_dir(self.workspace().join("written")).expect("the folder");
        let paths = files.map(|file| file.expect("a file").path());
        let written = paths.filter_map(|path| {
            let number: u64 = path.file_name()?.to_str()?.parse().ok()?;
            let text = fs::read_to_string(&path).ok()?;
            (text == super::script::content(number)).then_some(number)
        });
        written.collect()
    }

    /// Returns the names that may author events: all agents, and the user.
    pub(crate) fn authors(&self) -> BTreeSet<String> {
        let tree = self.json(&["agents", "--json"]).expect("the agents");
        let agents = tree["agents"].as_array().expect("a list").iter();
        let names = agents.chain([&tree["root"]]).map(|agent| &agent["name"]);
        let names = names.map(|name| name.as_str().expect("a name").to_owned());
        names.chain(["user".to_owned()]).collect()
    }
}
