//! Asks the user at the terminal whether a call may run. Without a terminal the call is denied, and the message names
//! the rule that would have allowed it.

use super::watch::PromptContext;
use crate::screen::{self, RequestDetail, allowing_rule, request};
use lango::app::terminal_state::TerminalState;
use lango::app::{Failure, FailureKind};
use lango::{ApprovalDecision, Approver, PendingCall};
use lango_core::{
    ApprovalAnswer, BoxFuture, PendingApproval, PreviewLength, RuleSubject, Text, UserId,
};
use lango_engine::{UpdateBacklog, edited_grant_problem};
use rustix::termios::QueueSelector;
use rustyline::error::ReadlineError;
use rustyline::{Behavior, Config, DefaultEditor};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// What happens when a call needs approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApprovalMode {
    /// Ask the user at the terminal.
    Terminal,
    /// Ask the user at the terminal; the turn cannot wait, because nothing is persisted.
    TerminalOnly,
    /// Deny the call, because no user can be asked.
    Deny,
    /// Leave the request pending in the log.
    Defer,
}

/// What the user did at the prompt.
enum Reply {
    Answered(ApprovalAnswer),
    /// Stop the turn.
    Stop,
    /// Leave the request pending.
    Wait,
}

impl ApprovalMode {
    /// Returns [`Terminal`](Self::Terminal) if this process has a terminal, or else [`Deny`](Self::Deny).
    pub(super) fn detect() -> Self {
        let has_terminal = std::io::stderr().is_terminal()
            && (std::io::stdin().is_terminal() || std::fs::File::open("/dev/tty").is_ok());
        if has_terminal {
            Self::Terminal
        } else {
            Self::Deny
        }
    }
}

/// Asks the user at the terminal, or decides without one, as the [`ApprovalMode`] says.
pub(super) struct TerminalApprover<'a> {
    mode: ApprovalMode,
    context: PromptContext<'a>,
    /// The updates that are not on the screen yet.
    backlog: UpdateBacklog,
    is_prompting: AtomicBool,
    denied: Mutex<Vec<PendingApproval>>,
    failure: Mutex<Option<Failure>>,
}

impl<'a> TerminalApprover<'a> {
    pub(super) fn new(
        mode: ApprovalMode,
        context: PromptContext<'a>,
        backlog: UpdateBacklog,
    ) -> Self {
        Self {
            mode,
            context,
            backlog,
            is_prompting: AtomicBool::new(false),
            denied: Mutex::default(),
            failure: Mutex::default(),
        }
    }

    /// Whether the user is being asked.
    pub(super) fn is_prompting(&self) -> bool {
        self.is_prompting.load(Ordering::Relaxed)
    }

    /// Returns the calls that were denied because no user could be asked; fails if a prompt failed.
    pub(super) fn finish(self) -> Result<Vec<PendingApproval>, Failure> {
        let failure = self.failure.into_inner();
        match failure.unwrap_or_else(PoisonError::into_inner) {
            Some(failure) => Err(failure),
            None => Ok(self
                .denied
                .into_inner()
                .unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// Prompts for what an allowed call needs, such as a passphrase, while the turn waits. Returns the user's answer, or
    /// a denial if the prompt was declined.
    pub(super) async fn prepare(
        &self,
        user: &UserId,
        approval: &PendingApproval,
        answer: ApprovalAnswer,
    ) -> Result<ApprovalAnswer, Failure> {
        if !answer.allows() {
            return Ok(answer);
        }
        let prepared = self.context.vaults.prepare(user, approval).await?;
        Ok(prepared.unwrap_or(answer))
    }

    async fn decide(&self, call: PendingCall<'_>) -> ApprovalDecision {
        // The question comes after what led to it.
        self.backlog.emptied().await;
        self.is_prompting.store(true, Ordering::Relaxed);
        let decision = match self.ask(call).await {
            Ok(ApprovalDecision::Answer(answer)) => {
                match self.prepare(call.user(), call.approval, answer).await {
                    Ok(answer) => Ok(ApprovalDecision::Answer(answer)),
                    // Ctrl-C at a prompt stops the turn, as it does while the turn runs.
                    Err(failure) if failure.kind == FailureKind::Interrupted => {
                        Ok(ApprovalDecision::Cancel)
                    }
                    Err(failure) => Err(failure),
                }
            }
            decision => decision,
        };
        self.is_prompting.store(false, Ordering::Relaxed);
        decision.unwrap_or_else(|failure| {
            let mut failed = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            *failed = Some(failure);
            ApprovalDecision::Defer
        })
    }

    async fn ask(&self, call: PendingCall<'_>) -> Result<ApprovalDecision, Failure> {
        let approval = call.approval;
        let is_permission = approval.request.question.is_permission();
        match self.mode {
            ApprovalMode::Defer => Ok(ApprovalDecision::Defer),
            // A call that may already have run cannot be denied; a user has to say what happened.
            ApprovalMode::Deny if !is_permission => Ok(ApprovalDecision::Defer),
            ApprovalMode::Deny => {
                let reason = report_denied(approval);
                let mut denied = self.denied.lock().unwrap_or_else(PoisonError::into_inner);
                denied.push(approval.clone());
                Ok(ApprovalDecision::Unattended { reason })
            }
            ApprovalMode::Terminal | ApprovalMode::TerminalOnly => {
                let preview = call.preview(PreviewLength::Short).await;
                let shown = RequestDetail::Preview(preview.as_deref());
                screen::say(&request(approval, shown, call.more, screen::columns()));
                let can_wait = self.mode == ApprovalMode::Terminal;
                let question = Question {
                    waiting: approval.clone(),
                    folder: self.context.folder.into(),
                    whole: call.preview(PreviewLength::Full).await,
                    subject: call.subject(),
                    can_wait,
                };
                let reply = ask_user(question).await?;
                Ok(match reply {
                    Reply::Answered(answer) => ApprovalDecision::Answer(answer),
                    Reply::Wait => ApprovalDecision::Defer,
                    // Leaving the prompt does not answer what happened to the call.
                    Reply::Stop if !is_permission && can_wait => ApprovalDecision::Defer,
                    Reply::Stop => ApprovalDecision::Cancel,
                })
            }
        }
    }
}

impl Approver for TerminalApprover<'_> {
    fn approve<'a>(&'a self, call: PendingCall<'a>) -> BoxFuture<'a, ApprovalDecision> {
        Box::pin(self.decide(call))
    }

    fn reconcile<'a>(&'a self, call: PendingCall<'a>) -> BoxFuture<'a, ApprovalDecision> {
        Box::pin(self.decide(call))
    }

    fn answered_elsewhere(&self, _call: PendingCall<'_>) {
        screen::say("answered by another process, which continues the turn");
    }
}

/// Prints on stderr what was denied and how to allow it; returns the result that the model gets.
fn report_denied(waiting: &PendingApproval) -> Text {
    let request = &waiting.request;
    let (agent, tool) = (&request.agent, &request.tool);
    let next = match allowing_rule(waiting) {
        Some(rule) => format!("allow it with {rule}"),
        None => "run it at a terminal, where each call can be approved".to_owned(),
    };
    screen::say(&format!(
        "denied: {agent} wanted to call {tool}, and no user could be asked ({})\n  next: {next}",
        request.reason
    ));
    "no user could be asked to approve the call; say that it was not done and why".into()
}

/// A question to the user.
struct Question {
    waiting: PendingApproval,
    folder: Text,
    /// The full preview of what the call would change.
    whole: Option<String>,
    /// What patterns for this tool are matched against.
    subject: RuleSubject,
    /// Whether the turn can stay pending.
    can_wait: bool,
}

/// Reads the answer on a separate thread, because reading the terminal blocks.
async fn ask_user(question: Question) -> Result<Reply, Failure> {
    let can_wait = question.can_wait;
    let terminal = TerminalState::of_input();
    let typed = tokio::task::spawn_blocking(move || question.read_reply());
    let reply = tokio::select! {
        typed = typed => typed.map_err(|error| error.to_string()),
        _ = tokio::signal::ctrl_c() => {
            terminal.restore();
            return Ok(Reply::Stop);
        }
        () = super::watch::termination_requested() => {
            terminal.restore();
            return Ok(Reply::Wait);
        }
    };
    let reply = reply.and_then(|reply| reply.map_err(|error| error.to_string()));
    let reply = reply.map_err(|error| {
        let message = format!("cannot read from the terminal: {error}");
        Failure::failed(message)
    })?;
    Ok(match reply {
        Reply::Wait if !can_wait => Reply::Stop,
        reply => reply,
    })
}

impl Question {
    /// Returns the pattern for a lasting grant, if one can be offered. Without persistence no grant can outlast the
    /// call.
    fn pattern(&self) -> Option<&Text> {
        let pattern = self.waiting.request.pattern.as_ref();
        pattern.filter(|_| self.can_wait)
    }

    fn keys(&self) -> String {
        if !self.waiting.request.question.is_permission() {
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
            let pattern = screen::one_line(&screen::escape_invisible(pattern), 40);
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
        // Discard what was typed before the question appeared.
        let _ = rustix::termios::tcflush(std::io::stdin(), QueueSelector::IFlush);
        let config = Config::builder().behavior(Behavior::PreferTerm).build();
        let mut editor = DefaultEditor::with_config(config)?;
        let keys = self.keys();
        loop {
            let typed = match editor.readline(&keys) {
                Ok(typed) => typed,
                Err(error) => return reply_to_exit(error),
            };
            let typed = typed.trim().to_lowercase();
            if !self.waiting.request.question.is_permission() && typed != "v" {
                match self.read_outcome_answer(&mut editor, &typed)? {
                    Some(reply) => return Ok(reply),
                    None => continue,
                }
            }
            let answer = match (typed.as_str(), self.pattern()) {
                ("y" | "yes", _) => ApprovalAnswer::Once,
                ("n" | "no", _) => ApprovalAnswer::No { reason: None },
                ("e", _) => match editor.readline("  why not? > ") {
                    Ok(why) => ApprovalAnswer::No {
                        reason: reason(&why),
                    },
                    Err(error) => return reply_to_exit(error),
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
                        Err(error) => return reply_to_exit(error),
                    };
                    let folder = Text::clone(&self.folder);
                    match key {
                        "s" => ApprovalAnswer::Session { pattern },
                        _ => ApprovalAnswer::Always { pattern, folder },
                    }
                }
                ("v", _) => {
                    let shown = RequestDetail::Everything(self.whole.as_deref());
                    let text = request(&self.waiting, shown, 0, screen::columns());
                    page_through(&mut editor, &text)?;
                    continue;
                }
                _ => {
                    screen::say("  type one of the letters, then Enter; nothing runs before that");
                    continue;
                }
            };
            return Ok(Reply::Answered(answer));
        }
    }
}

impl Question {
    /// Reads the answer about a call that may have run; `None` if the letter is unknown.
    fn read_outcome_answer(
        &self,
        editor: &mut DefaultEditor,
        typed: &str,
    ) -> rustyline::Result<Option<Reply>> {
        let answer = match typed {
            "r" => ApprovalAnswer::Retry,
            "s" => ApprovalAnswer::Skip,
            "t" => match editor.readline("  what happened? > ") {
                Ok(text) if text.trim().is_empty() => return Ok(None),
                Ok(text) => ApprovalAnswer::Happened {
                    text: text.trim().into(),
                },
                Err(error) => return reply_to_exit(error).map(Some),
            },
            _ => {
                screen::say("  type one of the letters, then Enter; nothing runs before that");
                return Ok(None);
            }
        };
        Ok(Some(Reply::Answered(answer)))
    }
}

/// Shows a text page by page.
fn page_through(editor: &mut DefaultEditor, text: &str) -> rustyline::Result<()> {
    let lines: Vec<&str> = text.lines().collect();
    // Two rows are reserved for the prompt below the page.
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
            // Leaving the pager returns to the question.
            Err(ReadlineError::Interrupted | ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// Lets the user edit a pattern. A pattern with control characters cannot be edited and stays as it is.
fn edit(editor: &mut DefaultEditor, pattern: &Text) -> rustyline::Result<Text> {
    let shown = screen::escape_invisible(pattern);
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

/// Formats the user's reason for the model.
pub(super) fn reason(why: &str) -> Option<Text> {
    let why = why.trim();
    (!why.is_empty()).then(|| format!("the user said no: {why}").into())
}

/// Maps leaving the prompt to a reply: Ctrl-C stops the turn, Ctrl-D leaves it waiting.
fn reply_to_exit(error: ReadlineError) -> rustyline::Result<Reply> {
    match error {
        ReadlineError::Interrupted => Ok(Reply::Stop),
        ReadlineError::Eof => Ok(Reply::Wait),
        other => Err(other),
    }
}
