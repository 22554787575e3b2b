//! Two hundred turns with a crash between any two steps: every turn is observed once, and none again after a restart.
//!
//! There are two kinds of crashes. A future that is dropped at its n-th poll stops at a chosen point: before, during or
//! after the model call, before or after the commit. A child process that is killed stops anywhere.

use super::KIND;
use super::{Echo, all, create, eager, echoing, end_of, marks, memory};
use crate::database::{TestDatabase, open};
use lango_core::{Event, EventBody, EventRange, Model, Outcome, SessionStore, Timestamp, Usage};
use lango_knowledge::MemoryReport;
use lango_store::{Generation, MemoryOwner, Store};
use lango_testkit::model::ScriptedModel;
use std::io::{BufRead as _, BufReader, Write as _};
use std::pin::pin;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::task::Poll;

const TURNS: u64 = 200;

/// The environment variable with the database address for the child process.
const CHILD: &str = "LANGO_MEMORY_CHILD";

/// A pseudo-random generator that gives the same numbers in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

fn question(number: u64) -> String {
    format!("#{number} {}", "word ".repeat((number % 7) as usize * 3))
}

/// Runs a future up to its n-th poll and drops it there.
async fn drop_at_poll<T>(polls: u64, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut left = polls;
    std::future::poll_fn(move |context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        future.as_mut().poll(context).map(Some)
    })
    .await
}

/// Checks that every turn from 1 on is in one observation and one uncondensed row, and that a new process has nothing
/// to do.
async fn assert_each_observed_once(address: &str, owner: &MemoryOwner, least: u64) {
    let store = open(address);
    let mut observed = String::new();
    let mut loose = String::new();
    for generation in [
        Generation::Observation,
        Generation::First,
        Generation::Second,
    ] {
        for row in all(&store, owner, generation).await {
            if generation == Generation::Observation {
                observed.push_str(&row.text);
            }
            if !row.is_part {
                loose.push_str(&row.text);
            }
        }
    }
    let seen = marks(&observed);
    assert!(seen.len() as u64 >= least, "{} turns observed", seen.len());
    let expected = (1..=seen.len() as u64).map(|mark| (mark, 1)).collect();
    assert_eq!(seen, expected);
    assert_eq!(marks(&loose), expected);
    let model = Arc::new(ScriptedModel::new(|_| super::failing()));
    let memory = memory(&store, Some(model.clone()), eager());
    let report = memory.work_due(&owner.user, &owner.session).await.unwrap();
    assert_eq!(report, MemoryReport::default());
    assert_eq!(model.requests().len(), 0);
}

#[tokio::test]
async fn every_turn_is_observed_once_wherever_the_work_is_interrupted() {
    let place = TestDatabase::new(KIND);
    let address = &place.address;
    let owner = create(&open(address), "ada", "s_1").await;
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut cut = 0;
    for number in 1..=TURNS {
        let store = open(address);
        let mut turn = end_of(&store, &owner)
            .await
            .exchange(&question(number), "yes");
        store.append(turn.batch()).await.unwrap();
        let memory = memory(&store, Some(echoing()), eager());
        let work = memory.work_due(&owner.user, &owner.session);
        cut += u64::from(drop_at_poll(dice.below(20), work).await.is_none());
    }
    assert!(cut > 50, "{cut} were cut off");
    while work_to_the_end(address, &owner).await.more {}
    assert_each_observed_once(address, &owner, TURNS - 5).await;
}

async fn work_to_the_end(address: &str, owner: &MemoryOwner) -> MemoryReport {
    let memory = memory(&open(address), Some(echoing()), eager());
    memory.work_due(&owner.user, &owner.session).await.unwrap()
}

#[test]
fn every_turn_is_observed_once_however_often_the_process_is_killed() {
    let place = TestDatabase::new(KIND);
    let address = &place.address;
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let owner = runtime.block_on(async { create(&open(address), "ada", "s_1").await });
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    let mut kills = 0;
    while !run_and_kill_child(address, 1 + dice.below(60)) {
        kills += 1;
        assert!(kills < 1000, "it never came to an end");
    }
    assert!(kills >= 10, "{kills} kills");
    runtime.block_on(assert_each_observed_once(address, &owner, TURNS - 5));
}

/// Starts a child process and kills it after this number of boundaries. Returns whether it finished before.
fn run_and_kill_child(address: &str, boundaries: u64) -> bool {
    let (_, module) = module_path!().split_once("::").unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            &format!("{module}::child_process"),
            "--ignored",
            "--nocapture",
        ])
        .env(CHILD, address)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut left = boundaries;
    for line in lines.map_while(Result::ok) {
        if line == "boundary" {
            left -= 1;
        }
        if line == "done" {
            return child.wait().unwrap().success();
        }
        if left == 0 {
            child.kill().unwrap();
            child.wait().unwrap();
            return false;
        }
    }
    panic!("the child failed: {}", child.wait().unwrap());
}

fn boundary() {
    say_line("boundary");
}

fn say_line(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").unwrap();
    out.flush().unwrap();
}

#[tokio::test]
#[ignore = "it is the process that another test starts and kills"]
async fn child_process() {
    let Ok(address) = std::env::var(CHILD) else {
        return;
    };
    let owner = MemoryOwner {
        user: "ada".into(),
        session: "s_1".into(),
    };
    let store = open(&address);
    close_interrupted_turn(&store, &owner).await;
    let model: Arc<dyn Model> = Arc::new(Echo(|| async { boundary() }));
    let memory = memory(&store, Some(model), eager());
    loop {
        boundary();
        memory.work_due(&owner.user, &owner.session).await.unwrap();
        boundary();
        let head = store.read_head(&owner.session).await.unwrap();
        if head.turns == TURNS {
            break;
        }
        let mut turn = end_of(&store, &owner).await.ask(&question(head.turns + 1));
        store.append(turn.batch()).await.unwrap();
        boundary();
        let mut turn = turn.say("root", "", "yes").finish();
        store.append(turn.batch()).await.unwrap();
    }
    while memory
        .work_due(&owner.user, &owner.session)
        .await
        .unwrap()
        .more
    {}
    say_line("done");
}

/// Ends a turn that a crash left open as interrupted, as the runner does.
async fn close_interrupted_turn(store: &Arc<Store>, owner: &MemoryOwner) {
    let head = store.read_head(&owner.session).await.unwrap();
    let Some(from) = head.unfinished else { return };
    let page = EventRange { from, limit: 1 };
    let first = SessionStore::read(&**store, &owner.session, page)
        .await
        .unwrap()
        .remove(0);
    let end = Event {
        seq: head.next_seq,
        time: Timestamp(0),
        body: EventBody::TurnFinished {
            outcome: Outcome::Interrupted,
            answer: None,
            usage: Usage::default(),
            cost_micros: None,
            model_calls: 0,
            tool_calls: 0,
            rounds: 0,
        },
        ..first
    };
    store.append(vec![end].into()).await.unwrap();
}
