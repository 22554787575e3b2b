//! A `lango serve` process that a harness can kill, suspend and shut down.

use super::random::Random;
use super::test_env::TestEnv;
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

/// How many lines of the servers' output are kept.
const KEPT_LINES: usize = 50;

/// The standard error of all servers of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerLog(Arc<Mutex<Lines>>);

#[derive(Debug, Default)]
struct Lines {
    last: VecDeque<String>,
    crashes: Vec<String>,
}

/// How many lines of output are reported with a crash.
const SHOWN_LINES: usize = 6;

impl ServerLog {
    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, line: String) {
        let mut lines = self.lines();
        if line.contains("panicked") {
            lines.crashes.push(line.clone());
        }
        if lines.last.len() == KEPT_LINES {
            lines.last.pop_front();
        }
        lines.last.push_back(line);
    }

    /// Records that a server crashed, with the last lines of output.
    pub(crate) fn record_crash(&self, reason: &str) {
        let last = self.last();
        let last = &last[last.len().saturating_sub(SHOWN_LINES)..];
        let crash = format!("{reason}: {}", last.join(" | "));
        self.lines().crashes.push(crash);
    }

    /// Returns all panics and other crashes so far.
    pub(crate) fn crashes(&self) -> Vec<String> {
        self.lines().crashes.clone()
    }

    /// Returns the last lines of output.
    pub(crate) fn last(&self) -> Vec<String> {
        self.lines().last.iter().cloned().collect()
    }
}

/// A server process. It is killed when this value is dropped.
pub(crate) struct ServerProcess {
    child: Child,
    ready: Receiver<()>,
    server_log: ServerLog,
}

impl ServerProcess {
    /// Starts a server without waiting until it is ready.
    pub(crate) fn start(
        test_env: &TestEnv,
        home: &Path,
        port: u16,
        server_log: &ServerLog,
    ) -> Self {
        let mut child = test_env
            .lango_with_home(home)
            .args(["serve", "--port", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("lango starts");
        let stderr = child.stderr.take().expect("stderr is piped");
        let (sender, ready) = channel();
        let output = server_log.clone();
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let is_ready = line.contains("ctrl-c stops");
                output.record(line);
                if is_ready {
                    let _ = sender.send(());
                }
            }
        });
        Self {
            child,
            ready,
            server_log: server_log.clone(),
        }
    }

    /// Returns the process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the server is ready. Records a crash if it exits first or the time runs out.
    pub(crate) fn is_ready_within(&self, timeout: Duration) -> bool {
        let is_ready = self.ready.recv_timeout(timeout);
        if let Err(error) = is_ready {
            self.server_log
                .record_crash(&format!("never became ready ({error})"));
        }
        is_ready.is_ok()
    }

    fn exit_status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child can be waited for")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        // Only this process reaps the child, so its id cannot have been reused.
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// Sends SIGKILL. Records a crash if the server had already exited.
    pub(crate) fn kill(&mut self) {
        if let Some(status) = self.exit_status() {
            self.server_log
                .record_crash(&format!("exited by itself ({status})"));
        }
        self.kill_quietly();
    }

    fn kill_quietly(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Shuts the server down with SIGTERM. Records a crash if it exits with an error or not in time.
    pub(crate) fn end(&mut self, timeout: Duration) {
        self.signal(Signal::TERM);
        let step = Duration::from_millis(20);
        for _ in 0..timeout.as_millis() / step.as_millis() {
            match self.exit_status() {
                Some(status) if status.success() => return,
                Some(status) => {
                    return self
                        .server_log
                        .record_crash(&format!("exited with an error ({status})"));
                }
                None => thread::sleep(step),
            }
        }
        self.server_log.record_crash("did not exit");
        self.kill_quietly();
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.kill_quietly();
    }
}

/// Returns a free port below the ephemeral range, so that no outgoing connection takes it while its server restarts.
pub(crate) fn free_port(random: &mut Random) -> u16 {
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let mut candidate = || u16::try_from(20_000 + random.below(12_000)).expect("a port");
    let port = (0..100).map(|_| candidate()).find(is_free);
    port.expect("loopback has a free port")
}
