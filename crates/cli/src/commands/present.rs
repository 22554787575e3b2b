//! The output of commands that run a turn: the answer on stdout in the requested format, everything else on stderr,
//! and the exit code.

use super::turn_screen::{ActivityDetail, TurnDisplay};
use super::watch::WatchedTurn;
use crate::exit::Exit;
use crate::screen::{self, DemoNote, Layout, allowing_rule, ending, subject_line, totals};
use crate::terminal::{Output, Palette, ScreenMode};
use lango::app::Failure;
use lango_config::redact;
use lango_core::{ApprovalQuestion, Outcome, PendingApproval};
use lango_engine::{TurnEnd, TurnReport};
use lango_markdown as markdown;
use lango_models::OfflineModel;
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::time::Duration;

/// How to print a turn.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Presentation {
    /// Print one JSON object at the end.
    pub json: bool,
    /// Print each event as JSON when it is stored.
    pub jsonl: bool,
    /// Print no progress.
    pub quiet: bool,
    /// The session is not stored, so it cannot be continued.
    pub ephemeral: bool,
    /// The answer is JSON, which is printed as it is.
    pub structured: bool,
    /// Print plain lines, without attributes.
    pub is_plain: bool,
    /// What to print when the turn starts, if the built-in rules answer.
    pub demo_notice: Option<&'static str>,
}

impl Presentation {
    /// Returns how to display a turn while it runs. The answer is streamed only to a terminal that shows nothing else on
    /// stdout.
    pub(super) fn display(self) -> TurnDisplay {
        let screen = ScreenMode::detect(self.is_plain, Output::Stderr);
        let streams_answer = screen == ScreenMode::Live
            && std::io::stdout().is_terminal()
            && !(self.json || self.jsonl || self.quiet || self.structured);
        TurnDisplay {
            screen,
            progress: Output::Stderr,
            is_quiet: self.quiet,
            prints_events: self.jsonl,
            streams_answer,
            opening: self.demo_notice,
            detail: ActivityDetail::Everything,
        }
    }

    /// Prints the result of a turn and returns the exit code.
    pub(super) fn present(
        self,
        watched: &WatchedTurn,
        model: &str,
        elapsed: Duration,
    ) -> Result<Exit, Failure> {
        let report = match &watched.end {
            TurnEnd::Finished(report) => report,
            TurnEnd::Waiting(waiting) => return self.present_waiting(waiting),
        };
        let model = report.model.as_deref().unwrap_or(model);
        if self.json {
            let summary = summary(model, report, &watched.denied, elapsed);
            screen::print(&screen::json(&summary, Layout::Line)?)?;
        } else if let Some(answer) = report
            .answer_without_error()
            .filter(|_| !self.jsonl && !watched.is_answer_shown)
        {
            if report.structured {
                print_structured(answer, &report.outcome)?;
            } else {
                let text = markdown::render(answer, self.style(), screen::columns());
                screen::print_rendered(text.trim_end_matches('\n'))?;
            }
        }
        // An error is no progress, so it is printed even if no progress is.
        match screen::failure(&report.outcome) {
            Some(failure) => screen::say(&format!("error: {failure}")),
            None if self.quiet => {}
            None => ending(&report.outcome)
                .iter()
                .for_each(|line| screen::say(line)),
        }
        if !self.quiet {
            let demo_note = match self.demo_notice {
                Some(_) => DemoNote::Omitted,
                None => DemoNote::Shown,
            };
            screen::say(&totals(report, model, elapsed, demo_note));
            if !self.ephemeral {
                screen::say(&format!(
                    "continue: lango run --session {} \"…\"",
                    report.session
                ));
            }
        }
        Ok(match Exit::from(&report.outcome) {
            Exit::Ok if !watched.denied.is_empty() => Exit::Denied,
            exit => exit,
        })
    }

    fn style(self) -> markdown::Style {
        match ScreenMode::detect(self.is_plain, Output::Stdout) {
            ScreenMode::Live => Palette::for_terminal().markdown(),
            ScreenMode::Plain => Palette::plain().markdown(),
        }
    }

    /// Prints the pending approvals of a turn that has no answer yet.
    fn present_waiting(self, waiting: &[PendingApproval]) -> Result<Exit, Failure> {
        if self.json {
            let session = waiting.first().map(|first| &first.session);
            let summary = json!({ "outcome": "waiting", "session": session, "waiting": waiting });
            screen::print(&screen::json(&summary, Layout::Line)?)?;
        }
        screen::say(&describe_pending(waiting));
        Ok(Exit::Denied)
    }
}

/// Prints a structured answer: stdout gets exactly the JSON that the model wrote. Without an answer stdout stays
/// empty, and stderr says what happened.
fn print_structured(answer: &str, outcome: &Outcome) -> std::io::Result<()> {
    match outcome {
        Outcome::Answered { .. } if std::io::stdout().is_terminal() => screen::print(answer),
        Outcome::Answered { .. } => screen::print_rendered(answer),
        _ => {
            screen::say(&redact(answer));
            Ok(())
        }
    }
}

/// Describes the pending approvals and how to answer them.
pub(super) fn describe_pending(waiting: &[PendingApproval]) -> String {
    let mut lines: Vec<String> = waiting
        .iter()
        .map(|waiting| {
            format!(
                "{}: {}  {}",
                match waiting.request.question {
                    ApprovalQuestion::Permission => "waiting",
                    ApprovalQuestion::UnknownOutcome | ApprovalQuestion::ContinueTurn =>
                        "may have run (unknown outcome)",
                },
                waiting.request.id,
                subject_line(&waiting.request)
            )
        })
        .collect();
    lines.push(format!("  next: {}", answer_command(waiting)));
    lines.join("\n")
}

/// Returns the command that answers the first pending approval.
pub(super) fn answer_command(waiting: &[PendingApproval]) -> String {
    match waiting.first().map(|first| &first.request) {
        Some(request) if !request.question.is_permission() => format!(
            "lango approvals answer {} retry (or skip, or happened --because \"…\")",
            request.id
        ),
        Some(request) => format!("lango approvals answer {} yes (or no)", request.id),
        None => "lango approvals".to_owned(),
    }
}

/// Returns the output of `--json`.
fn summary(
    model: &str,
    report: &TurnReport,
    denied: &[PendingApproval],
    elapsed: Duration,
) -> Value {
    let error = match &report.outcome {
        Outcome::Failed { error, .. } => Some(redact(error)),
        _ => None,
    };
    let denied: Vec<Value> = denied
        .iter()
        .map(|waiting| {
            let request = &waiting.request;
            json!({
                "agent": request.agent,
                "tool": request.tool,
                "arguments": request.arguments,
                "reason": request.reason,
                "allow": allowing_rule(waiting),
            })
        })
        .collect();
    json!({
        "answer": report.answer_without_error(),
        "author": report.author,
        "outcome": report.outcome.name(),
        "limit": report.outcome.limit(),
        "error": error,
        "denied": denied,
        "session": report.session,
        "turn": report.turn,
        "model": model,
        "offline": model == OfflineModel::NAME,
        "model_calls": report.model_calls,
        "tool_calls": report.tool_calls,
        "rounds": report.rounds,
        "usage": report.usage,
        "time_ms": elapsed.as_millis() as u64,
        "cost_usd": report.cost_micros.map(|micros| micros as f64 / 1e6),
    })
}
