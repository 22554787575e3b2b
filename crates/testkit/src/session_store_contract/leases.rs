//! Cases about holding a session, and about turns that were left without an outcome.

use super::{Sketch, Subject};
use lango_core::{Answer, BoxLease, BusyPolicy, SessionId, StoreError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const WAIT: BusyPolicy = BusyPolicy::Wait { max_waiters: 8 };

/// One has it; the next gets it when it is let go of. A session that is not made yet can be held.
pub async fn a_session_is_held_by_one_at_a_time(subject: Subject) {
    let (one, other) = (SessionId::from("s_1"), SessionId::from("s_2"));
    let first = acquire(&subject, &one).await;
    assert!(first.is_valid());
    let refused = subject.store.acquire(&one, BusyPolicy::Refuse).await;
    let refused = refused.err().expect("somebody has it");
    assert!(
        matches!(&refused, StoreError::Busy { id, waiting: None } if *id == one),
        "{refused}"
    );
    drop(acquire(&subject, &other).await);
    drop(first);
    drop(acquire(&subject, &one).await);
}

/// Those who wait get it in the order in which they came.
pub async fn those_who_wait_hold_a_session_in_the_order_of_coming(subject: Subject) {
    let session = SessionId::from("s_1");
    let first = acquire(&subject, &session).await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let wait = |number: u32| {
        let (store, session) = (Arc::clone(&subject.store), session.clone());
        let order = Arc::clone(&order);
        async move {
            let lease = store.acquire(&session, WAIT).await.expect("it comes");
            order.lock().expect("nobody panicked").push(number);
            drop(lease);
        }
    };
    let mut waiting: Vec<_> = (0..4).map(|number| Box::pin(wait(number))).collect();
    for one in &mut waiting {
        let early = tokio::time::timeout(Duration::from_millis(60), one).await;
        assert!(early.is_err(), "it was lease by two");
    }
    drop(first);
    let waiting: Vec<_> = waiting.into_iter().map(tokio::spawn).collect();
    for one in waiting {
        one.await.expect("it does not panic");
    }
    assert_eq!(*order.lock().expect("nobody panicked"), [0, 1, 2, 3]);
}

/// A line has an end; somebody who leaves it makes room.
pub async fn one_more_than_may_wait_is_refused(subject: Subject) {
    let session = SessionId::from("s_1");
    let _first = acquire(&subject, &session).await;
    let wait = BusyPolicy::Wait { max_waiters: 1 };
    let mut second = subject.store.acquire(&session, wait);
    let early = tokio::time::timeout(Duration::from_millis(60), &mut second).await;
    assert!(early.is_err());
    let third = subject.store.acquire(&session, wait).await;
    assert!(
        matches!(
            third,
            Err(StoreError::Busy {
                waiting: Some(1),
                ..
            })
        ),
        "there is no room for a third"
    );
    drop(second);
    let third = subject.store.acquire(&session, wait);
    let third = tokio::time::timeout(Duration::from_millis(60), third).await;
    assert!(third.is_err(), "it waits now");
}

/// Whoever holds a session writes to it, and goes on reading.
pub async fn the_holder_of_a_session_appends_to_it(subject: Subject) {
    let session = SessionId::from("s_1");
    let lease = acquire(&subject, &session).await;
    subject.session("s_1").await;
    let mut sketch = Sketch::of(&session).ask("one");
    subject
        .store
        .append(sketch.batch())
        .await
        .expect("it is lease");
    let mut sketch = sketch.say("sketch-root", "", "two").finish();
    subject
        .store
        .append(sketch.batch())
        .await
        .expect("it is lease");
    drop(lease);
    assert_eq!(subject.log(&session).await.len(), 3);
}

/// Every turn without an outcome is found, of whatever user, and whether a person is asked for something.
pub async fn turns_without_an_outcome_are_found(subject: Subject) {
    let finished = subject.session("s_1").await;
    let cut_off = subject.session_of("ann", "s_2").await;
    let waits = subject.session("s_3").await;
    subject.session("s_4").await;
    let sketches = [
        Sketch::of(&finished).exchange("one", "1"),
        Sketch::of(&cut_off).exchange("one", "1").ask("two"),
        Sketch::of(&waits).ask("three").request("p_1", None),
    ];
    for mut sketch in sketches {
        let stored = subject.store.append(sketch.batch()).await;
        stored.expect("events can be appended");
    }
    let found = unfinished(&subject, None, 9).await;
    assert_eq!(
        found,
        [
            ("s_2".into(), "ann".into(), false),
            ("s_3".into(), "local".into(), true)
        ]
    );
    assert_eq!(unfinished(&subject, None, 1).await, found[..1]);
    assert_eq!(unfinished(&subject, Some(&cut_off), 9).await, found[1..]);
    let mut sketch = Sketch::of(&waits).at(3).answer("p_1", Answer::Skip);
    let stored = subject.store.append(sketch.batch()).await;
    stored.expect("events can be appended");
    let found = unfinished(&subject, Some(&cut_off), 9).await;
    assert_eq!(found, [("s_3".into(), "local".into(), false)]);
}

async fn acquire(subject: &Subject, session: &SessionId) -> BoxLease {
    let lease = subject.store.acquire(session, BusyPolicy::Refuse).await;
    lease.expect("nobody has it")
}

async fn unfinished(
    subject: &Subject,
    after: Option<&SessionId>,
    limit: usize,
) -> Vec<(String, String, bool)> {
    let found = subject.catalog.unfinished(after, limit).await;
    let found = found.expect("they can be listed").into_iter();
    let of = |turn: lango_core::UnfinishedTurn| {
        (
            turn.session.to_string(),
            turn.user.to_string(),
            turn.is_waiting,
        )
    };
    found.map(of).collect()
}
