//! A server's program: started inside the sandbox, kept alive without a limit of time, its last words remembered.

use crate::error::ConnectError;
use crate::program::PreparedCommand;
use crate::settings::Program;
use lango_sandbox::{Child, Command, Ended, ExitKind, Launcher, Stdin, Stopped};
use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{Notify, watch};

/// How much of what a program complains about is kept.
const TAIL_BYTES: usize = 8 << 10;
/// How long a program may take to end by itself once nobody speaks to it any more.
const GRACE: Duration = Duration::from_millis(500);
/// How long its end is waited for once it is killed.
const PATIENCE: Duration = Duration::from_secs(5);

/// A program that runs. Dropping it ends the program and everything that it started.
#[derive(Debug)]
pub(crate) struct Process {
    stop: Arc<Notify>,
    ended: watch::Receiver<Option<Result<Ended, String>>>,
    tail: Arc<Tail>,
}

/// The last words of a program.
#[derive(Debug, Default)]
struct Tail {
    bytes: Mutex<VecDeque<u8>>,
}

/// Files that appeared while a server ran and that decide what other programs do, such as `.git`: those of all its
/// processes, also of those that failed, until they are reported.
#[derive(Debug, Default)]
pub(crate) struct NewFiles {
    paths: Mutex<BTreeSet<PathBuf>>,
}

impl NewFiles {
    /// Takes what was not reported yet.
    pub(crate) fn take(&self) -> BTreeSet<PathBuf> {
        let mut paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *paths)
    }

    /// Adds files, but those in the server's private directory, which no other program obeys.
    fn outside_of(self: Arc<Self>, private: PathBuf) -> impl FnOnce(&[PathBuf]) + Send + 'static {
        move |found| {
            let found = found.iter().filter(|path| !path.starts_with(&private));
            let mut paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
            paths.extend(found.cloned());
        }
    }
}

impl Process {
    /// Starts it; gives its input and output besides.
    pub(crate) fn start(
        launcher: &Launcher,
        program: &Program,
        prepared: PreparedCommand,
        new_files: &Arc<NewFiles>,
    ) -> Result<(Self, ChildStdin, ChildStdout), ConnectError> {
        let private = &program.policy.workspace;
        let mut command = Command::new(&prepared.argv, private.clone());
        let env = prepared.env.into_iter();
        command.env = env
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        command.stdin = Stdin::Piped;
        command.limits = program.limits;
        command.limits.time = None;
        // Whoever works in the folder meanwhile makes such files too.
        command.new_files = lango_sandbox::NewFiles::Report;
        let not_started = |why: String| ConnectError::NotStarted { why };
        let mut child = launcher
            .spawn(&program.policy, command)
            .map_err(|error| not_started(causes(&error)))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(not_started("it has no pipes".to_owned()));
        };
        let tail = Arc::new(Tail::default());
        tokio::spawn(Arc::clone(&tail).fill(stderr));
        let stop = Arc::new(Notify::new());
        let (sender, ended) = watch::channel(None);
        let new_files = Arc::clone(new_files).outside_of(private.clone());
        tokio::spawn(keep(child, Arc::clone(&stop), new_files, sender));
        let process = Self { stop, ended, tail };
        Ok((process, stdin, stdout))
    }

    /// How it ended, if it does within a moment.
    pub(crate) async fn end_within(&self, time: Duration) -> Option<String> {
        let mut ended = self.ended.clone();
        let waiting = ended.wait_for(Option::is_some);
        let ended = tokio::time::timeout(time, waiting).await.ok()?.ok()?;
        Some(match ended.as_ref()? {
            Ok(ended) => describe(ended),
            Err(what) => format!("the sandbox failed: {what}"),
        })
    }

    /// Ends it, after it had a moment to do so itself.
    pub(crate) async fn end(&self) {
        if self.end_within(GRACE).await.is_some() {
            return;
        }
        self.stop.notify_one();
        self.end_within(PATIENCE).await;
    }

    /// What it complained about last.
    pub(crate) fn last_words(&self) -> String {
        let bytes = self
            .tail
            .bytes
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let (one, two) = bytes.as_slices();
        let text = String::from_utf8_lossy(&[one, two].concat()).into_owned();
        text.chars()
            .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
            .collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop.notify_one();
    }
}

/// Stays with the program until it is gone.
async fn keep(
    mut child: Child,
    stop: Arc<Notify>,
    new_files: impl FnOnce(&[PathBuf]),
    ended: watch::Sender<Option<Result<Ended, String>>>,
) {
    let outcome = tokio::select! {
        outcome = child.wait() => Some(outcome),
        () = stop.notified() => None,
    };
    let outcome = match outcome {
        Some(outcome) => outcome,
        None => {
            child.kill();
            child.wait().await
        }
    };
    // Recorded before the end is published, so that a report that follows it is complete.
    if let Ok(ended) = &outcome {
        new_files(&ended.clean_up.left);
    }
    // Whoever does not wait does not want to know.
    let _ = ended.send(Some(outcome.map_err(|error| causes(&error))));
}

impl Tail {
    async fn fill(self: Arc<Self>, mut from: impl AsyncRead + Unpin) {
        let mut read = [0; 4096];
        while let Ok(length @ 1..) = from.read(&mut read).await {
            let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
            bytes.extend(&read[..length]);
            let surplus = bytes.len().saturating_sub(TAIL_BYTES);
            bytes.drain(..surplus);
        }
    }
}

fn describe(ended: &Ended) -> String {
    match (&ended.stopped, ended.exit) {
        (Some(Stopped::Memory), _) => "its program was ended: it held too much memory".into(),
        (Some(Stopped::Processes), _) => "its program was ended: it had too many processes".into(),
        (Some(Stopped::Disk), _) => "its program was ended: it wrote too much".into(),
        (Some(Stopped::Time), _) => "its program was ended: it ran too long".into(),
        (None, ExitKind::Code(127)) => {
            "its program was not found in the sandbox; is its folder readable there (see `read`)?"
                .into()
        }
        (None, ExitKind::Code(code)) => format!("its program ended with code {code}"),
        (None, ExitKind::Signal(signal)) => format!("its program was ended by signal {signal}"),
    }
}

/// An error with its causes, on one line.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    // A chain of causes is short; one that turns in a circle is not followed.
    for _ in 0..8 {
        let Some(cause) = next else { break };
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}
