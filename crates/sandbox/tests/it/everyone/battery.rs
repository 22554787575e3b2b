//! The battery: makes all attempts for real, each with its own fixture.

use super::attempts::{Must, ROWS, Row, Run};
use crate::fixture::{Fixture, RunResult, is_root};
use lango_sandbox::ExitKind;

/// Makes an attempt; returns whether it was possible, and its output.
pub(crate) async fn try_it(fixture: &Fixture, run: Run) -> (bool, String) {
    let command = match run {
        Run::Prober(words) => fixture.attempt(words),
        Run::Shell(script) => fixture.shell(&format!("{{ {script}\n}} && echo escaped")),
    };
    evaluate(run, &fixture.run(command).await)
}

pub(crate) fn evaluate(run: Run, result: &RunResult) -> (bool, String) {
    let detail = detail(result);
    match run {
        Run::Prober(words) => {
            assert_ne!(result.outcome.exit, ExitKind::Code(2), "{words}: {detail}");
            assert_ne!(
                result.outcome.exit,
                ExitKind::Code(127),
                "{words}: {detail}"
            );
            (result.stdout.starts_with("possible"), detail)
        }
        Run::Shell(_) => (result.stdout.ends_with("escaped\n"), detail),
    }
}

fn detail(result: &RunResult) -> String {
    let text = format!("{} {}", result.stdout.trim(), result.stderr.trim());
    let line = text.trim().replace('\n', "; ");
    let short: String = line.chars().take(90).collect();
    match (result.outcome.exit, result.outcome.stopped_by) {
        (_, Some(limit)) => format!("stopped for {limit:?}; {short}"),
        (ExitKind::Signal(signal), _) => format!("killed by signal {signal}; {short}"),
        (ExitKind::Code(_), None) => short,
    }
}

/// Number of concurrent attempts; most of the time they wait for the kernel.
const CONCURRENCY: usize = 8;

/// Returns what is wrong with a row, if anything, and the details of the attempt.
async fn check_row(row: &'static Row) -> (Option<&'static str>, String) {
    let fixture = Fixture::new();
    let (possible, detail) = try_it(&fixture, row.run).await;
    let wrong = match row.must {
        Must::Fail => possible.then_some("ESCAPED"),
        Must::Work => (!possible).then_some("DOES NOT WORK"),
        Must::BeUndone(made) => match fixture.path(made).symlink_metadata() {
            Ok(_) => Some("ESCAPED"),
            Err(_) if possible => None,
            Err(_) => Some("DOES NOT WORK"),
        },
    };
    (wrong, detail)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_attempt_escapes_and_ordinary_work_succeeds() {
    let (mut refused, mut worked, mut undone) = (0, 0, 0);
    let mut wrong = Vec::new();
    let mut table = String::new();
    let mut results = Vec::new();
    for rows in ROWS.chunks(CONCURRENCY) {
        let tasks: Vec<_> = rows
            .iter()
            .map(|row| tokio::spawn(check_row(row)))
            .collect();
        for task in tasks {
            results.push(task.await.unwrap());
        }
    }
    for (row, (problem, detail)) in ROWS.iter().zip(results) {
        let word = match (problem, row.must) {
            (Some(problem), _) => problem,
            (None, Must::Fail) => "refused",
            (None, Must::Work) => "works",
            (None, Must::BeUndone(_)) => "undone",
        };
        match row.must {
            Must::Fail => refused += 1,
            Must::Work => worked += 1,
            Must::BeUndone(_) => undone += 1,
        }
        table.push_str(&format!("{word:<14}{:<46}{detail}\n", row.name));
        if problem.is_some() {
            wrong.push(format!("{}: {detail}", row.name));
        }
    }
    let user = if is_root() {
        "root"
    } else {
        "an ordinary user"
    };
    println!(
        "{table}as {user}: {refused} escape attempts, {undone} to create protected files, {worked} ordinary uses; escaped: {}",
        wrong.len()
    );
    assert!(wrong.is_empty(), "{wrong:#?}");
}
