//! The browser's process: ended with its handle, the end of its error output stored, its directory removed after it.

use super::{PrivateDirectory, not_started};
use crate::BrowserError;
use lango_sandbox::{Child, ExitKind, Stopped};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{Notify, watch};

/// How much of the end of its error output is stored.
const TAIL_BYTES: usize = 4 << 10;

/// A process that runs. Dropping it ends the process and everything that it started.
#[derive(Debug)]
pub(super) struct Process {
    stop: Arc<Notify>,
    diagnosis: Diagnosis,
}

/// The end of a process's error output, and how it ended.
#[derive(Debug, Clone)]
pub(super) struct Diagnosis {
    tail: Arc<Mutex<VecDeque<u8>>>,
    end: watch::Receiver<Option<String>>,
}

impl Process {
    /// Follows a process to its end, and removes its directory then.
    pub(super) fn follow(
        mut child: Child,
        private: Arc<PrivateDirectory>,
    ) -> Result<(Self, ChildStdout, ChildStdin), BrowserError> {
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(not_started("it has no pipes"));
        };
        let tail = Arc::new(Mutex::default());
        tokio::spawn(remember(stderr, Arc::clone(&tail)));
        let (ended, end) = watch::channel(None);
        let stop = Arc::new(Notify::new());
        tokio::spawn(wait(child, Arc::clone(&stop), ended, private));
        let diagnosis = Diagnosis { tail, end };
        Ok((Self { stop, diagnosis }, stdout, stdin))
    }

    pub(super) fn diagnosis(&self) -> Diagnosis {
        self.diagnosis.clone()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop.notify_one();
    }
}

impl Diagnosis {
    /// An error with the last line that the process wrote before it ended.
    pub(super) async fn explain(mut self, error: BrowserError) -> String {
        let ending = self.end.wait_for(Option::is_some);
        let end = tokio::time::timeout(Duration::from_secs(2), ending).await;
        let end = match end {
            Ok(Ok(end)) => end.clone().unwrap_or_default(),
            Ok(Err(_)) | Err(_) => return error.to_string(),
        };
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let (one, two) = tail.as_slices();
        let tail = String::from_utf8_lossy(&[one, two].concat()).into_owned();
        let line = tail.lines().rev().find(|line| !line.trim().is_empty());
        match line {
            Some(line) => format!("{end}; its last message: {}", crate::notice::shorten(line)),
            None => end,
        }
    }
}

async fn wait(
    mut child: Child,
    stop: Arc<Notify>,
    ended: watch::Sender<Option<String>>,
    private: Arc<PrivateDirectory>,
) {
    let outcome = tokio::select! {
        outcome = child.wait() => outcome,
        () = stop.notified() => {
            child.kill();
            child.wait().await
        }
    };
    let end = match outcome {
        Err(error) => format!("the sandbox failed: {}", causes(&error)),
        Ok(end) => match (end.stopped, end.exit) {
            (Some(Stopped::Memory), _) => "its program held too much memory".to_owned(),
            (Some(Stopped::Processes), _) => "its program had too many processes".to_owned(),
            (Some(Stopped::Disk), _) => "its program wrote too much".to_owned(),
            (Some(Stopped::Time), _) => "its program ran too long".to_owned(),
            (None, ExitKind::Code(code)) => format!("its program ended with code {code}"),
            (None, ExitKind::Signal(signal)) => format!("its program was ended by signal {signal}"),
        },
    };
    ended.send_replace(Some(end));
    // Here and not on another thread: the program may be about to end, and would not wait for that one. It is a matter of
    // some hundred small files.
    drop(private);
}

async fn remember(mut from: impl AsyncRead + Unpin, tail: Arc<Mutex<VecDeque<u8>>>) {
    let mut read = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut read).await {
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend(&read[..length]);
        let surplus = tail.len().saturating_sub(TAIL_BYTES);
        tail.drain(..surplus);
    }
}

/// An error with its causes, on one line.
pub(super) fn causes(error: &dyn std::error::Error) -> String {
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
