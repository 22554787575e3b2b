//! A `lango serve` that can be killed, stopped for a while, and told to end.

use super::place::Place;
use super::random::Random;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How many lines are kept of what servers said.
const KEPT_LINES: usize = 50;

/// What all servers of a run said on their standard error.
#[derive(Debug, Clone, Default)]
pub struct Said(Arc<Mutex<Lines>>);

#[derive(Debug, Default)]
struct Lines {
    last: VecDeque<String>,
    crashes: Vec<String>,
}

/// How many lines are shown of a server that broke down.
const SHOWN_LINES: usize = 6;

impl Said {
    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, line: String) {
        let mut lines = self.lines();
        if line.contains("panicked") {
            lines.crashes.push(line.clone());
        }
        if lines.last.len() == KEPT_LINES {
            lines.last.pop_front();
        }
        lines.last.push_back(line);
    }

    /// Takes down that a server broke down, with what was said last.
    pub fn note_crash(&self, how: &str) {
        let last = self.last();
        let last = &last[last.len().saturating_sub(SHOWN_LINES)..];
        let crash = format!("{how}: {}", last.join(" | "));
        self.lines().crashes.push(crash);
    }

    /// Every time that one of them panicked or broke down otherwise.
    pub fn crashes(&self) -> Vec<String> {
        self.lines().crashes.clone()
    }

    /// The last lines.
    pub fn last(&self) -> Vec<String> {
        self.lines().last.iter().cloned().collect()
    }
}

/// A server that runs, or did.
pub struct Serving {
    child: Child,
    ready: Receiver<()>,
    said: Said,
}

impl Serving {
    /// Starts one; it is not waited for.
    pub fn start(place: &Place, home: &Path, port: u16, said: &Said) -> Self {
        let mut child = place
            .lango_with_home(home)
            .args(["serve", "--port", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("lango starts");
        let stderr = child.stderr.take().expect("it is piped");
        let (sender, ready) = channel();
        let notes = said.clone();
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let is_ready = line.contains("ctrl-c stops");
                notes.note(line);
                if is_ready {
                    let _ = sender.send(());
                }
            }
        });
        Self {
            child,
            ready,
            said: said.clone(),
        }
    }

    /// The number of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it serves. If it ends before, or does not in this time, that is a crash.
    pub fn is_ready_within(&self, patience: Duration) -> bool {
        let is_ready = self.ready.recv_timeout(patience);
        if let Err(error) = is_ready {
            self.said.note_crash(&format!("never served ({error})"));
        }
        is_ready.is_ok()
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("it is our child")
    }

    pub fn signal(&self, signal: Signal) {
        // One that has ended already is waited for by us alone, so that the number is still its own.
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// `kill -9`. If it had ended before, that is a crash.
    pub fn kill(&mut self) {
        if let Some(status) = self.ended() {
            self.said.note_crash(&format!("ended by itself ({status})"));
        }
        self.kill_quietly();
    }

    fn kill_quietly(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Tells it to end in order. If it does not, or not well, that is a crash.
    pub fn end(&mut self, patience: Duration) {
        self.signal(Signal::TERM);
        let step = Duration::from_millis(20);
        for _ in 0..patience.as_millis() / step.as_millis() {
            match self.ended() {
                Some(status) if status.success() => return,
                Some(status) => return self.said.note_crash(&format!("ended badly ({status})")),
                None => thread::sleep(step),
            }
        }
        self.said.note_crash("did not end");
        self.kill_quietly();
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.kill_quietly();
    }
}

/// A port that is free, below those that the system gives to connections: while a server is away, nobody else gets it.
pub fn free_port(random: &mut Random) -> u16 {
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let mut some = || u16::try_from(20_000 + random.below(12_000)).expect("a port");
    let port = (0..100).map(|_| some()).find(is_free);
    port.expect("loopback has a free port")
}
