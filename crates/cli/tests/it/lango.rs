//! Runs the real binary in a temporary home and workspace, isolated from the developer's environment.

use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// The binary under test.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_lango");

/// Time limit for a command before it counts as hanging.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Settings without which a test would depend on whether a browser is installed, or a model server runs.
pub(crate) const ISOLATION: [(&str, &str); 2] = [
    ("LANGO_BROWSER_ENABLED", "false"),
    ("LANGO_AGENT_FIND_LOCAL_MODELS", "false"),
];

/// A temporary home and workspace for the binary.
pub(crate) struct Lango {
    root: Arc<TempDir>,
    home: PathBuf,
}

impl Lango {
    /// Creates an empty home, and a workspace with `notes.md`, `budget.csv` and `src/main.rs`.
    pub(crate) fn new() -> Self {
        let root = Arc::new(tempfile::tempdir().unwrap());
        let home = root.path().join("home");
        let lango = Self { root, home };
        lango.file("notes.md", "# Notes\n\nBuy *bread*.\n");
        lango.file("budget.csv", "rent,900\n");
        lango.file("src/main.rs", "fn main() {}\n");
        lango
    }

    /// Creates a new workspace with its home at this path.
    pub(crate) fn with_home(home: &Path) -> Self {
        let mut lango = Self::new();
        lango.home = home.to_owned();
        lango
    }

    /// Changes the home and keeps the workspace.
    pub(crate) fn using_home(mut self, home: &Path) -> Self {
        home.clone_into(&mut self.home);
        self
    }

    /// Returns another value for the same home and workspace.
    pub(crate) fn sibling(&self) -> Self {
        Self {
            root: Arc::clone(&self.root),
            home: self.home.clone(),
        }
    }

    /// Returns the folder of lango's files. It does not exist until lango creates it.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// Returns the path of the default store's database.
    pub(crate) fn database(&self) -> PathBuf {
        self.home.join("lango.db")
    }

    /// Returns the folder that the agents work in.
    pub(crate) fn workspace(&self) -> PathBuf {
        self.root.path().join("workspace")
    }

    /// Writes a file into the workspace.
    pub(crate) fn file(&self, path: &str, content: impl AsRef<[u8]>) {
        write(&self.workspace().join(path), content);
    }

    /// Creates a folder `many/` with so many files that listing them takes a while.
    pub(crate) fn create_many_files(&self) {
        let folder = self.workspace().join("many");
        fs::create_dir(&folder).unwrap();
        for number in 0..20_000 {
            fs::File::create(folder.join(number.to_string())).unwrap();
        }
    }

    /// Writes a file into the home.
    pub(crate) fn home_file(&self, path: &str, content: impl AsRef<[u8]>) {
        write(&self.home.join(path), content);
    }

    /// Returns the command without starting it. Its standard input is empty.
    pub(crate) fn command<A: AsRef<std::ffi::OsStr>>(&self, arguments: &[A]) -> Command {
        let mut command = Command::new(BINARY);
        self.prepare(&mut command).args(arguments);
        command
    }

    /// Gives a command the environment, working folder and standard input that lango gets.
    pub(crate) fn prepare<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("LANGO_HOME", &self.home)
            .envs(ISOLATION)
            .current_dir(self.workspace())
            .stdin(Stdio::null())
    }

    /// Returns the command with the defaults of all settings.
    pub(crate) fn command_with_defaults(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(arguments);
        for (variable, _) in ISOLATION {
            command.env_remove(variable);
        }
        command
    }

    /// Runs a command until it exits.
    pub(crate) fn run(&self, arguments: &[&str]) -> RunResult {
        finish(&mut self.command(arguments), b"")
    }

    /// Runs a command with this standard input.
    pub(crate) fn piped(&self, arguments: &[&str], input: impl AsRef<[u8]>) -> RunResult {
        finish(
            self.command(arguments).stdin(Stdio::piped()),
            input.as_ref(),
        )
    }

    /// Asks a question in a new session and returns the JSON that `--json` prints.
    pub(crate) fn ask(&self, question: &str) -> Value {
        self.run(&["run", "--json", question]).ok().json()
    }

    /// Asks a question in a new session and returns the session's id.
    pub(crate) fn session(&self, question: &str) -> String {
        text(&self.ask(question)["session"]).to_owned()
    }

    /// Returns the stored events of a session.
    pub(crate) fn events(&self, session: &str) -> Vec<Value> {
        self.run(&["sessions", "show", session, "--jsonl"])
            .ok()
            .json_lines()
    }

    /// Returns every file below the home with its content.
    pub(crate) fn stored_files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files = Vec::new();
        let mut folders = vec![self.home.clone()];
        while let Some(folder) = folders.pop() {
            for entry in folder.read_dir().into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    files.push((path.clone(), fs::read(path).unwrap()));
                }
            }
        }
        files.sort();
        files
    }
}

/// The exit status and output of a command.
#[derive(Debug)]
pub(crate) struct RunResult {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl RunResult {
    /// Asserts that the command succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        self.exits(0)
    }

    /// Asserts that the command exited with this code and did not panic.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        assert!(!self.stderr.contains("panicked"), "{self:#?}");
        self
    }

    /// Asserts that the command failed with this code and printed nothing on stdout, and that its error contains each
    /// of these texts and a next step.
    #[track_caller]
    pub(crate) fn refused(self, code: i32, names: &[&str]) -> Self {
        let ran = self.exits(code);
        assert_eq!(ran.stdout, "", "{ran:#?}");
        assert!(ran.stderr.starts_with("error: "), "{ran:#?}");
        for name in names {
            assert!(ran.stderr.contains(name), "no `{name}` in {ran:#?}");
        }
        assert!(ran.stderr.contains("\n  next: "), "no next step: {ran:#?}");
        ran
    }

    /// Parses the output as one JSON value.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// Parses the output as one JSON value per line.
    #[track_caller]
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        self.stdout.lines().map(parse).collect()
    }
}

/// Runs a command until it exits. Kills a command that hangs, and fails the test.
pub(crate) fn finish(command: &mut Command, input: &[u8]) -> RunResult {
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    finish_child(child, input)
}

/// Waits for a running child. Output that is not piped counts as empty.
pub(crate) fn finish_child(mut child: Child, input: &[u8]) -> RunResult {
    use std::os::unix::process::ExitStatusExt;
    let stdin = child.stdin.take();
    let input = input.to_owned();
    thread::spawn(move || {
        // The child need not read all of its input.
        stdin.map(|mut stdin| stdin.write_all(&input))
    });
    let stdout = read_all(child.stdout.take());
    let stderr = read_all(child.stderr.take());
    let (Ok(stdout), Ok(stderr)) = (stdout.recv_timeout(TIMEOUT), stderr.recv_timeout(TIMEOUT))
    else {
        child.kill().unwrap();
        panic!("the command hangs");
    };
    let status = child.wait().unwrap();
    RunResult {
        code: status.code(),
        signal: status.signal(),
        stdout,
        stderr,
    }
}

fn read_all(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            pipe.read_to_end(&mut bytes).unwrap();
        }
        sender.send(String::from_utf8(bytes).unwrap())
    });
    receiver
}

fn write(path: &Path, content: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Returns the text of a JSON string.
#[track_caller]
pub(crate) fn text(value: &Value) -> &str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("not a string: {value}"))
}

/// Returns the value of a field for each event.
pub(crate) fn field_values<'a>(events: &'a [Value], field: &str) -> Vec<&'a str> {
    events.iter().map(|event| text(&event[field])).collect()
}

/// Returns the events of this type.
pub(crate) fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events
        .iter()
        .filter(|event| event["type"] == kind)
        .collect()
}
