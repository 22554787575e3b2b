//! The protocol of a turn against the end of its process, exhaustively: at every place that a turn passes, before and after,
//! for each class of effect, on every store; and again at every place of the recovery. The checker itself is checked with
//! bugs that are planted between the runner and its store.

mod planted;
pub mod points;
mod world;

use lango_core::{Answer, Effect};
use world::{Databases, Plan, World};

/// What a person says of a call whose fate is unknown.
fn answers() -> [Answer; 3] {
    let text = "it did".into();
    [Answer::Retry, Answer::Skip, Answer::Happened { text }]
}

const EFFECTS: [Effect; 3] = [Effect::Pure, Effect::Idempotent, Effect::Effect];

/// Every way a turn is run here.
fn plans() -> impl Iterator<Item = Plan> {
    EFFECTS.into_iter().flat_map(|effect| {
        let asking = [false, true].into_iter();
        asking.flat_map(move |asks| {
            let plan = move |answer| Plan {
                effect,
                asks,
                answer,
            };
            // Of what can be repeated nobody is asked.
            let answers = answers().into_iter();
            let kinds = if effect == Effect::Effect { 3 } else { 1 };
            answers.take(kinds).map(plan)
        })
    })
}

/// Ends the process once at every place, and gives how many places there were.
async fn end_everywhere(databases: &Databases) -> usize {
    let mut places = 0;
    for plan in plans() {
        let whole = World::new(databases, plan.clone()).await.live(None).await;
        for place in 0..whole.passed.len() {
            let world = World::new(databases, plan.clone()).await;
            let life = world.live(Some(place)).await;
            assert!(life.is_cut_off, "{plan:?}: it did not end at {place}");
            world.live(None).await;
            let broken = world.judge().await;
            let at = &whole.passed[place];
            assert_eq!(broken, [] as [String; 0], "{plan:?}, ended {at}");
            places += 1;
        }
    }
    places
}

#[tokio::test]
async fn wherever_a_process_ends_the_turn_is_recovered_as_promised_in_memory() {
    let places = end_everywhere(&Databases::memory()).await;
    assert!(places > 300, "{places}");
}

#[tokio::test]
async fn wherever_a_process_ends_the_turn_is_recovered_as_promised_in_sqlite() {
    let places = end_everywhere(&Databases::sqlite()).await;
    println!("{places} ends on SQLite");
    assert!(places > 300, "{places}");
}

#[tokio::test]
async fn wherever_a_process_ends_the_turn_is_recovered_as_promised_in_postgresql() {
    let places = end_everywhere(&Databases::postgres()).await;
    println!("{places} ends on PostgreSQL");
    assert!(places > 300, "{places}");
}

#[tokio::test]
async fn wherever_the_recovery_ends_too_nothing_is_lost_or_done_twice() {
    let databases = Databases::memory();
    let mut ends = 0;
    for plan in plans() {
        let whole = World::new(&databases, plan.clone()).await.live(None).await;
        for first in 0..whole.passed.len() {
            for second in 0.. {
                let world = World::new(&databases, plan.clone()).await;
                world.live(Some(first)).await;
                if !world.live(Some(second)).await.is_cut_off {
                    break;
                }
                world.live(None).await;
                let broken = world.judge().await;
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
