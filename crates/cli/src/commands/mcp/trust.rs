//! `lango mcp trust`: all that changed of a server's tools is shown first, and accepted in the very form that was shown.

use crate::exit::{Exit, Failure};
use crate::markdown::sanitize;
use crate::screen;
use lango_mcp::{Form, Pending, Servers};
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

/// Shows what changed of a server, and accepts it if the person agrees.
pub fn trust(servers: &Servers, id: &str, consent: Consent) -> Result<Exit, Failure> {
    let mut pending = servers.pending(id)?;
    if let Consent::ToHashes(hashes) = &consent {
        pending = chosen(id, pending, hashes)?;
    }
    if pending.is_empty() {
        screen::print(&format!("nothing of `{id}` changed since it was pinned"))?;
        return Ok(Exit::Ok);
    }
    for tool in &pending {
        screen::print(&sanitize(&difference(tool)))?;
    }
    if matches!(consent, Consent::IsAskedFor) && !is_agreed(id, pending.len())? {
        screen::print("nothing was accepted")?;
        return Ok(Exit::Denied);
    }
    let accepted = servers.trust(id, &pending)?;
    for tool in &accepted {
        screen::print(&sanitize(&format!("accepted: {tool}")))?;
    }
    let changed: Vec<&str> = pending
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

/// The forms with these hashes; each has to be there.
fn chosen(id: &str, pending: Vec<Pending>, hashes: &[String]) -> Result<Vec<Pending>, Failure> {
    let is_meant =
        |hash: &str, tool: &Pending| hash.len() >= ENOUGH_DIGITS && tool.now.hash.starts_with(hash);
    for hash in hashes {
        if !pending.iter().any(|tool| is_meant(hash, tool)) {
            let message = format!(
                "no tool of `{id}` waits for being accepted in a form with the hash `{hash}` (of at least {ENOUGH_DIGITS} digits)"
            );
            return Err(Failure::new(Exit::Usage, message).next(format!("lango mcp trust {id}")));
        }
    }
    let mut pending = pending;
    pending.retain(|tool| hashes.iter().any(|hash| is_meant(hash, tool)));
    Ok(pending)
}

/// What is new of a tool: every line of it, because every line of it is told to a model.
fn difference(tool: &Pending) -> String {
    let old = tool.before.as_ref().map(Form::text).unwrap_or_default();
    let new = tool.now.text();
    let diff = TextDiff::configure()
        .timeout(COMPARING_TIME)
        .diff_lines(&old, &new);
    let what = match tool.before {
        Some(_) => "changed",
        None => "new",
    };
    let name = screen::one_line(&tool.tool, 200);
    format!(
        "{name}  {what}  {}\n{}",
        tool.now.hash,
        diff.unified_diff().context_radius(3)
    )
}

/// Asks the person, who has to see what they are asked about.
fn is_agreed(id: &str, tools: usize) -> Result<bool, Failure> {
    let stdin = io::stdin();
    if !stdin.is_terminal() || !io::stdout().is_terminal() {
        let message = "nobody is there to ask, so nothing was accepted";
        return Err(Failure::new(Exit::Denied, message).next(format!(
            "look at what is shown, then accept it with `lango mcp trust {id} --yes`, or one form of it with `--hash`"
        )));
    }
    // What was typed before the question was there is no answer to it.
    let _ = tcflush(&stdin, QueueSelector::IFlush);
    let tools = screen::count(tools as u64, "tool");
    screen::write_all(&format!("accept {tools} of `{id}` like this? [y/N] "))?;
    let mut answer = String::new();
    stdin.lock().take(LONGEST_ANSWER).read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
