//! What a command that runs a turn prints: the answer on stdout as it was asked for, everything else on stderr, and the exit
//! code.

use super::watch::Watched;
use crate::exit::{Exit, Failure};
use crate::markdown;
use crate::redact::redact;
use crate::screen::{self, Layout, Progress, allowing_rule, footer, subject_line};
use lango_core::{Asks, Outcome, Waiting};
use lango_engine::{Shown, TurnEnd, TurnReport};
use lango_models::Offline;
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::time::Duration;

/// How a turn is printed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Presentation {
    /// One JSON object at the end.
    pub json: bool,
    /// The events as they are stored.
    pub jsonl: bool,
    /// No progress.
    pub quiet: bool,
    /// Whether the session can be gone on with.
    pub ephemeral: bool,
}

impl Presentation {
    /// Shows what happens: events on stdout if they were asked for, progress on stderr.
    pub fn shower(self) -> impl FnMut(Shown) -> std::io::Result<()> {
        let mut progress = Progress::new();
        move |item| {
            let events = match item {
                Shown::Stored(events) => events,
                Shown::Retrying { agent, reason } if !self.quiet => {
                    screen::say(&format!("  {agent}: {reason}"));
                    return Ok(());
                }
                Shown::InLine if !self.quiet => {
                    screen::say(screen::IN_LINE);
                    return Ok(());
                }
                _ => return Ok(()),
            };
            for event in events.iter() {
                if self.jsonl {
                    screen::write_line(&screen::json(event, Layout::Line)?)?;
                }
                if !self.quiet {
                    progress
                        .lines(event)
                        .iter()
                        .for_each(|line| screen::say(line));
                }
            }
            Ok(())
        }
    }

    /// Prints how far a turn came.
    pub fn present(
        self,
        watched: &Watched,
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
        } else if let Some(answer) = report.answer.as_ref().filter(|_| !self.jsonl) {
            if report.structured {
                print_structured(answer, &report.outcome)?;
            } else {
                let text = markdown::render(answer, style());
                screen::print_rendered(text.trim_end_matches('\n'))?;
            }
        }
        if !self.quiet {
            screen::say(&footer(report, model, elapsed));
            if !self.ephemeral {
                screen::say(&format!(
                    "go on: lango run --session {} \"…\"",
                    report.session
                ));
            }
        }
        Ok(match Exit::from(&report.outcome) {
            Exit::Ok if !watched.denied.is_empty() => Exit::Denied,
            exit => exit,
        })
    }

    /// A turn that waits has no answer yet.
    fn present_waiting(self, waiting: &[Waiting]) -> Result<Exit, Failure> {
        if self.json {
            let session = waiting.first().map(|first| &first.session);
            let summary = json!({ "outcome": "waiting", "session": session, "waiting": waiting });
            screen::print(&screen::json(&summary, Layout::Line)?)?;
        }
        screen::say(&waits(waiting));
        Ok(Exit::Denied)
    }
}

/// Prints an answer by a schema: on stdout the JSON as the model wrote it, and nothing but that. Without an answer stdout
/// stays empty, and what happened is said on stderr.
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

/// What waits, and how to answer it.
pub fn waits(waiting: &[Waiting]) -> String {
    let mut lines: Vec<String> = waiting
        .iter()
        .map(|waiting| {
            format!(
                "{}: {}  {}",
                match waiting.request.asks {
                    Asks::Permission => "waiting",
                    Asks::Fate | Asks::Turn => "may have run, nobody knows",
                },
                waiting.request.id,
                subject_line(&waiting.request)
            )
        })
        .collect();
    lines.push(format!("  next: {}", how_to_answer(waiting)));
    lines.join("\n")
}

/// The command that answers the first of these.
pub fn how_to_answer(waiting: &[Waiting]) -> String {
    match waiting.first().map(|first| &first.request) {
        Some(request) if !request.asks.is_permission() => format!(
            "lango approvals answer {} retry (or skip, or happened --because \"…\")",
            request.id
        ),
        Some(request) => format!("lango approvals answer {} yes (or no)", request.id),
        None => "lango approvals".to_owned(),
    }
}

fn style() -> markdown::Style {
    match std::io::stdout().is_terminal() {
        true if screen::wants_colour() => markdown::Style::Coloured,
        true => markdown::Style::Uncoloured,
        false => markdown::Style::Plain,
    }
}

/// What `--json` prints.
fn summary(model: &str, report: &TurnReport, denied: &[Waiting], elapsed: Duration) -> Value {
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
        "answer": report.answer,
        "author": report.author,
        "outcome": report.outcome.word(),
        "limit": report.outcome.limit(),
        "error": error,
        "denied": denied,
        "session": report.session,
        "turn": report.turn,
        "model": model,
        "offline": model == Offline::NAME,
        "model_calls": report.model_calls,
        "tool_calls": report.tool_calls,
        "rounds": report.rounds,
        "usage": report.usage,
        "time_ms": elapsed.as_millis() as u64,
        "cost_usd": report.cost_micros.map(|micros| micros as f64 / 1e6),
    })
}
