//! Terminal output: lines that say what is happening, which agent acts, and what it cost.

mod activity;
mod bar;
mod markdown_transcript;
mod output_tail;
mod recap;
mod request;
mod tool_call;
mod tool_line;
mod transcript;
mod wrapping;

use crate::terminal::{Output, Region};
pub use activity::{Activity, QuestionEnd, short_number, short_time};
pub use bar::{ProgressBar, Ticker, progress_share};
use lango::app::model_selector::{MODEL_NEXT_STEP, next_step_after};
use lango_config::redact;
use lango_core::Outcome;
use lango_core::text::sanitize;
pub use lango_core::text::{Layout, age, count, json, one_line};
use lango_engine::TurnReport;
use lango_models::OfflineModel;
pub use markdown_transcript::{MarkdownTranscript, fence};
pub use recap::recap;
pub use request::{
    PREVIEW_ROWS, RequestDetail, allowing_rule, colour_request, columns_of, escape_invisible,
    frame_mark, request, subject_line,
};
use std::borrow::Cow;
use std::io::ErrorKind;
use std::time::Duration;
pub use tool_call::{call_question, call_text};
pub use transcript::{TYPED_COMMAND_MODEL, Transcript};
use wrapping::{wrap_quoted, wrap_text};

/// The notice while a turn waits for its session.
pub const QUEUED_NOTICE: &str = "the session is busy with another turn; waiting · ctrl-c cancels";

/// Prints lines on stdout, [sanitized](sanitize()), so that a terminal displays quoted text and never obeys it. A terminal
/// gets them wrapped at words. If the reader has gone away, the process exits quietly, as other programs do.
pub fn print(line: &str) -> std::io::Result<()> {
    print_rendered(&wrapped_for(Output::Stdout, &sanitize(line)))
}

/// Prints lines on stdout that quote what others wrote. On a terminal, a row that continues a line is indented, so that it
/// cannot look like a line of lango.
pub fn print_quoted(line: &str) -> std::io::Result<()> {
    let line = sanitize(line);
    if Output::Stdout.is_terminal() {
        print_rendered(&wrap_quoted(&line, columns()))
    } else {
        print_rendered(&line)
    }
}

/// Wraps lines at words if the output is a terminal.
fn wrapped_for(output: Output, lines: &str) -> Cow<'_, str> {
    if output.is_terminal() {
        wrap_text(lines, columns())
    } else {
        Cow::Borrowed(lines)
    }
}

/// Prints text that is already formatted for its destination: a rendered answer with its colours, or bytes for a
/// pipe.
pub fn print_rendered(line: &str) -> std::io::Result<()> {
    match Region::print(Output::Stdout, &format!("{line}\n")) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            Region::close();
            std::process::exit(0)
        }
        other => other,
    }
}

/// Prints lines on stdout during a turn, sanitized. Returns an error if the reader has gone away, because that must
/// not end the turn.
pub fn write_line(line: &str) -> std::io::Result<()> {
    write_all(&format!("{}\n", sanitize(line)))
}

/// Writes text to stdout unchanged; only for text that is [rendered](lango_markdown::render) and ends in a newline, or
/// for a prompt.
pub fn write_all(text: &str) -> std::io::Result<()> {
    Region::print(Output::Stdout, text)
}

/// Prints lines on stderr, sanitized, and wrapped at words on a terminal. Errors are ignored, because a missing reader is not
/// a reason to stop.
pub fn say(lines: &str) {
    let lines = sanitize(lines);
    let line = crate::logs::json_line(&lines);
    let line = line.map_or_else(|| wrapped_for(Output::Stderr, &lines), Cow::Owned);
    let _ = Region::print(Output::Stderr, &format!("{line}\n"));
}

/// Returns the number of columns to format text for: those of the terminal, but at least 20.
pub fn columns() -> usize {
    window().0.max(20)
}

/// Returns the number of rows of the terminal.
pub fn rows() -> usize {
    window().1
}

/// Returns the columns and rows of the terminal; 80 and 24 if there is none, or if it does not know its size.
pub fn window() -> (usize, usize) {
    use rustix::termios::tcgetwinsize;
    let size = tcgetwinsize(std::io::stderr()).or_else(|_| tcgetwinsize(std::io::stdout()));
    let known = |size: u16, default| if size == 0 { default } else { size.into() };
    size.map_or((80, 24), |size| {
        (known(size.ws_col, 80), known(size.ws_row, 24))
    })
}

/// Describes the outcome of a turn if it did not end well, and its cost. The header of the chat says what the demo is.
pub fn footer(report: &TurnReport, model: &str, elapsed: Duration) -> String {
    let line = totals(report, model, elapsed, DemoNote::Omitted);
    match ending(&report.outcome) {
        Some(ending) => format!("{ending}\n{line}"),
        None => line,
    }
}

/// Describes the outcome of a turn; `None` if it ended well.
pub fn ending(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Answered { limit: None } => None,
        Outcome::Answered { limit: Some(limit) } => {
            Some(format!("cut short by a limit: {}", limit.key()))
        }
        Outcome::Limited { limit } => Some(format!(
            "stopped by a limit: {}; raise it with -c {}=…",
            limit.key(),
            limit.key()
        )),
        Outcome::Failed { .. } => failure(outcome).map(|text| format!("failed: {text}")),
        Outcome::Cancelled => Some("stopped".to_owned()),
        Outcome::Interrupted => Some("interrupted".to_owned()),
    }
}

/// Describes why a turn failed, and the next step if a model call failed; `None` if it did not fail.
pub fn failure(outcome: &Outcome) -> Option<String> {
    let Outcome::Failed {
        error,
        setup,
        fault,
    } = outcome
    else {
        return None;
    };
    let error = redact(error);
    let next = fault.as_deref().and_then(next_step_after);
    Some(match next.or(setup.then_some(MODEL_NEXT_STEP)) {
        Some(next) => format!("{error}\n  next: {next}"),
        None => error.into_owned(),
    })
}

/// Whether a line says that the built-in rules are not an AI model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DemoNote {
    Shown,
    /// It was said before.
    Omitted,
}

/// Describes the model, the number of calls, the time and the cost of a turn on one line.
pub fn totals(report: &TurnReport, model: &str, elapsed: Duration, demo_note: DemoNote) -> String {
    let tokens = match (model, demo_note) {
        (OfflineModel::NAME, DemoNote::Shown) => {
            "0 tokens (built-in rules, not an AI model)".to_owned()
        }
        (OfflineModel::NAME, DemoNote::Omitted) => "0 tokens".to_owned(),
        _ => tokens_and_cost(report),
    };
    let time = format!("{:.1} s", elapsed.as_secs_f64());
    // Attempts that failed are not counted, and their tokens are not known.
    let has_answered = matches!(report.outcome, Outcome::Answered { .. });
    if report.model_calls == 0 && report.tool_calls == 0 && !has_answered {
        return format!("{model} · {time}");
    }
    let mut parts = vec![
        model.to_owned(),
        count(report.model_calls.into(), "model call"),
    ];
    if report.rounds > 0 {
        parts.push(count(report.rounds.into(), "delegation round"));
    }
    if report.tool_calls > 0 {
        parts.push(count(report.tool_calls.into(), "tool call"));
    }
    parts.extend([time, tokens]);
    parts.join(" · ")
}

fn tokens_and_cost(report: &TurnReport) -> String {
    let usage = &report.usage;
    let cached = match usage.cached_tokens {
        0 => String::new(),
        cached => format!(" ({cached} cached)"),
    };
    let cost = match report.cost_micros {
        // Failed calls are not counted, because their cost is unknown.
        Some(0) => String::new(),
        Some(micros) => format!(" · ${:.4}", micros as f64 / 1e6),
        None => " · cost unknown".to_owned(),
    };
    // The tokens of a stopped reply are estimated.
    let about = match report.outcome {
        Outcome::Cancelled if usage.total() > 0 => "about ",
        _ => "",
    };
    format!(
        "{about}{} in{cached}, {} out{cost}",
        count(usage.input_tokens, "token"),
        usage.output_tokens
    )
}
