//! Cases about session leases and unfinished turns.

use super::{LogBuilder, StoreUnderTest};
use lango_core::{ApprovalAnswer, BoxLease, BusyPolicy, SessionId, StoreError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const WAIT: BusyPolicy = BusyPolicy::Wait { max_waiters: 8 };

/// A second lease is available once the first is released. A session need not exist yet to be leased.
pub async fn a_session_has_one_lease_at_a_time(subject: StoreUnderTest) {
    let (one, other) = (SessionId::from("s_1"), SessionId::from("s_2"));
    let first = acquire(&subject, &one).await;
    assert!(first.is_valid());
    let refused = subject.store.acquire(&one, BusyPolicy::Refuse).await;
    let refused = refused.err().expect("the session is leased");
    assert!(
        matches!(&refused, StoreError::Busy { id, waiting: None } if *id == one),
        "{refused}"
    );
    drop(acquire(&subject, &other).await);
    drop(first);
    drop(acquire(&subject, &one).await);
}

pub async fn waiters_acquire_a_session_in_order_of_arrival(subject: StoreUnderTest) {
    let session = SessionId::from("s_1");
    let first = acquire(&subject, &session).await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let wait = |number: u32| {
        let (store, session) = (Arc::clone(&subject.store), session.clone());
        let order = Arc::clone(&order);
        async move {
            let lease = store
                .acquire(&session, WAIT)
                .await
                .expect("a lease is granted");
            order.lock().expect("no test task panicked").push(number);
            drop(lease);
        }
    };
    let mut waiters: Vec<_> = (0..4).map(|number| Box::pin(wait(number))).collect();
    for waiter in &mut waiters {
        let early = tokio::time::timeout(Duration::from_millis(60), waiter).await;
        assert!(early.is_err(), "two leases at the same time");
    }
    drop(first);
    let waiters: Vec<_> = waiters.into_iter().map(tokio::spawn).collect();
    for waiter in waiters {
        waiter.await.expect("a waiter does not panic");
    }
    assert_eq!(*order.lock().expect("no test task panicked"), [0, 1, 2, 3]);
}

/// A waiter that gives up makes room for another.
pub async fn a_waiter_beyond_the_limit_is_refused(subject: StoreUnderTest) {
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
        "a second waiter is refused"
    );
    drop(second);
    let third = subject.store.acquire(&session, wait);
    let third = tokio::time::timeout(Duration::from_millis(60), third).await;
    assert!(third.is_err(), "it waits now");
}

pub async fn the_lease_owner_can_append(subject: StoreUnderTest) {
    let session = SessionId::from("s_1");
    let lease = acquire(&subject, &session).await;
    subject.session("s_1").await;
    let mut builder = LogBuilder::new(&session).ask("one");
    subject
        .store
        .append(builder.batch())
        .await
        .expect("the lease is valid");
    let mut builder = builder.say("test-root", "", "two").finish();
    subject
        .store
        .append(builder.batch())
        .await
        .expect("the lease is valid");
    drop(lease);
    assert_eq!(subject.log(&session).await.len(), 3);
}

/// Unfinished turns of all users are listed, together with whether each is waiting for the user.
pub async fn unfinished_turns_are_found(subject: StoreUnderTest) {
    let finished = subject.session("s_1").await;
    let interrupted = subject.session_of("ann", "s_2").await;
    let waiting = subject.session("s_3").await;
    subject.session("s_4").await;
    let builders = [
        LogBuilder::new(&finished).exchange("one", "1"),
        LogBuilder::new(&interrupted)
            .exchange("one", "1")
            .ask("two"),
        LogBuilder::new(&waiting).ask("three").request("p_1", None),
    ];
    for mut builder in builders {
        let stored = subject.store.append(builder.batch()).await;
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
    assert_eq!(
        unfinished(&subject, Some(&interrupted), 9).await,
        found[1..]
    );
    let mut builder = LogBuilder::new(&waiting)
        .at(3)
        .answer("p_1", ApprovalAnswer::Skip);
    let stored = subject.store.append(builder.batch()).await;
    stored.expect("events can be appended");
    let found = unfinished(&subject, Some(&interrupted), 9).await;
    assert_eq!(found, [("s_3".into(), "local".into(), false)]);
}

async fn acquire(subject: &StoreUnderTest, session: &SessionId) -> BoxLease {
    let lease = subject.store.acquire(session, BusyPolicy::Refuse).await;
    lease.expect("the session is free")
}

async fn unfinished(
    subject: &StoreUnderTest,
    after: Option<&SessionId>,
    limit: usize,
) -> Vec<(String, String, bool)> {
    let found = subject.catalog.unfinished(after, limit).await;
    let found = found.expect("unfinished turns can be listed").into_iter();
    let to_tuple = |turn: lango_core::UnfinishedTurn| {
        (
            turn.session.to_string(),
            turn.user.to_string(),
            turn.is_waiting,
        )
    };
    found.map(to_tuple).collect()
}
