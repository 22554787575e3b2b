//! `lango mcp trust`: shows the changed tools of a server and the files of its command that agents can write, and
//! accepts them exactly as shown.

use crate::exit::Exit;
use crate::screen;
use lango::app::{Failure, FailureKind};
use lango_core::text::sanitize;
use lango_mcp::{PendingFile, PendingTool, PinError, Servers, ToolDefinition};
use rustix::termios::{QueueSelector, tcflush};
use similar::TextDiff;
use std::io::{self, BufRead, IsTerminal, Read};
use std::time::Duration;

/// How long to search for a minimal diff before a larger one is accepted.
const DIFF_TIMEOUT: Duration = Duration::from_millis(500);
/// The minimum number of digits to identify a hash. `lango mcp list` shows this many.
const MIN_HASH_DIGITS: usize = 12;
const MAX_ANSWER_BYTES: u64 = 1024;

/// How the user consents.
pub(super) enum Consent {
    /// At the terminal, after the changes were shown.
    Prompt,
    /// On the command line, to everything that is shown.
    All,
    /// On the command line, to the versions with these hashes.
    Hashes(Vec<String>),
}

/// The changes that wait to be accepted.
struct PendingChanges {
    files: Vec<PendingFile>,
    tools: Vec<PendingTool>,
}

/// Shows the changes of a server, and accepts them if the user consents.
pub(super) fn trust(servers: &Servers, id: &str, consent: Consent) -> Result<Exit, Failure> {
    let mut pending = PendingChanges::find(servers, id)?;
    if let Consent::Hashes(hashes) = &consent {
        pending.choose(id, hashes)?;
    }
    if pending.count() == 0 {
        screen::print(&format!("`{id}` has not changed since it was pinned"))?;
        return Ok(Exit::Ok);
    }
    for file in &pending.files {
        screen::print(&sanitize(&describe_file(file)))?;
    }
    for tool in &pending.tools {
        screen::print(&sanitize(&describe_tool(tool)))?;
    }
    if matches!(consent, Consent::Prompt) && !confirm(id, &pending)? {
        screen::print("nothing was accepted")?;
        return Ok(Exit::Denied);
    }
    pending.accept(servers, id)
}

impl PendingChanges {
    fn find(servers: &Servers, id: &str) -> Result<Self, Failure> {
        let files = servers.pending_files(id);
        let files = files.map_err(|error| {
            let message = format!("the MCP server `{id}`: {error}");
            Failure::config(message).next("see docs/mcp-security.md for what a server may run")
        })?;
        let tools = match servers.pending(id) {
            // A server whose files were never trusted was never started, so its tools are unknown.
            Err(PinError::NoSuchServer { .. }) if !files.is_empty() => Vec::new(),
            pending => pending?,
        };
        Ok(Self { files, tools })
    }

    fn count(&self) -> usize {
        self.files.len() + self.tools.len()
    }

    /// Keeps only the changes with these hashes; fails if there is no change with one of the hashes.
    fn choose(&mut self, id: &str, hashes: &[String]) -> Result<(), Failure> {
        let matches =
            |hash: &String, found: &str| hash.len() >= MIN_HASH_DIGITS && found.starts_with(hash);
        let files = self.files.iter().map(|file| file.digest.as_str());
        let tools = self.tools.iter().map(|tool| tool.now.hash.as_str());
        let found: Vec<&str> = files.chain(tools).collect();
        for hash in hashes {
            if !found.iter().any(|found| matches(hash, found)) {
                let message = format!(
                    "no changed file or tool of `{id}` has the hash `{hash}` (give at least \
                     {MIN_HASH_DIGITS} digits)"
                );
                return Err(Failure::usage(message).next(format!("lango mcp trust {id}")));
            }
        }
        let is_chosen = |found: &str| hashes.iter().any(|hash| matches(hash, found));
        self.files.retain(|file| is_chosen(&file.digest));
        self.tools.retain(|tool| is_chosen(&tool.now.hash));
        Ok(())
    }

    /// Accepts what was shown, but nothing that changed since.
    fn accept(&self, servers: &Servers, id: &str) -> Result<Exit, Failure> {
        if !self.files.is_empty() {
            servers.trust_files(id, &self.files)?;
            for file in &self.files {
                let line = format!("trusted: {} ({})", file.path.display(), file.digest);
                screen::print(&sanitize(&line))?;
            }
        }
        if self.tools.is_empty() {
            return Ok(Exit::Ok);
        }
        let accepted = servers.trust(id, &self.tools)?;
        for tool in &accepted {
            screen::print(&sanitize(&format!("accepted: {tool}")))?;
        }
        let changed: Vec<&str> = self
            .tools
            .iter()
            .map(|pending| pending.tool.as_str())
            .filter(|tool| !accepted.iter().any(|accepted| accepted == tool))
            .collect();
        if changed.is_empty() {
            return Ok(Exit::Ok);
        }
        let message = format!(
            "the server has changed this again, so it was not accepted: {}",
            sanitize(&changed.join(", "))
        );
        Err(Failure::failed(message).next(format!("lango mcp trust {id}")))
    }
}

/// Describes the change of a file: a line diff if it is a short text, otherwise only the digest.
fn describe_file(file: &PendingFile) -> String {
    let what = match &file.before {
        Some(before) => format!("changed, was {before}"),
        None => "new".to_owned(),
    };
    let size = screen::count(file.size as u64, "byte");
    let heading = format!("{}  {what}  {}  {size}", file.path.display(), file.digest);
    match &file.texts {
        Some((before, now)) => format!("{heading}\n{}", line_diff(before, now)),
        None => format!("{heading}\n(too long to show, or not text)\n"),
    }
}

/// Describes the change of a tool: every line, because models receive every line.
fn describe_tool(tool: &PendingTool) -> String {
    let old = tool
        .before
        .as_ref()
        .map(ToolDefinition::text)
        .unwrap_or_default();
    let new = tool.now.text();
    let what = match tool.before {
        Some(_) => "changed",
        None => "new",
    };
    let name = screen::one_line(&tool.tool, 200);
    format!(
        "{name}  {what}  {}\n{}",
        tool.now.hash,
        line_diff(&old, &new)
    )
}

fn line_diff(old: &str, new: &str) -> String {
    let diff = TextDiff::configure()
        .timeout(DIFF_TIMEOUT)
        .diff_lines(old, new);
    diff.unified_diff().context_radius(3).to_string()
}

/// Asks the user to accept. Needs a terminal for both input and output, so that the user sees the changes.
fn confirm(id: &str, pending: &PendingChanges) -> Result<bool, Failure> {
    let stdin = io::stdin();
    if !stdin.is_terminal() || !io::stdout().is_terminal() {
        let message = "there is no terminal to ask for consent, so nothing was accepted";
        return Err(Failure::new(FailureKind::Denied, message).next(format!(
            "check the changes above, then accept all with `lango mcp trust {id} --yes`, or single ones with `--hash`"
        )));
    }
    // Discard what was typed before the question appeared.
    let _ = tcflush(&stdin, QueueSelector::IFlush);
    let counts = [(pending.files.len(), "file"), (pending.tools.len(), "tool")];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts
        .map(|(count, what)| screen::count(*count as u64, what))
        .collect();
    let counts = counts.join(" and ");
    screen::write_all(&format!("accept {counts} of `{id}` as shown? [y/N] "))?;
    let mut answer = String::new();
    stdin.lock().take(MAX_ANSWER_BYTES).read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
