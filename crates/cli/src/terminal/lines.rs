//! Reads whole lines from the user, for terminals without raw keys. A line is read only when one is wanted, so that
//! prompts of other code can read the terminal in between.

use super::{ANSWER_PAUSE, ANSWER_SILENCE, Output};
use crate::terminal::Region;
use rustix::termios::{QueueSelector, tcflush};
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc;
use std::thread;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Where lines are read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineSource {
    /// Standard input, also if it is a pipe.
    Stdin,
    /// The terminal of this process, even if standard input is something else.
    Terminal,
}

/// A thread that reads lines on request.
pub struct LineReader {
    /// The terminal, if lines come from it and not from standard input.
    terminal: Option<File>,
    requests: mpsc::Sender<()>,
    lines: UnboundedReceiver<Option<String>>,
    /// The prompt of a line that was requested and has not arrived yet, because the last wait was abandoned.
    requested: Option<String>,
    /// Whether a user sees the prompt.
    has_prompt: bool,
}

impl LineReader {
    /// Starts the thread.
    pub fn open(source: LineSource) -> Self {
        let (requests, wanted) = mpsc::channel();
        let (sender, lines) = unbounded_channel();
        let terminal = match source {
            LineSource::Terminal if !std::io::stdin().is_terminal() => File::open("/dev/tty").ok(),
            LineSource::Terminal | LineSource::Stdin => None,
        };
        let input = terminal.as_ref().and_then(|it| it.try_clone().ok());
        thread::spawn(move || {
            let input: Box<dyn Read> = match input {
                Some(terminal) => Box::new(terminal),
                None => Box::new(std::io::stdin()),
            };
            let mut input = BufReader::with_capacity(1, input);
            while wanted.recv().is_ok() {
                let mut bytes = Vec::new();
                let read = input.read_until(b'\n', &mut bytes);
                let line = match read {
                    Ok(1..) => Some(
                        String::from_utf8_lossy(&bytes)
                            .trim_end_matches(['\n', '\r'])
                            .to_owned(),
                    ),
                    Ok(0) | Err(_) => None,
                };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            terminal,
            requests,
            lines,
            requested: None,
            has_prompt: source == LineSource::Terminal || std::io::stdin().is_terminal(),
        }
    }

    /// Prints a prompt on stderr and waits for a line. Returns `None` at the end of the input (Ctrl-D). If an earlier
    /// wait for the same was abandoned, its prompt is still on the screen.
    pub async fn next(&mut self, prompt: &str) -> Option<String> {
        if self.requested.is_none() {
            let _ = self.requests.send(());
        }
        if self.requested.as_deref() != Some(prompt) {
            self.requested = Some(prompt.to_owned());
            if self.has_prompt {
                let _ = Region::print(Output::Stderr, prompt);
            }
        }
        let line = self.lines.recv().await.flatten();
        self.requested = None;
        if line.is_none() && self.has_prompt {
            let _ = Region::print(Output::Stderr, "\n");
        }
        line
    }

    /// Discards all input until there was none for [`ANSWER_PAUSE`], so that nothing typed or pasted before a question
    /// answers it. A terminal delivers a long paste in parts, so one flush is not enough.
    ///
    /// # Errors
    /// The lines do not come from a terminal, so nothing tells earlier ones from an answer.
    pub async fn discard(&mut self) -> io::Result<()> {
        let terminal = self.input()?;
        loop {
            tcflush(&terminal, QueueSelector::IFlush)?;
            while self.lines.try_recv().is_ok() {
                self.requested = None;
            }
            tokio::time::sleep(ANSWER_PAUSE).await;
            if rustix::io::ioctl_fionread(&terminal)? == 0 && self.lines.is_empty() {
                // The terminal counts only whole lines; the start of another one is no answer either.
                return Ok(tcflush(&terminal, QueueSelector::IFlush)?);
            }
        }
    }

    /// Whether more lines follow the last one at once, as in a pasted text.
    pub async fn is_pasting(&self) -> bool {
        tokio::time::sleep(ANSWER_SILENCE).await;
        let waiting = self
            .input()
            .and_then(|input| Ok(rustix::io::ioctl_fionread(&input)?));
        waiting.is_ok_and(|bytes| bytes > 0)
    }

    fn input(&self) -> io::Result<OwnedFd> {
        match &self.terminal {
            Some(terminal) => terminal.as_fd().try_clone_to_owned(),
            None => io::stdin().as_fd().try_clone_to_owned(),
        }
    }
}
