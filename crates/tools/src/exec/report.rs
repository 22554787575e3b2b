//! What a model is told about a command: how it ended or how far it is, and what it printed.

use super::jobs::{Ground, Job, State};
use super::output::{Extent, Output};
use super::page::Position;
use crate::show;
use lango_core::ToolError;
use lango_sandbox::{Ended, ExitKind, Policy, Stopped};
use serde_json::json;
use std::io;
use std::time::Duration;

/// How many ended runs a list has.
const SHOWN_RUNS: usize = 10;

/// The result of a command that was waited for. That it failed is a result too; that the sandbox failed is not.
pub(crate) fn result(job: &Job, policy: &Policy) -> Result<String, ToolError> {
    let mut text = match job.state() {
        State::Failed(message) => return Err(ToolError::new(message)),
        state => format!("{}\n", headline(&state, job)),
    };
    push_excerpt(&mut text, job);
    push_refusals(&mut text, job);
    push_clean_up(&mut text, &job.state(), policy);
    Ok(text)
}

/// How a job stands, and a part of what it printed: from `start` on, or else its start and end.
pub(crate) fn status(job: &Job, start: Option<Position>, policy: &Policy) -> String {
    let extent = job.output.extent();
    let mut text = format!(
        "{}: {}; {}, {}\n{}\n",
        job.id,
        headline(&job.state(), job),
        show::count(extent.lines, "line"),
        show::size(extent.bytes),
        job.command
    );
    match start {
        Some(start) => push_page(&mut text, job, start, &extent),
        None => push_excerpt(&mut text, job),
    }
    push_refusals(&mut text, job);
    push_clean_up(&mut text, &job.state(), policy);
    text
}

/// One line for each job in the background, and for the last runs that ended.
pub(crate) fn list(jobs: &[std::sync::Arc<Job>]) -> String {
    let (background, runs): (Vec<_>, Vec<_>) =
        jobs.iter().partition(|job| job.ground == Ground::Back);
    let line = |job: &&std::sync::Arc<Job>| {
        let lines = show::count(job.output.extent().lines, "line");
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
        text.push_str("[commands that were waited for, whose output can still be read]\n");
        text.extend(runs.iter().skip(older).map(line));
    }
    text
}

/// How a job stands, on one line.
pub(crate) fn headline(state: &State, job: &Job) -> String {
    match state {
        State::Running => format!("running for {}", seconds(job.elapsed())),
        State::Ended(ended, after) => ending(ended, *after, job.time),
        State::Failed(message) => message.clone(),
        State::Abandoned => "ended with the call that waited for it".into(),
    }
}

fn ending(ended: &Ended, after: Duration, time: Duration) -> String {
    let after = seconds(after);
    match (ended.stopped, ended.exit) {
        (Some(Stopped::Time), _) => {
            format!(
                "stopped after {after}: it may run for {} s",
                time.as_secs_f32()
            )
        }
        (Some(Stopped::Memory), _) => format!("stopped after {after}: it took too much memory"),
        (Some(Stopped::Processes), _) => {
            format!("stopped after {after}: it started too many processes")
        }
        (Some(Stopped::Disk), _) => format!("stopped after {after}: it wrote too much to disk"),
        (None, ExitKind::Code(code)) => format!("exit code {code} after {after}"),
        (None, ExitKind::Signal(signal)) => format!("ended by signal {signal} after {after}"),
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
    if let Some(middle) = excerpt.middle {
        let call = status_call(&job.id, middle.start);
        let size = show::size(middle.bytes);
        push_line(
            text,
            &format!("[… {size} left out here; read on with {call} …]"),
        );
    }
    push_line(text, &excerpt.tail);
    push_extent_remark(text, &job.output);
}

fn push_page(text: &mut String, job: &Job, start: Position, extent: &Extent) {
    let page = match job.output.page(start) {
        Ok(page) => page,
        Err(error) => return push_line(text, &unreadable(&error)),
    };
    if page.bytes.is_empty() {
        let so_far = if job.is_running() { " so far" } else { "" };
        let lines = show::count(extent.lines, "line");
        push_line(
            text,
            &format!("[nothing there: the output has {lines}{so_far}]"),
        );
    }
    push_line(text, &String::from_utf8_lossy(&page.bytes));
    if let Some(next) = page.next {
        push_line(
            text,
            &format!("[read on with {}]", status_call(&job.id, next)),
        );
    }
    push_extent_remark(text, &job.output);
}

fn push_extent_remark(text: &mut String, output: &Output) {
    if let Some(remark) = output.extent().remark {
        push_line(text, &format!("[{remark}]"));
    }
}

fn push_refusals(text: &mut String, job: &Job) {
    for remark in job.traffic.remarks() {
        push_line(text, &format!("[{remark}]"));
    }
}

fn push_clean_up(text: &mut String, state: &State, policy: &Policy) {
    let State::Ended(ended, _) = state else {
        return;
    };
    for remark in ended.clean_up.relative_to(&policy.workspace).remarks() {
        push_line(text, &format!("[{remark}]"));
    }
}

/// Adds a text and ends its last line; nothing if there is none.
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
