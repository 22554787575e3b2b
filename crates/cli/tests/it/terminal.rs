//! A pseudo-terminal that runs lango: tests type keys and wait for text to appear.

use crate::lango::{BINARY, Lango, TIMEOUT};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Instant;

/// The start of the title that lango sets when it waits for the user: for a message, or for the answer to a question.
const READY: &str = "\u{1b}]0;lango ";

/// A terminal with a running program.
pub(crate) struct Terminal {
    keyboard: File,
    output: Receiver<Vec<u8>>,
    child: Child,
    /// Bytes with an escape sequence that is not complete yet.
    partial: Vec<u8>,
    /// What appeared since the last wait, without the sequences that move the cursor or set attributes.
    seen: Vec<u8>,
    /// Every byte that lango has written.
    raw: Vec<u8>,
}

impl Terminal {
    /// Opens a terminal of this width and starts lango with these arguments and variables.
    pub(crate) fn start(
        lango: &Lango,
        columns: u16,
        arguments: &[&str],
        env: &[(&str, &str)],
    ) -> Self {
        Self::start_program(lango, columns, &[&[BINARY], arguments].concat(), env)
    }

    /// Opens a terminal and starts another program with lango's environment.
    pub(crate) fn start_program(
        lango: &Lango,
        columns: u16,
        command_line: &[&str],
        env: &[(&str, &str)],
    ) -> Self {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keyboard).unwrap();
        unlockpt(&keyboard).unwrap();
        let name = ptsname(&keyboard, Vec::new()).unwrap();
        let size = Winsize {
            ws_row: 40,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let path = name.to_str().unwrap();
        let screen = File::options().read(true).write(true).open(path).unwrap();
        tcsetwinsize(&screen, size).unwrap();
        let mut command = Command::new("setsid");
        lango.prepare(&mut command).env("TERM", "xterm-256color");
        let child = command
            .arg("--ctty")
            .args(command_line)
            .envs(env.iter().copied())
            .stdin(screen.try_clone().unwrap())
            .stdout(screen.try_clone().unwrap())
            .stderr(screen)
            .spawn()
            .unwrap();
        // The command has the screen open too. Drop it, so that the output ends when lango exits.
        drop(command);
        let keyboard = File::from(keyboard);
        let output = listen(keyboard.try_clone().unwrap());
        Self {
            keyboard,
            output,
            child,
            partial: Vec::new(),
            seen: Vec::new(),
            raw: Vec::new(),
        }
    }

    /// Types these keys.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Sends a signal to the program.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let id = i32::try_from(self.child.id()).unwrap();
        let id = rustix::process::Pid::from_raw(id).unwrap();
        rustix::process::kill_process(id, signal).unwrap();
    }

    /// Waits for the prompt and returns what appeared before it.
    #[track_caller]
    pub(crate) fn prompt(&mut self) -> String {
        self.wait_for(READY)
    }

    /// Types a line at the prompt and returns what appears before the next prompt.
    #[track_caller]
    pub(crate) fn say(&mut self, line: &str) -> String {
        self.press(&format!("{line}\r"));
        self.prompt()
    }

    /// Waits for this text, and returns everything that appeared up to its end.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, text: &str) -> String {
        let since = Instant::now();
        loop {
            if let Some(at) = find(&self.seen, text.as_bytes()) {
                let rest = self.seen.split_off(at + text.len());
                let before = std::mem::replace(&mut self.seen, rest);
                return String::from_utf8(before).unwrap();
            }
            let left = TIMEOUT.saturating_sub(since.elapsed());
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.receive(&bytes),
                Err(_) => panic!(
                    "`{text}` did not appear after {:?}",
                    String::from_utf8_lossy(&self.seen)
                ),
            }
        }
    }

    /// Returns every byte so far, with all escape sequences except the titles and bells of lango itself.
    pub(crate) fn raw(&self) -> String {
        let raw = String::from_utf8_lossy(&self.raw).into_owned();
        let mut parts = raw.split("\u{1b}]0;");
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (title, rest) = part.split_once('\u{7}').unwrap_or((part, ""));
            assert!(title.is_empty() || title.contains("lango"), "{title:?}");
            text.push_str(rest);
        }
        text
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.raw.extend(bytes);
        self.partial.extend(bytes);
        let rest = strip_sequences(&self.partial, &mut self.seen);
        self.partial.drain(..rest);
    }

    /// Waits for the exit. Returns the exit code and the remaining output.
    #[track_caller]
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let since = Instant::now();
        while let Ok(bytes) = {
            let left = TIMEOUT.saturating_sub(since.elapsed());
            self.output.recv_timeout(left)
        } {
            self.receive(&bytes);
        }
        assert!(
            since.elapsed() < TIMEOUT,
            "the program does not exit after {:?}",
            String::from_utf8_lossy(&self.seen)
        );
        let code = self.child.wait().unwrap().code();
        (code, String::from_utf8(self.seen.clone()).unwrap())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the screen on a thread until the last program has closed it.
fn listen(mut screen: File) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = screen.read(&mut buffer) {
            if sender.send(buffer[..length].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Copies text without control sequences (`ESC [ …`). Returns how many bytes were used; the rest may be the start of a
/// sequence.
fn strip_sequences(bytes: &[u8], text: &mut Vec<u8>) -> usize {
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != 0x1b {
            text.push(bytes[at]);
            at += 1;
            continue;
        }
        match bytes.get(at + 1) {
            None => return at,
            Some(b'[') => {
                let is_final = |byte: &u8| (0x40..=0x7e).contains(byte);
                match bytes[at + 2..].iter().position(is_final) {
                    Some(length) => at += length + 3,
                    None => return at,
                }
            }
            Some(_) => {
                text.push(bytes[at]);
                at += 1;
            }
        }
    }
    at
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}
