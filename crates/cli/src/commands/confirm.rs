//! Questions to the user at the terminal, on stderr.

use lango::app::Failure;
use lango_core::text::sanitize;
use rustix::termios::{QueueSelector, tcflush};
use std::io::{BufRead, IsTerminal, Read, Write};

/// The longest answer that is read.
const MAX_ANSWER_BYTES: u64 = 4096;

/// Returns whether a user can see a question and answer it.
pub(super) fn has_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks a yes-or-no question; anything but `y` or `yes` means no.
pub(super) async fn confirm(question: &str) -> Result<bool, Failure> {
    let answer = ask(&format!("{question} [y/N] ")).await?;
    let answer = answer.unwrap_or_default().trim().to_lowercase();
    Ok(matches!(answer.as_str(), "y" | "yes"))
}

/// Asks a question and reads a line on a separate thread, because reading the terminal blocks. Returns `None` at the end
/// of the input.
pub(super) async fn ask(question: &str) -> Result<Option<String>, Failure> {
    // Discard what was typed before the question appeared.
    let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
    let mut out = std::io::stderr();
    let _ = write!(out, "{}", sanitize(question));
    let _ = out.flush();
    let typed = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        let stdin = std::io::stdin().lock();
        let read = stdin.take(MAX_ANSWER_BYTES).read_line(&mut line);
        read.map(|length| (length > 0).then_some(line))
    });
    Ok(typed.await.map_err(std::io::Error::other)??)
}
