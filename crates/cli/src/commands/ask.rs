//! Asking the person at the terminal whether a call may run. Where nobody can be asked, the answer is no, and the rule that
//! would have allowed the call is named.

use crate::exit::{Exit, Failure};
use crate::screen::{self, Shown, allowing_rule, request};
use crate::terminal_state::TerminalState;
use lango_core::{Answer, AnsweredBy, Extent, Subject, Text, Waiting};
use lango_engine::{Conversation, edited_grant_problem};
use rustix::termios::QueueSelector;
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
            // What may have happened cannot be denied any more; somebody has to say what became of it.
            Self::Nobody if !first.request.asks.is_permission() => Ok(Reply::Wait),
            Self::Nobody => {
                let reason = Some(tell_nobody(first));
                Ok(Reply::Answered(Answer::No { reason }, AnsweredBy::Nobody))
            }
            Self::Terminal | Self::TerminalNow => {
                let preview = conversation.preview(first, Extent::Short).await;
                let shown = Shown::Preview(preview.as_deref());
                let columns = screen::columns();
                screen::say(&request(first, shown, waiting.len() - 1, columns));
                let can_wait = self == Self::Terminal;
                let question = Question {
                    waiting: first.clone(),
                    folder: folder.into(),
                    whole: conversation.preview(first, Extent::Whole).await,
                    subject: conversation.subject_of(first),
                    can_wait,
                };
                let reply = ask_person(question).await?;
                // Leaving says nothing of what became of a call.
                let is_left = matches!(reply, Reply::Stop) && !first.request.asks.is_permission();
                Ok(if is_left && can_wait {
                    Reply::Wait
                } else {
                    reply
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

/// What a person is asked.
struct Question {
    waiting: Waiting,
    folder: Text,
    /// All of what the call would change.
    whole: Option<String>,
    /// What patterns for such calls are matched against.
    subject: Subject,
    /// Whether the turn can be left waiting.
    can_wait: bool,
}

/// Reads the answer on a thread of its own, since the terminal is waited for there.
async fn ask_person(question: Question) -> Result<Reply, Failure> {
    let can_wait = question.can_wait;
    let terminal = TerminalState::of_input();
    let typed = tokio::task::spawn_blocking(move || question.read_reply());
    let reply = tokio::select! {
        typed = typed => typed.map_err(|error| error.to_string()),
        _ = tokio::signal::ctrl_c() => {
            terminal.restore();
            return Ok(Reply::Stop);
        }
        () = super::watch::asked_to_end() => {
            terminal.restore();
            return Ok(Reply::Wait);
        }
    };
    let reply = reply.and_then(|reply| reply.map_err(|error| error.to_string()));
    let reply = reply.map_err(|error| {
        let message = format!("the terminal cannot be read: {error}");
        Failure::new(Exit::Failed, message)
    })?;
    Ok(match reply {
        Reply::Wait if !can_wait => Reply::Stop,
        reply => reply,
    })
}

impl Question {
    /// The pattern that is offered for longer. What is kept nowhere cannot be granted for longer.
    fn pattern(&self) -> Option<&Text> {
        let pattern = self.waiting.request.pattern.as_ref();
        pattern.filter(|_| self.can_wait)
    }

    fn keys(&self) -> String {
        if !self.waiting.request.asks.is_permission() {
            let later = if self.can_wait {
                " · ctrl-d later"
            } else {
                ""
            };
            return format!(
                "└ r run it again · s skip it · t tell what happened · v view all{later} > "
            );
        }
        let for_longer = self.pattern().map(|pattern| {
            let pattern = screen::one_line(&screen::visible(pattern), 40);
            format!("s this session · p always here: {pattern} · ")
        });
        let later = if self.can_wait {
            " · ctrl-d later"
        } else {
            ""
        };
        format!(
            "└ y once · {}n no · e no, and say why · v view all{later} > ",
            for_longer.unwrap_or_default()
        )
    }

    fn read_reply(&self) -> rustyline::Result<Reply> {
        // What was typed before the question was there is no answer to it.
        let _ = rustix::termios::tcflush(std::io::stdin(), QueueSelector::IFlush);
        let config = Config::builder().behavior(Behavior::PreferTerm).build();
        let mut editor = DefaultEditor::with_config(config)?;
        let keys = self.keys();
        loop {
            let typed = match editor.readline(&keys) {
                Ok(typed) => typed,
                Err(error) => return leaving(error),
            };
            let typed = typed.trim().to_lowercase();
            if !self.waiting.request.asks.is_permission() && typed != "v" {
                match self.read_fate(&mut editor, &typed)? {
                    Some(reply) => return Ok(reply),
                    None => continue,
                }
            }
            let answer = match (typed.as_str(), self.pattern()) {
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
                        Ok(edited) => match edited_grant_problem(self.subject, pattern, &edited) {
                            None => edited,
                            Some(problem) => {
                                screen::say(&format!("  not granted: {problem}"));
                                continue;
                            }
                        },
                        Err(error) => return leaving(error),
                    };
                    let folder = Text::clone(&self.folder);
                    match key {
                        "s" => Answer::Session { pattern },
                        _ => Answer::Always { pattern, folder },
                    }
                }
                ("v", _) => {
                    let shown = Shown::Everything(self.whole.as_deref());
                    let text = request(&self.waiting, shown, 0, screen::columns());
                    page_through(&mut editor, &text)?;
                    continue;
                }
                _ => {
                    screen::say("  type one of the letters, then Enter; nothing runs until then");
                    continue;
                }
            };
            return Ok(Reply::Answered(answer, AnsweredBy::Person));
        }
    }
}

impl Question {
    /// What a person says of a call that may have run; none if the letter means nothing.
    fn read_fate(
        &self,
        editor: &mut DefaultEditor,
        typed: &str,
    ) -> rustyline::Result<Option<Reply>> {
        let answer = match typed {
            "r" => Answer::Retry,
            "s" => Answer::Skip,
            "t" => match editor.readline("  what happened? > ") {
                Ok(told) if told.trim().is_empty() => return Ok(None),
                Ok(told) => Answer::Happened {
                    text: told.trim().into(),
                },
                Err(error) => return leaving(error).map(Some),
            },
            _ => {
                screen::say("  type one of the letters, then Enter; nothing runs until then");
                return Ok(None);
            }
        };
        Ok(Some(Reply::Answered(answer, AnsweredBy::Person)))
    }
}

/// Shows a text a page at a time.
fn page_through(editor: &mut DefaultEditor, text: &str) -> rustyline::Result<()> {
    let lines: Vec<&str> = text.lines().collect();
    // Two rows are for the question below the page.
    let mut rows = screen::rows().saturating_sub(2);
    let mut shown = 0;
    loop {
        let next = lines.len().min(shown + rows);
        screen::say(&lines[shown..next].join("\n"));
        shown = next;
        let left = lines.len() - shown;
        if left == 0 {
            return Ok(());
        }
        let left = screen::count(left as u64, "more line");
        let question = format!("  {left} · Enter next page · a all of it · q back > ");
        match editor.readline(&question) {
            Ok(typed) if typed.trim() == "q" => return Ok(()),
            Ok(typed) if typed.trim() == "a" => rows = usize::MAX / 2,
            Ok(_) => {}
            // Leaving the pages is not leaving the question.
            Err(ReadlineError::Interrupted | ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// Lets the person change a pattern. One that a terminal would obey instead of show stays as it is.
fn edit(editor: &mut DefaultEditor, pattern: &Text) -> rustyline::Result<Text> {
    let shown = screen::visible(pattern);
    if *shown != **pattern {
        screen::say(&format!(
            "  for calls like: {}",
            screen::one_line(&shown, 400)
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
