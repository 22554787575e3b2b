//! Formats the status and the output of commands for the model.

use super::hints::hints;
use super::jobs::{Job, JobState, RunMode};
use super::output::{Output, OutputSize};
use super::page::Position;
use super::request::CommandRequest;
use crate::show;
use lango_core::ToolError;
use lango_sandbox::{CommandOutcome, ExceededLimit, ExitKind, Policy};
use serde_json::json;
use std::io;
use std::time::Duration;

/// Maximum number of foreground commands in a list.
const SHOWN_RUNS: usize = 10;

/// Formats the result of a foreground command. A failed command is a result too; a failure of the sandbox is an error.
pub(crate) fn result(job: &Job, request: &CommandRequest) -> Result<String, ToolError> {
    let state = job.state();
    if let JobState::Failed(message) = state {
        return Err(ToolError::new(message));
    }
    let mut text = format!("{}\n", headline(&state, job));
    push_excerpt(&mut text, job);
    push_hints(&mut text, &state, request);
    push_refusals(&mut text, job);
    push_clean_up(&mut text, &state, &request.policy);
    Ok(text)
}

/// Formats the status of a job and a part of its output: from `start` on, or the start and the end.
pub(crate) fn status(job: &Job, start: Option<Position>, policy: &Policy) -> String {
    let size = job.output.size();
    let mut text = format!(
        "{}: {}; {}, {}\n{}\n",
        job.id,
        headline(&job.state(), job),
        show::count(size.lines, "line"),
        show::size(size.bytes),
        job.command
    );
    match start {
        Some(start) => push_page(&mut text, job, start, &size),
        None => push_excerpt(&mut text, job),
    }
    push_refusals(&mut text, job);
    push_clean_up(&mut text, &job.state(), policy);
    text
}

/// Formats one line for each background job and for the latest foreground commands.
pub(crate) fn list(jobs: &[std::sync::Arc<Job>]) -> String {
    let (background, runs): (Vec<_>, Vec<_>) =
        jobs.iter().partition(|job| job.mode == RunMode::Background);
    let line = |job: &&std::sync::Arc<Job>| {
        let lines = show::count(job.output.size().lines, "line");
        format!(
            "{}: {}; {lines}; {}\n",
            job.id,
            headline(&job.state(), job),
            job.command
        )
    };
    let mut text = match background.len() {
        0 => "[no jobs in the background]\n".to_owned(),
        _ => background.iter().map(line).collect(),
    };
    if !runs.is_empty() {
        let older = runs.len().saturating_sub(SHOWN_RUNS);
        text.push_str("[earlier exec commands, whose output can still be read]\n");
        text.extend(runs.iter().skip(older).map(line));
    }
    text
}

/// Formats the status of a job on one line.
pub(crate) fn headline(state: &JobState, job: &Job) -> String {
    match state {
        JobState::Running => format!("running for {}", seconds(job.elapsed())),
        JobState::Ended(ended, after) => ending(ended, *after, job.time),
        JobState::Failed(message) => message.clone(),
        JobState::Abandoned => "killed because its call was cancelled".into(),
    }
}

fn ending(outcome: &CommandOutcome, after: Duration, time: Duration) -> String {
    let after = seconds(after);
    match (outcome.stopped_by, outcome.exit) {
        (Some(ExceededLimit::Time), _) => {
            format!(
                "stopped after {after}: the time limit is {} s",
                time.as_secs_f32()
            )
        }
        (Some(ExceededLimit::Memory), _) => {
            format!("stopped after {after}: it used too much memory")
        }
        (Some(ExceededLimit::Processes), _) => {
            format!("stopped after {after}: it started too many processes")
        }
        (Some(ExceededLimit::Disk), _) => {
            format!("stopped after {after}: it wrote too much to disk")
        }
        (None, ExitKind::Code(code)) => format!("exit code {code} after {after}"),
        (None, ExitKind::Signal(signal)) => format!("killed by signal {signal} after {after}"),
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

fn push_excerpt(text: &mut String, job: &Job) {
    let excerpt = match job.output.excerpt() {
        Ok(excerpt) => excerpt,
        Err(error) => return push_line(text, &unreadable(&error)),
    };
    if excerpt.head.is_empty() {
        let yet = if job.is_running() { " yet" } else { "" };
        push_line(text, &format!("[no output{yet}]"));
    }
    push_line(text, &excerpt.head);
    if let Some(omitted) = excerpt.omitted {
        let call = status_call(&job.id, omitted.start);
        let size = show::size(omitted.bytes);
        push_line(
            text,
            &format!("[… {size} omitted here; continue with {call} …]"),
        );
    }
    push_line(text, &excerpt.tail);
    push_size_remark(text, &job.output);
}

fn push_page(text: &mut String, job: &Job, start: Position, size: &OutputSize) {
    let page = match job.output.page(start) {
        Ok(page) => page,
        Err(error) => return push_line(text, &unreadable(&error)),
    };
    if page.bytes.is_empty() {
        let so_far = if job.is_running() { " so far" } else { "" };
        let lines = show::count(size.lines, "line");
        push_line(text, &format!("[no output there: it has {lines}{so_far}]"));
    }
    push_line(text, &String::from_utf8_lossy(&page.bytes));
    if let Some(next) = page.next {
        push_line(
            text,
            &format!("[continue with {}]", status_call(&job.id, next)),
        );
    }
    push_size_remark(text, &job.output);
}

fn push_size_remark(text: &mut String, output: &Output) {
    if let Some(remark) = output.size().remark {
        push_line(text, &format!("[{remark}]"));
    }
}

/// Appends what the sandbox did to a command that has ended.
fn push_hints(text: &mut String, state: &JobState, request: &CommandRequest) {
    let JobState::Ended(ended, _) = state else {
        return;
    };
    let has_failed = ended.exit != ExitKind::Code(0);
    for hint in hints(&request.command_line, &request.policy, has_failed, text) {
        push_line(text, &format!("[{hint}]"));
    }
}

fn push_refusals(text: &mut String, job: &Job) {
    for remark in job.traffic.remarks() {
        push_line(text, &format!("[{remark}]"));
    }
}

fn push_clean_up(text: &mut String, state: &JobState, policy: &Policy) {
    let JobState::Ended(ended, _) = state else {
        return;
    };
    for remark in ended.clean_up.relative_to(&policy.workspace).remarks() {
        push_line(text, &format!("[{remark}]"));
    }
}

/// Appends a text and terminates its last line. Does nothing if the text is empty.
fn push_line(text: &mut String, more: &str) {
    text.push_str(more);
    if !text.ends_with('\n') {
        text.push('\n');
    }
}

fn status_call(id: &str, start: Position) -> String {
    let arguments = match start.skip_bytes {
        0 => json!({"job": id, "from_line": start.line}),
        skip_bytes => json!({"job": id, "from_line": start.line, "skip_bytes": skip_bytes}),
    };
    format!("exec_status {arguments}")
}

fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "[the output was removed to make room for later ones]".into(),
        _ => format!("[the output cannot be read: {error}]"),
    }
}
