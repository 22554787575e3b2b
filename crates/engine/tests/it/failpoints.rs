//! Exhaustive crash tests of the turn protocol: the process ends before and after every fail point of a turn, for each
//! class of effect, on every store, and again at every fail point of the recovery. Bugs planted between the runner and
//! its store verify the checker itself.

mod planted;
pub(crate) mod points;
mod world;

use lango_core::{ApprovalAnswer, Effect};
use world::{Databases, Plan, World};

/// The possible answers about a call with an unknown outcome.
fn answers() -> [ApprovalAnswer; 3] {
    let text = "it did".into();
    [
        ApprovalAnswer::Retry,
        ApprovalAnswer::Skip,
        ApprovalAnswer::Happened { text },
    ]
}

const EFFECTS: [Effect; 3] = [Effect::Pure, Effect::Idempotent, Effect::NonIdempotent];

/// All variants of the turn under test.
fn plans() -> impl Iterator<Item = Plan> {
    EFFECTS.into_iter().flat_map(|effect| {
        let approvals = [false, true].into_iter();
        approvals.flat_map(move |needs_approval| {
            let plan = move |answer| Plan {
                effect,
                needs_approval,
                answer,
            };
            // The user is not asked about calls that can be repeated.
            let answers = answers().into_iter();
            let kinds = if effect == Effect::NonIdempotent {
                3
            } else {
                1
            };
            answers.take(kinds).map(plan)
        })
    })
}

/// Ends the process once at every fail point, and returns the number of fail points.
async fn end_at_every_point(databases: &Databases) -> usize {
    let mut places = 0;
    for plan in plans() {
        let whole = World::new(databases, plan.clone())
            .await
            .run_process(None)
            .await;
        for place in 0..whole.passed.len() {
            let world = World::new(databases, plan.clone()).await;
            let run = world.run_process(Some(place)).await;
            assert!(run.was_ended, "{plan:?}: it did not end at {place}");
            world.run_process(None).await;
            let broken = world.violations().await;
            let at = &whole.passed[place];
            assert_eq!(broken, [] as [String; 0], "{plan:?}, ended {at}");
            places += 1;
        }
    }
    places
}

#[tokio::test]
async fn a_turn_is_recovered_wherever_its_process_ends_in_memory() {
    let places = end_at_every_point(&Databases::memory()).await;
    assert!(places > 300, "{places}");
}

#[tokio::test]
async fn a_turn_is_recovered_wherever_its_process_ends_in_sqlite() {
    let places = end_at_every_point(&Databases::sqlite()).await;
    println!("{places} ends on SQLite");
    assert!(places > 300, "{places}");
}

#[tokio::test]
async fn a_turn_is_recovered_wherever_its_process_ends_in_postgresql() {
    let places = end_at_every_point(&Databases::postgres()).await;
    println!("{places} ends on PostgreSQL");
    assert!(places > 300, "{places}");
}

#[tokio::test]
async fn nothing_is_lost_or_done_twice_wherever_the_recovery_ends_too() {
    let databases = Databases::memory();
    let mut ends = 0;
    for plan in plans() {
        let whole = World::new(&databases, plan.clone())
            .await
            .run_process(None)
            .await;
        for first in 0..whole.passed.len() {
            for second in 0.. {
                let world = World::new(&databases, plan.clone()).await;
                world.run_process(Some(first)).await;
                if !world.run_process(Some(second)).await.was_ended {
                    break;
                }
                world.run_process(None).await;
                let broken = world.violations().await;
                assert_eq!(
                    broken,
                    [] as [String; 0],
                    "{plan:?}, at {first}, then {second}"
                );
                ends += 1;
            }
        }
    }
    println!("{ends} pairs of ends");
    assert!(ends > 5_000, "{ends}");
}
