//! What a user sees when the model or its provider misbehaves, over real HTTP and with every wire format. No turn is
//! lost, no successful answer is empty, and nothing costs more than three extra model calls.
//!
//! `cargo test -p lango-models --test it -- --nocapture faults` prints the table.

use crate::rows::{Row, Script, rows};
use crate::support::BOTH;
use crate::support::Wire;
use crate::turns::{LONG_IDLE, Screen, TestRuntime, resilient, turn};
use lango_core::{EventBody, Limit, Outcome};
use lango_store::Store;
use lango_testkit::model::say;
use lango_testkit::wire_server::{ScriptedAnswer, WireServer};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const IDLE: Duration = Duration::from_millis(200);

#[tokio::test]
async fn faults_never_lose_a_turn() {
    let mut table = vec![line([
        "row",
        "wire",
        "stream",
        "outcome",
        "calls",
        "attempts",
        "ms",
        "what the user saw",
    ])];
    for row in 0..rows().len() {
        for kind in Wire::ALL {
            for streaming in BOTH {
                table.push(play(&rows()[row], kind, streaming).await);
            }
        }
    }
    println!("{}", table.join("\n"));
}

fn line(cells: [&str; 8]) -> String {
    let [row, wire, stream, outcome, calls, attempts, ms, saw] = cells;
    format!(
        "| {row:<24} | {wire:<9} | {stream:<6} | {outcome:<8} | {calls:<5} | {attempts:<8} | {ms:<4} | {saw} |"
    )
}

/// Starts a server that follows a row's script and then answers normally.
async fn serve(row: &Row) -> WireServer {
    match &row.script {
        Script::Always(answer) => WireServer::start(*answer).await,
        Script::List(answers) => {
            let answers: Mutex<VecDeque<ScriptedAnswer>> = Mutex::new(answers.clone().into());
            WireServer::start(move |_| {
                let next = answers.lock().unwrap().pop_front();
                next.unwrap_or_else(|| say("Still here.").into())
            })
            .await
        }
    }
}

async fn play(row: &Row, kind: Wire, streaming: bool) -> String {
    let what = format!("{}, {}, streaming {streaming}", row.name, kind.name());
    let is_silent = row.name.starts_with("silen");
    let idle = if is_silent { IDLE } else { LONG_IDLE };
    let server = serve(row).await;
    let model = resilient(kind, server.url(), streaming, idle);
    let runtime = TestRuntime::new(Arc::new(Store::in_memory()), model);
    let mut conversation = runtime.start();
    let started = Instant::now();
    let (report, shown) = turn(&mut conversation, "Do the task.").await;
    let took = started.elapsed();
    let attempts = server.requests().len();
    let answer = report.answer.clone().unwrap_or_default();

    assert_eq!(
        report.outcome.name(),
        row.outcome,
        "{what}: {:?}",
        report.outcome
    );
    assert!(answer.contains(row.says), "{what}: {answer:?}");
    assert!(
        !answer.trim().is_empty() && !answer.contains("[REJECT]"),
        "{what}: {answer:?}"
    );
    assert!(
        report.model_calls <= row.work + 3,
        "{what}: {} calls",
        report.model_calls
    );
    assert_eq!(attempts, row.attempts, "{what}");
    assert_eq!(runtime.tool_runs(), row.tools, "{what}");
    if let Outcome::Failed { setup, .. } = &report.outcome {
        assert_eq!(
            *setup,
            ["bad key", "unknown model"].contains(&row.name),
            "{what}"
        );
    }
    let limit = (row.name == "endless delegation").then_some(Limit::Rounds);
    assert_eq!(report.outcome.limit(), limit, "{what}");
    if is_silent {
        assert!(took >= IDLE && took < IDLE * 10, "{what}: {took:?}");
    }
    let screen = Screen::watch(&shown, &report);
    let is_cut = row.name.starts_with("cut stream") || row.name.starts_with("silence inside");
    if is_cut && streaming {
        assert!(
            screen.drafts >= 2 && screen.withdrawn == 1,
            "{what}: {screen:?}"
        );
    }
    let log = runtime.log(&conversation).await;
    let ends = log
        .iter()
        .filter(|event| matches!(event.body, EventBody::TurnFinished { .. }));
    assert_eq!(ends.count(), 1, "{what}");

    let (again, _) = turn(&mut conversation, "And now?").await;
    assert_eq!(
        again.outcome.name(),
        "answered",
        "{what}: the session goes on"
    );

    let taken_back = match (screen.withdrawn, screen.retries) {
        (0, 0) => String::new(),
        (withdrawn, retries) => format!(" ({retries} retries, {withdrawn} texts withdrawn)"),
    };
    let first_line: String = answer
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(70)
        .collect();
    let cell = |number: u128| number.to_string();
    line([
        row.name,
        kind.name(),
        if streaming { "yes" } else { "no" },
        report.outcome.name(),
        &cell(report.model_calls.into()),
        &cell(attempts as u128),
        &cell(took.as_millis()),
        &format!("{first_line}{taken_back}"),
    ])
}
