//! A `lango serve` that can be killed, stopped for a while, and told to end.

use super::place::Place;
use super::random::Random;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How many lines are kept of what servers said.
const KEPT_LINES: usize = 400;

/// What all servers of a run said on their standard error.
#[derive(Debug, Clone, Default)]
pub struct Said(Arc<Mutex<Lines>>);

#[derive(Debug, Default)]
struct Lines {
    last: VecDeque<String>,
    panics: u64,
}

impl Said {
    fn note(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.panics += u64::from(line.contains("panicked"));
        if lines.last.len() == KEPT_LINES {
            lines.last.pop_front();
        }
        lines.last.push_back(line);
    }

    /// How many times one of them panicked.
    pub fn panics(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).panics
    }

    /// The last lines, without what is said at every start.
    pub fn last(&self) -> Vec<String> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let banner = [
            "lango ",
            "card ",
            "token ",
            "model ",
            "agents ",
            "what has to",
        ];
        let is_news = |line: &&String| !banner.iter().any(|start| line.starts_with(start));
        lines.last.iter().filter(is_news).cloned().collect()
    }
}

/// A server that runs, or did.
pub struct Serving {
    child: Child,
    ready: Receiver<()>,
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
        let said = said.clone();
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if line.contains("ctrl-c stops") {
                    let _ = sender.send(());
                }
                said.note(line);
            }
        });
        Self { child, ready }
    }

    /// Waits until it serves; false if it ended before, or not in this time.
    pub fn is_ready_within(&self, patience: Duration) -> bool {
        match self.ready.recv_timeout(patience) {
            Ok(()) => true,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => false,
        }
    }

    /// The number of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("it is our child")
    }

    pub fn signal(&self, signal: Signal) {
        // One that has ended already is waited for by us alone, so that the number is still its own.
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Tells it to end in order, and gives whether it did so by itself and well.
    pub fn end(&mut self, patience: Duration) -> bool {
        self.signal(Signal::TERM);
        let step = Duration::from_millis(20);
        for _ in 0..patience.as_millis() / step.as_millis() {
            if let Some(status) = self.ended() {
                return status.success();
            }
            thread::sleep(step);
        }
        self.kill();
        false
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A port that is free, below those that the system gives to connections: while a server is away, nobody else gets it.
pub fn free_port(random: &mut Random) -> u16 {
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let mut some = || u16::try_from(20_000 + random.below(12_000)).expect("a port");
    let port = (0..100).map(|_| some()).find(is_free);
    port.expect("loopback has a free port")
}
