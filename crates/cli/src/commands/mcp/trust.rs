//! `lango mcp trust`: the files of a server's command that agents can write, and all that changed of its tools, are shown
//! first, and accepted in the very form that was shown.

use crate::exit::{Exit, Failure};
use crate::markdown::sanitize;
use crate::screen;
use lango_mcp::{Form, Pending, PendingFile, PinError, Servers};
use rustix::termios::{QueueSelector, tcflush};
use similar::TextDiff;
use std::io::{self, BufRead, IsTerminal, Read};
use std::time::Duration;

/// How long looking for the smallest difference takes before a larger one will do.
const COMPARING_TIME: Duration = Duration::from_millis(500);
/// How many digits of a hash are enough; as many as `lango mcp list` shows.
const ENOUGH_DIGITS: usize = 12;
/// The longest answer that is read.
const LONGEST_ANSWER: u64 = 1024;

/// How a person agrees.
pub enum Consent {
    /// At the terminal, to what is shown there.
    IsAskedFor,
    /// On the command line, to all that is shown.
    ToAll,
    /// On the command line, to the forms with these hashes.
    ToHashes(Vec<String>),
}

/// What waits for being accepted.
struct Waiting {
    files: Vec<PendingFile>,
    tools: Vec<Pending>,
}

/// Shows what changed of a server, and accepts it if the person agrees.
pub fn trust(servers: &Servers, id: &str, consent: Consent) -> Result<Exit, Failure> {
    let mut waiting = Waiting::find(servers, id)?;
    if let Consent::ToHashes(hashes) = &consent {
        waiting.choose(id, hashes)?;
    }
    if waiting.count() == 0 {
        screen::print(&format!("nothing of `{id}` changed since it was pinned"))?;
        return Ok(Exit::Ok);
    }
    for file in &waiting.files {
        screen::print(&sanitize(&file_difference(file)))?;
    }
    for tool in &waiting.tools {
        screen::print(&sanitize(&difference(tool)))?;
    }
    if matches!(consent, Consent::IsAskedFor) && !is_agreed(id, &waiting)? {
        screen::print("nothing was accepted")?;
        return Ok(Exit::Denied);
    }
    waiting.accept(servers, id)
}

impl Waiting {
    fn find(servers: &Servers, id: &str) -> Result<Self, Failure> {
        let files = servers.pending_files(id);
        let files = files.map_err(|error| {
            let message = format!("the MCP server `{id}`: {error}");
            Failure::new(Exit::Config, message).next("docs/mcp.md tells what a server can run")
        })?;
        let tools = match servers.pending(id) {
            // A server whose files nobody trusted was never started, so that nothing is known of its tools.
            Err(PinError::NoSuchServer { .. }) if !files.is_empty() => Vec::new(),
            pending => pending?,
        };
        Ok(Self { files, tools })
    }

    fn count(&self) -> usize {
        self.files.len() + self.tools.len()
    }

    /// Leaves only what has these hashes; each has to be there.
    fn choose(&mut self, id: &str, hashes: &[String]) -> Result<(), Failure> {
        let is_meant =
            |hash: &String, found: &str| hash.len() >= ENOUGH_DIGITS && found.starts_with(hash);
        let files = self.files.iter().map(|file| file.digest.as_str());
        let tools = self.tools.iter().map(|tool| tool.now.hash.as_str());
        let found: Vec<&str> = files.chain(tools).collect();
        for hash in hashes {
            if !found.iter().any(|found| is_meant(hash, found)) {
                let message = format!(
                    "no file and no tool of `{id}` waits for being accepted in a form with the hash `{hash}` (of at least \
                     {ENOUGH_DIGITS} digits)"
                );
                return Err(
                    Failure::new(Exit::Usage, message).next(format!("lango mcp trust {id}"))
                );
            }
        }
        let is_chosen = |found: &str| hashes.iter().any(|hash| is_meant(hash, found));
        self.files.retain(|file| is_chosen(&file.digest));
        self.tools.retain(|tool| is_chosen(&tool.now.hash));
        Ok(())
    }

    /// Accepts what was shown, and nothing that changed since.
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
            "the server changed this again meanwhile, so it was not accepted: {}",
            sanitize(&changed.join(", "))
        );
        Err(Failure::new(Exit::Failed, message).next(format!("lango mcp trust {id}")))
    }
}

/// What is new of a file: every line of a text that is short enough, the digest of anything else.
fn file_difference(file: &PendingFile) -> String {
    let what = match &file.before {
        Some(before) => format!("changed, was {before}"),
        None => "new".to_owned(),
    };
    let size = screen::count(file.size as u64, "byte");
    let heading = format!("{}  {what}  {}  {size}", file.path.display(), file.digest);
    match &file.texts {
        Some((before, now)) => format!("{heading}\n{}", lines_changed(before, now)),
        None => format!("{heading}\n(too long to show, or not a text)\n"),
    }
}

/// What is new of a tool: every line of it, because every line of it is told to a model.
fn difference(tool: &Pending) -> String {
    let old = tool.before.as_ref().map(Form::text).unwrap_or_default();
    let new = tool.now.text();
    let what = match tool.before {
        Some(_) => "changed",
        None => "new",
    };
    let name = screen::one_line(&tool.tool, 200);
    format!(
        "{name}  {what}  {}\n{}",
        tool.now.hash,
        lines_changed(&old, &new)
    )
}

fn lines_changed(old: &str, new: &str) -> String {
    let diff = TextDiff::configure()
        .timeout(COMPARING_TIME)
        .diff_lines(old, new);
    diff.unified_diff().context_radius(3).to_string()
}

/// Asks the person, who has to see what they are asked about.
fn is_agreed(id: &str, waiting: &Waiting) -> Result<bool, Failure> {
    let stdin = io::stdin();
    if !stdin.is_terminal() || !io::stdout().is_terminal() {
        let message = "nobody is there to ask, so nothing was accepted";
        return Err(Failure::new(Exit::Denied, message).next(format!(
            "look at what is shown, then accept it with `lango mcp trust {id} --yes`, or one form of it with `--hash`"
        )));
    }
    // What was typed before the question was there is no answer to it.
    let _ = tcflush(&stdin, QueueSelector::IFlush);
    let counts = [(waiting.files.len(), "file"), (waiting.tools.len(), "tool")];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts
        .map(|(count, what)| screen::count(*count as u64, what))
        .collect();
    let counts = counts.join(" and ");
    screen::write_all(&format!("accept {counts} of `{id}` like this? [y/N] "))?;
    let mut answer = String::new();
    stdin.lock().take(LONGEST_ANSWER).read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
