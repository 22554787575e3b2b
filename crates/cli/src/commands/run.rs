//! `lango run`: one turn. The answer goes to stdout, everything else to stderr.

use super::input;
use super::watch::watch;
use crate::app::App;
use crate::args::RunArguments;
use crate::exit::{Exit, Failure};
use crate::markdown;
use crate::screen::{self, Layout, Progress, footer};
use lango_core::Outcome;
use lango_engine::{Shown, TurnReport};
use lango_models::Offline;
use serde_json::json;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// The arguments of a bare `lango` whose standard input is not a terminal.
pub fn piped() -> RunArguments {
    RunArguments {
        prompt: Vec::new(),
        json: false,
        jsonl: false,
        session: None,
        ephemeral: false,
        quiet: false,
    }
}

/// Runs the command.
pub async fn run(config: Vec<String>, arguments: RunArguments) -> Result<Exit, Failure> {
    let as_json = arguments.json || arguments.jsonl;
    let result = turn(config, arguments).await;
    if let (true, Err(failure)) = (as_json, &result) {
        let error = json!({ "error": failure.to_string(), "exit": failure.exit.code() });
        screen::print(&screen::json(&error, Layout::Line)?)?;
    }
    result
}

async fn turn(config: Vec<String>, arguments: RunArguments) -> Result<Exit, Failure> {
    let app = App::load(config)?;
    let question = input::question(&arguments.prompt, arguments.quiet).await?;
    if !arguments.quiet {
        app.warnings()
            .iter()
            .for_each(|warning| screen::say(&format!("warning: {warning}")));
    }
    let sessions = if arguments.ephemeral {
        app.ephemeral_sessions()
    } else {
        app.sessions()?
    };
    let choice = app.choose_model().await?;
    let runner = app.runner(&sessions, &choice.model)?;
    let (mut conversation, _hold) = match &arguments.session {
        Some(prefix) => {
            let session = app.find_session(&sessions, prefix).await?;
            let hold = sessions.hold(&session)?;
            (runner.open(session).await?, hold)
        }
        None => {
            let conversation = runner.start(app.user());
            let hold = sessions.hold(conversation.session())?;
            (conversation, hold)
        }
    };
    let started = Instant::now();
    let report = watch(&mut conversation, &question, shower(&arguments)).await?;
    let model = report
        .model
        .clone()
        .unwrap_or_else(|| choice.model.name().into());
    let elapsed = started.elapsed();
    print_answer(&model, &arguments, &report, elapsed)?;
    if !arguments.quiet {
        screen::say(&footer(&report, &model, elapsed));
        if !arguments.ephemeral {
            screen::say(&format!(
                "go on: lango run --session {} \"…\"",
                report.session
            ));
        }
    }
    Ok(Exit::from(&report.outcome))
}

/// Shows what happens: events on stdout if they were asked for, progress on stderr.
fn shower(arguments: &RunArguments) -> impl FnMut(Shown) -> std::io::Result<()> {
    let mut progress = Progress::new();
    let (jsonl, quiet) = (arguments.jsonl, arguments.quiet);
    move |item| {
        let events = match item {
            Shown::Stored(events) => events,
            Shown::Retrying { agent, reason } if !quiet => {
                screen::say(&format!("  {agent}: {reason}"));
                return Ok(());
            }
            _ => return Ok(()),
        };
        for event in events.iter() {
            if jsonl {
                screen::write_line(&screen::json(event, Layout::Line)?)?;
            }
            if !quiet {
                progress
                    .lines(event)
                    .iter()
                    .for_each(|line| screen::say(line));
            }
        }
        Ok(())
    }
}

fn print_answer(
    model: &str,
    arguments: &RunArguments,
    report: &TurnReport,
    elapsed: Duration,
) -> Result<(), Failure> {
    if arguments.json {
        let summary = screen::json(&summary(model, report, elapsed), Layout::Line)?;
        return Ok(screen::print(&summary)?);
    }
    if arguments.jsonl {
        return Ok(());
    }
    let Some(answer) = &report.answer else {
        return Ok(());
    };
    let style = match std::io::stdout().is_terminal() {
        true if screen::wants_colour() => markdown::Style::Coloured,
        true => markdown::Style::Uncoloured,
        false => markdown::Style::Plain,
    };
    Ok(screen::print(
        markdown::render(answer, style).trim_end_matches('\n'),
    )?)
}

/// What `--json` prints.
fn summary(model: &str, report: &TurnReport, elapsed: Duration) -> serde_json::Value {
    let error = match &report.outcome {
        Outcome::Failed { error, .. } => Some(error),
        _ => None,
    };
    json!({
        "answer": report.answer,
        "author": report.author,
        "outcome": report.outcome.word(),
        "limit": report.outcome.limit(),
        "error": error,
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
