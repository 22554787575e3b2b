//! A real terminal: tmux runs lango, and tests read its screen.
//!
//! Each terminal has a tmux server of its own, with a socket in a temporary folder. Nothing sleeps for a fixed time: a
//! test waits until the screen shows what it expects, and fails with a copy of the screen if it does not.

use crate::lango::{BINARY, Lango, TIMEOUT};
use rustix::process::{Pid, Signal, kill_process};
use std::fmt::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long to wait between two looks at the screen.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// How long a program may take to end after its terminal was closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub columns: usize,
    pub rows: usize,
}

pub(super) const WIDE: Size = Size {
    columns: 110,
    rows: 40,
};
pub(super) const NARROW: Size = Size {
    columns: 60,
    rows: 30,
};

/// The configuration of tmux: the pane fills the terminal, stays after the program has ended, and keeps what scrolled
/// out of it.
const CONFIGURATION: &str = "set -g status off
set -g default-terminal tmux-256color
set -g default-shell /bin/sh
set -g history-limit 20000
set -g escape-time 0
set -g remain-on-exit on
set -g remain-on-exit-format ''
";

/// A terminal with a running program.
pub(super) struct Tmux {
    folder: TempDir,
    size: Size,
    /// The process of the program.
    process: Option<Pid>,
}

impl Tmux {
    /// Opens a terminal of this size and starts lango in it.
    pub(super) fn start<A: AsRef<str>>(
        lango: &Lango,
        size: Size,
        arguments: &[A],
        env: &[(&str, &str)],
    ) -> Self {
        let arguments = arguments.iter().map(AsRef::as_ref);
        let command: Vec<&str> = std::iter::once(BINARY).chain(arguments).collect();
        Self::start_program(lango, size, &command, env)
    }

    /// Opens a terminal of this size and runs a line of a shell in it.
    pub(super) fn start_shell(lango: &Lango, size: Size, line: &str) -> Self {
        Self::start_program(lango, size, &["sh", "-c", line], &[])
    }

    fn start_program(lango: &Lango, size: Size, program: &[&str], env: &[(&str, &str)]) -> Self {
        let mut terminal = Self {
            folder: tempfile::tempdir().unwrap(),
            size,
            process: None,
        };
        let configuration = terminal.folder.path().join("tmux.conf");
        std::fs::write(&configuration, CONFIGURATION).unwrap();
        let mut command = Command::new("tmux");
        lango.prepare(&mut command).env("LC_ALL", "C.UTF-8");
        command.envs(env.iter().copied());
        command.arg("-f").arg(&configuration);
        command.arg("-S").arg(terminal.socket());
        command.args(["-u", "new-session", "-d"]);
        command.args(["-x", &size.columns.to_string()]);
        command.args(["-y", &size.rows.to_string(), "--"]);
        command.args(program);
        // The server outlives this command; a Ctrl-C at the tests is not for it.
        command.process_group(0);
        let started = command.output().expect("the tests of the screen need tmux");
        assert!(started.status.success(), "tmux does not start: {started:?}");
        let process = terminal.tmux(&["display-message", "-p", "#{pane_pid}"]);
        terminal.process = Pid::from_raw(process.trim().parse().unwrap());
        terminal
    }

    /// Opens a terminal and chats with a provider.
    pub(super) fn chat(lango: &Lango, size: Size, provider: &str) -> Self {
        let flags = crate::models::flags("openai", provider);
        let terminal = Self::start(lango, size, &flags, &[]);
        terminal.wait_for("mode: ask");
        terminal
    }

    /// Presses keys, by the names that tmux gives them: `Enter`, `C-o`, `BTab`, `M-Enter`.
    pub(super) fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// Types this text, letter by letter.
    pub(super) fn type_text(&self, text: &str) {
        self.tmux(&["send-keys", "-l", "--", text]);
    }

    /// Sends these bytes at once, as a slow connection delivers what was typed.
    pub(super) fn send_bytes(&self, bytes: &[u8]) {
        let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let bytes: Vec<&str> = bytes.iter().map(String::as_str).collect();
        self.press(&[&["-H"], &bytes[..]].concat());
    }

    /// Pastes this text, as a terminal does that marks what is pasted.
    pub(super) fn paste(&self, text: &str) {
        self.tmux(&["set-buffer", "--", text]);
        self.tmux(&["paste-buffer", "-p", "-r"]);
    }

    /// Types a line and presses Enter.
    pub(super) fn say(&self, line: &str) {
        self.type_text(line);
        self.press(&["Enter"]);
    }

    /// Ends the program at once, as a crash does.
    pub(super) fn kill(&self) {
        let process = self.process.unwrap();
        kill_process(process, Signal::KILL).unwrap();
        while is_running(process) {
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Changes the size of the terminal.
    pub(super) fn resize(&mut self, size: Size) {
        self.size = size;
        let (columns, rows) = (size.columns.to_string(), size.rows.to_string());
        self.tmux(&["resize-window", "-x", &columns, "-y", &rows]);
    }

    /// Returns the screen without blank rows at its end.
    pub(super) fn screen(&self) -> String {
        self.capture(&[])
    }

    /// Returns everything that the terminal still has: what scrolled out of it, and the screen.
    pub(super) fn scrollback(&self) -> String {
        self.capture(&["-S", "-"])
    }

    /// Returns everything with the sequences that set attributes.
    pub(super) fn with_attributes(&self) -> String {
        self.capture(&["-e", "-S", "-"])
    }

    /// Waits until the screen contains this text, and returns the screen.
    #[track_caller]
    pub(super) fn wait_for(&self, text: &str) -> String {
        self.wait_until(&format!("`{text}`"), |screen| screen.contains(text))
    }

    /// Waits until this is true of the screen, and returns the screen.
    #[track_caller]
    pub(super) fn wait_until(
        &self,
        expected: &str,
        mut is_met: impl FnMut(&str) -> bool,
    ) -> String {
        let since = Instant::now();
        loop {
            let screen = self.screen();
            if is_met(&screen) {
                return screen;
            }
            let waited = since.elapsed();
            assert!(
                waited < TIMEOUT,
                "{expected} did not appear in {waited:.1?}{}",
                self.framed(&screen)
            );
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Waits until the program has ended, and returns its exit code.
    #[track_caller]
    pub(super) fn exit_code(&self) -> i32 {
        let since = Instant::now();
        loop {
            let format = "#{pid} #{pane_dead} #{pane_dead_status}";
            let state = self.tmux(&["display-message", "-p", format]);
            let words: Vec<&str> = state.split_whitespace().collect();
            match words[..] {
                [_, "1", code] => return code.parse().unwrap(),
                // On a busy machine tmux can miss that the program has ended, although its terminal is closed.
                [server, "1"] => {
                    let server = Pid::from_raw(server.parse().unwrap()).unwrap();
                    kill_process(server, Signal::CHILD).unwrap();
                }
                _ => {}
            }
            assert!(
                since.elapsed() < TIMEOUT,
                "the program does not end (`{format}` is `{state}`){}",
                self.framed(&self.screen())
            );
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Asserts that no line was longer than the terminal is wide: the terminal would have cut it in the middle of a
    /// word.
    #[track_caller]
    pub(super) fn assert_no_line_is_too_long(&self) {
        // With `-J` tmux joins the rows of a line that did not fit.
        for line in self.capture(&["-J", "-S", "-"]).lines() {
            let line = line.trim_end();
            let columns = line.chars().count();
            assert!(
                columns <= self.size.columns,
                "a line with {columns} columns: {line:?}{}",
                self.framed(&self.scrollback())
            );
        }
    }

    /// Closes the terminal, as a user does who closes its window, and waits until the program has ended.
    #[track_caller]
    pub(super) fn close(self) {
        self.stop_server();
        let since = Instant::now();
        while self.process.is_some_and(is_running) {
            assert!(since.elapsed() < CLOSE_TIMEOUT, "the program goes on");
            thread::sleep(POLL_INTERVAL);
        }
    }

    fn stop_server(&self) {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(self.socket()).arg("kill-server");
        let _ = command.output();
    }

    fn capture(&self, flags: &[&str]) -> String {
        let screen = self.tmux(&[&["capture-pane", "-p"], flags].concat());
        screen.trim_end().to_owned()
    }

    /// Returns a copy of the screen for a failure message.
    pub(super) fn framed(&self, screen: &str) -> String {
        let mut text = format!("; the screen ({} columns):\n", self.size.columns);
        for row in screen.lines() {
            let _ = writeln!(text, "  |{row}");
        }
        text
    }

    #[track_caller]
    fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.arg("-u").arg("-S").arg(self.socket());
        let output = command.args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("tmux")
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let running = self.process.filter(|process| is_running(*process));
        self.stop_server();
        // A program that does not notice that its terminal is gone must not outlive the test.
        if let Some(process) = running {
            let _ = kill_process(process, Signal::KILL);
        }
    }
}

/// Whether a process runs; one that has ended and was not reaped yet does not.
fn is_running(process: Pid) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()));
    status.is_ok_and(|status| !status.contains(") Z "))
}
