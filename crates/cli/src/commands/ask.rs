//! Asking the person at the terminal whether a call may run. Where nobody can be asked, the answer is no, and the rule that
//! would have allowed the call is named.

use crate::exit::{Exit, Failure};
use crate::markdown::is_disruptive;
use crate::screen::{self, allowing_rule, request};
use lango_core::{Answer, AnsweredBy, Text, Waiting};
use lango_engine::Conversation;
use rustyline::error::ReadlineError;
use rustyline::{Behavior, Config, DefaultEditor};
use std::io::IsTerminal;

/// Who is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asker {
    /// The person at the terminal.
    Terminal,
    /// The person at the terminal, now or never: nothing is kept that could wait.
    TerminalNow,
    /// Nobody: what would have to be asked is denied.
    Nobody,
    /// Somebody, later: what would have to be asked waits in the log.
    Later,
}

/// What comes of asking.
pub enum Reply {
    /// An answer.
    Answered(Answer, AnsweredBy),
    /// The turn is to be stopped.
    Stop,
    /// The turn is to wait.
    Wait,
}

impl Asker {
    /// The person, if a terminal is there to ask them.
    pub fn of_this_process() -> Self {
        let is_there = std::io::stderr().is_terminal()
            && (std::io::stdin().is_terminal() || std::fs::File::open("/dev/tty").is_ok());
        if is_there {
            Self::Terminal
        } else {
            Self::Nobody
        }
    }

    /// Asks about the first of these.
    pub async fn ask(
        self,
        conversation: &Conversation,
        waiting: &[Waiting],
        folder: &str,
    ) -> Result<Reply, Failure> {
        let Some(first) = waiting.first() else {
            return Ok(Reply::Wait);
        };
        match self {
            Self::Later => Ok(Reply::Wait),
            Self::Nobody => {
                let reason = Some(tell_nobody(first));
                Ok(Reply::Answered(Answer::No { reason }, AnsweredBy::Nobody))
            }
            Self::Terminal | Self::TerminalNow => {
                let preview = conversation.preview(first).await;
                screen::say(&request(first, preview.as_deref(), waiting.len() - 1));
                let pattern = first.request.pattern.clone();
                let reply = ask_person(pattern, folder.into(), self).await?;
                Ok(match (self, reply) {
                    (Self::TerminalNow, Reply::Wait) => Reply::Stop,
                    (_, reply) => reply,
                })
            }
        }
    }
}

/// Says on stderr what was denied and how to allow it; gives what the model is told.
fn tell_nobody(waiting: &Waiting) -> Text {
    let request = &waiting.request;
    let (agent, tool) = (&request.agent, &request.tool);
    let way = match allowing_rule(waiting) {
        Some(rule) => format!("allow it with {rule}"),
        None => "it has to be allowed at a terminal each time".to_owned(),
    };
    screen::say(&format!(
        "denied: {agent} wanted {tool}, and nobody could be asked ({})\n  next: {way}",
        request.reason
    ));
    "nobody could be asked whether it may run; say that it was not done and why".into()
}

/// Reads the answer on a thread of its own, since the terminal is waited for there.
async fn ask_person(pattern: Option<Text>, folder: Text, asker: Asker) -> Result<Reply, Failure> {
    let typed = tokio::task::spawn_blocking(move || read_reply(pattern, folder, asker));
    let reply = tokio::select! {
        typed = typed => typed.map_err(|error| error.to_string()),
        () = super::watch::asked_to_end() => return Ok(Reply::Wait),
    };
    let reply = reply.and_then(|reply| reply.map_err(|error| error.to_string()));
    reply.map_err(|error| {
        let message = format!("the terminal cannot be read: {error}");
        Failure::new(Exit::Failed, message)
    })
}

fn read_reply(pattern: Option<Text>, folder: Text, asker: Asker) -> rustyline::Result<Reply> {
    let config = Config::builder().behavior(Behavior::PreferTerm).build();
    let mut editor = DefaultEditor::with_config(config)?;
    let for_longer = pattern.as_ref().map(|pattern| {
        let pattern = screen::one_line(pattern, 40);
        format!("s this session · p always here: {pattern} · ")
    });
    let later = match asker {
        Asker::TerminalNow => "",
        _ => " · ctrl-d later",
    };
    let keys = format!(
        "└ y once · {}n no · e no, and say why{later} > ",
        for_longer.unwrap_or_default()
    );
    loop {
        let typed = match editor.readline(&keys) {
            Ok(typed) => typed,
            Err(error) => return leaving(error),
        };
        let answer = match (typed.trim().to_lowercase().as_str(), &pattern) {
            ("y" | "yes", _) => Answer::Once,
            ("n" | "no", _) => Answer::No { reason: None },
            ("e", _) => match editor.readline("  why not? > ") {
                Ok(why) => Answer::No {
                    reason: reason(&why),
                },
                Err(error) => return leaving(error),
            },
            (key @ ("s" | "p"), Some(pattern)) => {
                let pattern = match edit(&mut editor, pattern) {
                    Ok(edited) if edited.trim().is_empty() => continue,
                    Ok(edited) => edited,
                    Err(error) => return leaving(error),
                };
                match key {
                    "s" => Answer::Session { pattern },
                    _ => Answer::Always { pattern, folder },
                }
            }
            _ => continue,
        };
        return Ok(Reply::Answered(answer, AnsweredBy::Person));
    }
}

/// Lets the person change a pattern. One that a terminal would obey instead of show stays as it is.
fn edit(editor: &mut DefaultEditor, pattern: &Text) -> rustyline::Result<Text> {
    if pattern
        .chars()
        .any(|letter| letter.is_control() || is_disruptive(letter))
    {
        screen::say(&format!(
            "  for calls like: {}",
            screen::one_line(pattern, 400)
        ));
        return Ok(Text::clone(pattern));
    }
    let edited = editor.readline_with_initial("  for calls like > ", (pattern, ""))?;
    Ok(edited.trim().into())
}

/// What the person said why, as the model is told it.
pub fn reason(why: &str) -> Option<Text> {
    let why = why.trim();
    (!why.is_empty()).then(|| format!("the user said no: {why}").into())
}

/// Ctrl-C stops the turn, Ctrl-D lets it wait.
fn leaving(error: ReadlineError) -> rustyline::Result<Reply> {
    match error {
        ReadlineError::Interrupted => Ok(Reply::Stop),
        ReadlineError::Eof => Ok(Reply::Wait),
        other => Err(other),
    }
}
