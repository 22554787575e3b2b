//! Property tests of the task state machine: invariants that must hold for every history of a task. `simulation`
//! generates random messages, cancels, reports, crashes, shutdowns, lost leases and store failures on three replicas
//! over one store. `mutant` plants a bug in the state machine, which the tests must catch.
//!
//! A history is a list of bytes; each decision consumes one of them. After the last byte nothing fails any more, and
//! the task must settle.

mod agent;
mod mutant;
mod simulation;

use mutant::Bug;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use simulation::{Simulation, Situation};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// How many histories each test checks.
const HISTORIES: u32 = 12_000;

fn histories() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..200)
}

fn config(cases: u32) -> Config {
    Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    }
}

/// Simulates a history and checks the invariants. Returns the situations that occurred.
fn check(bytes: &[u8], bug: Option<Bug>) -> Result<BTreeSet<Situation>, TestCaseError> {
    let mut simulation = Simulation::new(bytes, bug);
    simulation.run().map_err(TestCaseError::fail)?;
    Ok(simulation.reached)
}

#[test]
fn no_random_history_breaks_an_invariant_or_replays_differently() {
    let mut runner = TestRunner::new(config(HISTORIES));
    let counts = RefCell::new(BTreeMap::new());
    let result = runner.run(&histories(), |bytes| {
        for situation in check(&bytes, None)? {
            *counts.borrow_mut().entry(situation).or_insert(0_u32) += 1;
        }
        Ok(())
    });
    result.unwrap();
    let counts = counts.into_inner();
    println!("{counts:?}");
    for situation in Situation::ALL {
        let count = counts.get(&situation).copied().unwrap_or(0);
        assert!(count >= 5, "{situation:?} occurred {count} times");
    }
}

/// A run on one replica reports that it needs input while its periodic write loses against another replica, which has
/// meanwhile stored the next message. The report must not settle the task for that message.
#[test]
fn a_report_of_a_superseded_run_does_not_lose_the_next_message() {
    let history = [
        97, 1, 72, 0, 0, 51, 0, 51, 162, 106, 0, 119, 8, 0, 17, 108, 82, 19, 63, 5, 0, 5, 0, 186,
        0, 66, 91, 0, 23, 24, 0, 192, 63, 121, 125, 0, 23, 8, 126, 92, 49, 21, 51, 141, 81, 0, 173,
        169, 31, 30, 38, 0, 0, 140, 0, 20, 12, 64, 0, 44, 0, 34, 0, 27, 0, 5, 0, 5, 113, 167, 5, 0,
    ];
    check(&history, None).unwrap();
}

/// Fails unless some history with this bug causes the expected violation. Other violations do not count.
#[track_caller]
fn assert_caught(bug: Bug, violation: &str) {
    let mut runner = TestRunner::new(config(HISTORIES));
    let result = runner.run(&histories(), |bytes| match check(&bytes, Some(bug)) {
        Err(error) if error.to_string().contains(violation) => Err(error),
        _ => Ok(()),
    });
    assert!(result.is_err(), "{bug:?} is not caught");
}

#[test]
fn a_lost_cancel_is_caught() {
    assert_caught(Bug::LoseCancel, "a cancel is lost");
}

#[test]
fn a_double_start_is_caught() {
    assert_caught(Bug::StartTwice, "a run starts without a stored claim");
}

#[test]
fn an_overwritten_final_state_is_caught() {
    assert_caught(Bug::OverwriteEnd, "a final state is overwritten");
}

#[test]
fn an_overwritten_message_is_caught() {
    assert_caught(Bug::OverwriteMessage, "an acknowledged message is lost");
}

#[test]
fn a_forgotten_queue_entry_is_caught() {
    assert_caught(Bug::ForgetQueued, "a caller is never answered");
}

#[test]
fn a_repeated_report_of_an_end_that_was_not_stored_is_caught() {
    assert_caught(Bug::RepeatJoint, "a task succeeds whose turn has not ended");
}

#[test]
fn a_status_published_before_it_is_stored_is_caught() {
    assert_caught(
        Bug::PublishFirst,
        "a status is published before it is stored",
    );
}
