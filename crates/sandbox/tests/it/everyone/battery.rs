//! The battery: everything is tried for real, in a world of its own each.

use super::attempts::{Must, ROWS, Row, Run};
use crate::world::{Done, World, is_root};
use lango_sandbox::ExitKind;

/// Whether an attempt was possible, and what it said.
pub(crate) async fn try_it(world: &World, run: Run) -> (bool, String) {
    let command = match run {
        Run::Prober(words) => world.attempt(words),
        Run::Shell(script) => world.shell(&format!("{{ {script}\n}} && echo got-out")),
    };
    verdict(run, &world.run(command).await)
}

pub(crate) fn verdict(run: Run, done: &Done) -> (bool, String) {
    let detail = detail(done);
    match run {
        Run::Prober(words) => {
            assert_ne!(done.ended.exit, ExitKind::Code(2), "{words}: {detail}");
            assert_ne!(done.ended.exit, ExitKind::Code(127), "{words}: {detail}");
            (done.stdout.starts_with("possible"), detail)
        }
        Run::Shell(_) => (done.stdout.ends_with("got-out\n"), detail),
    }
}

fn detail(done: &Done) -> String {
    let text = format!("{} {}", done.stdout.trim(), done.stderr.trim());
    let line = text.trim().replace('\n', "; ");
    let short: String = line.chars().take(90).collect();
    match (done.ended.exit, done.ended.stopped) {
        (_, Some(stopped)) => format!("stopped for {stopped:?}; {short}"),
        (ExitKind::Signal(signal), _) => format!("ended by signal {signal}; {short}"),
        (ExitKind::Code(_), None) => short,
    }
}

/// How many rows are tried at a time; most of the time they wait for the kernel.
const AT_A_TIME: usize = 8;

/// What is wrong with a row, if anything, and what came of it.
async fn judge(row: &'static Row) -> (Option<&'static str>, String) {
    let world = World::new();
    let (possible, detail) = try_it(&world, row.run).await;
    let wrong = match row.must {
        Must::Fail => possible.then_some("GOT OUT"),
        Must::Work => (!possible).then_some("DOES NOT WORK"),
        Must::BeUndone(made) => match world.path(made).symlink_metadata() {
            Ok(_) => Some("GOT OUT"),
            Err(_) if possible => None,
            Err(_) => Some("DOES NOT WORK"),
        },
    };
    (wrong, detail)
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_gets_out_and_ordinary_work_goes_on() {
    let (mut held, mut worked, mut undone) = (0, 0, 0);
    let mut wrong = Vec::new();
    let mut table = String::new();
    let mut judged = Vec::new();
    for rows in ROWS.chunks(AT_A_TIME) {
        let tasks: Vec<_> = rows.iter().map(|row| tokio::spawn(judge(row))).collect();
        for task in tasks {
            judged.push(task.await.unwrap());
        }
    }
    for (row, (problem, detail)) in ROWS.iter().zip(judged) {
        let word = match (problem, row.must) {
            (Some(problem), _) => problem,
            (None, Must::Fail) => "held",
            (None, Must::Work) => "works",
            (None, Must::BeUndone(_)) => "undone",
        };
        match row.must {
            Must::Fail => held += 1,
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
        "{table}as {user}: {held} attempts to get out, {undone} to make what is kept, {worked} ordinary uses; got out: {}",
        wrong.len()
    );
    assert!(wrong.is_empty(), "{wrong:#?}");
}
