//! Several copies of lango over one database: who holds a session, who waits, and who writes nothing any more.

use super::{SHORT, at, copy, create, fence, log, says};
use futures_util::StreamExt;
use lango_core::{
    BoxLease, BusyPolicy, Change, Changes, Opened, SessionCatalog, SessionId, SessionStore,
    StoreError, TaskStore, Timestamp,
};
use lango_core::{TaskLog as _, TaskRecord, UserId};
use lango_store::Store;
use lango_store::archive::remove_hidden;
use lango_testkit::postgres;
use lango_testkit::session_store_contract::Sketch;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const WAIT: BusyPolicy = BusyPolicy::Wait { max_waiters: 8 };

async fn acquire(store: &Store, session: &SessionId) -> BoxLease {
    let lease = store.acquire(session, BusyPolicy::Refuse).await;
    lease.unwrap_or_else(|error| panic!("{error}"))
}

async fn is_busy(store: &Store, session: &SessionId) -> bool {
    match store.acquire(session, BusyPolicy::Refuse).await {
        Ok(_) => false,
        Err(StoreError::Busy { .. }) => true,
        Err(error) => panic!("{error}"),
    }
}

/// A lease that is not renewed any more, as that of a process which stopped: its database is gone for it alone.
async fn until_lost(lease: &BoxLease) {
    tokio::time::timeout(Duration::from_secs(60), lease.lost())
        .await
        .expect("a lease that is not renewed ends");
    assert!(!lease.is_valid());
}

#[tokio::test]
async fn a_session_that_another_copy_holds_is_busy_until_it_is_let_go_of() {
    let address = postgres::empty();
    let (left, right) = (at(&address), at(&address));
    let session = SessionId::from("s_1");
    let lease = acquire(&left, &session).await;
    assert!(is_busy(&right, &session).await);
    let waiting = right.acquire(&session, WAIT);
    let (waiting, ()) = tokio::join!(waiting, async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        drop(lease);
    });
    let lease = waiting.unwrap_or_else(|error| panic!("{error}"));
    assert!(lease.is_valid() && is_busy(&left, &session).await);
    drop(lease);
    // The end of a store waits for the database to hear of it.
    drop(right);
    assert!(!is_busy(&left, &session).await);
}

#[tokio::test]
async fn a_lease_outlives_its_length_while_its_holder_lives() {
    let address = postgres::empty();
    let (left, right) = (copy(&address, SHORT), copy(&address, SHORT));
    let session = SessionId::from("s_1");
    let lease = acquire(&left, &session).await;
    let until = tokio::time::Instant::now() + SHORT * 2;
    while tokio::time::Instant::now() < until {
        assert!(is_busy(&right, &session).await);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(lease.is_valid());
}

#[tokio::test]
async fn whoever_comes_after_a_dead_copy_takes_over_and_the_dead_writes_nothing() {
    let address = postgres::empty();
    let (left, right) = (copy(&address, SHORT), copy(&address, SHORT));
    let session = create(&left, "s_1").await;
    let lease = acquire(&left, &session).await;
    let mut sketch = Sketch::of(&session).exchange("one", "1");
    left.append(sketch.batch()).await.unwrap();
    let before = fence(&address, "s_1").await;

    // Nobody renews it: the row says that it ended.
    super::execute(
        &address,
        "UPDATE holds SET until = clock_timestamp() - interval '1 second'",
    )
    .await;
    let late = left.append(sketch.clone().exchange("late", "0").batch());
    assert_lost(late.await.unwrap_err());
    let taken = acquire(&right, &session).await;
    assert!(fence(&address, "s_1").await > before);
    until_lost(&lease).await;

    // While it is held elsewhere, after it was written to, and after it was let go of.
    let mut stale = sketch.clone().exchange("stale", "0");
    let stale = stale.batch();
    assert_lost(left.append(stale.clone()).await.unwrap_err());
    right
        .append(sketch.exchange("two", "2").batch())
        .await
        .unwrap();
    assert_lost(left.append(stale.clone()).await.unwrap_err());
    drop(taken);
    assert!(!is_busy(&right, &session).await);
    assert_lost(left.append(stale).await.unwrap_err());
    assert_eq!(says(&log(&right, &session).await), ["one", "two"]);
    assert_eq!(right.verify(&session).await.unwrap(), 6);

    // Whoever lost it can hold it again.
    drop(lease);
    // It may have to wait: `right` releases the lease of its last check in the background.
    let _again = left.acquire(&session, WAIT).await.unwrap();
    let mut sketch = Sketch::of(&session).at(7).exchange("three", "3");
    left.append(sketch.batch()).await.unwrap();
    assert_eq!(right.verify(&session).await.unwrap(), 9);
}

#[track_caller]
fn assert_lost(error: StoreError) {
    assert!(matches!(error, StoreError::Lost { .. }), "{error}");
}

#[tokio::test]
async fn nobody_writes_to_a_session_that_another_copy_holds() {
    let address = postgres::empty();
    let (left, right) = (at(&address), at(&address));
    let session = create(&left, "s_1").await;
    let mut sketch = Sketch::of(&session).exchange("one", "1");
    right.append(sketch.batch()).await.unwrap();
    let lease = acquire(&left, &session).await;
    let batch = sketch.exchange("two", "2").batch();
    assert_lost(right.append(batch.clone()).await.unwrap_err());
    drop(lease);
    // What was let go of here is let go of before anything else is asked.
    left.append(batch).await.unwrap();
    assert_eq!(log(&right, &session).await.len(), 6);
}

#[tokio::test]
async fn a_session_that_was_taken_over_is_not_hidden_and_one_that_is_deleted_leaves_no_hold() {
    let address = postgres::empty();
    let (left, right) = (at(&address), at(&address));
    let session = create(&left, "s_1").await;
    let _former = acquire(&left, &session).await;
    let ended = "UPDATE holds SET until = clock_timestamp() - interval '1 second'";
    super::execute(&address, ended).await;
    assert_lost(left.hide_session(&session, None).await.unwrap_err());
    let taken = acquire(&right, &session).await;
    assert_lost(left.hide_session(&session, None).await.unwrap_err());
    assert!(right.open(&session).await.is_ok());

    assert!(right.hide_session(&session, None).await.unwrap());
    assert!(!right.hide_session(&session, None).await.unwrap());
    remove_hidden(&right, &session).await.unwrap();
    assert_eq!(super::count(&address, "holds").await, 0);
    drop(taken);

    // Of what others left, that goes which nobody has any more.
    let left_over = "INSERT INTO holds (session, holder, fence, until) VALUES
        ('s_2', 'the dead', 1, '-infinity'),
        ('s_3', 'the living', 2, clock_timestamp() + interval '1 hour');
        INSERT INTO hold_line (session, holder, until) VALUES
        ('s_2', 'the dead', clock_timestamp() - interval '2 days'),
        ('s_3', 'the living', clock_timestamp() + interval '1 hour')";
    super::execute(&address, left_over).await;
    create(&right, "s_4").await;
    right
        .append(Sketch::of(&"s_4".into()).exchange("one", "1").batch())
        .await
        .unwrap();
    right.wipe_deleted().await.unwrap();
    let left_over = "SELECT count(*) FROM holds WHERE session IN ('s_3', 's_4')";
    assert_eq!(super::number(&address, left_over).await, 2);
    assert_eq!(super::count(&address, "holds").await, 2);
    assert_eq!(super::count(&address, "hold_line").await, 1);
}

#[tokio::test]
async fn an_append_under_a_hold_that_was_given_up_meanwhile_is_refused() {
    let address = postgres::empty();
    let (left, right) = (at(&address), at(&address));
    let session = create(&left, "s_1").await;
    let lease = acquire(&left, &session).await;
    let append = left.append(Sketch::of(&session).exchange("one", "1").batch());
    drop(lease);
    // Somebody else had it in between, and may have looked at its log.
    let between = right.acquire(&session, WAIT).await;
    drop(between.unwrap_or_else(|error| panic!("{error}")));
    drop(right);
    assert_lost(append.await.unwrap_err());
    assert_eq!(log(&left, &session).await.len(), 0);
}

#[tokio::test]
async fn a_task_is_not_stored_with_events_under_a_lease_that_was_released_meanwhile() {
    let address = postgres::empty();
    let (left, right) = (at(&address), at(&address));
    let session = create(&left, "s_1").await;
    let lease = acquire(&left, &session).await;
    let first = Sketch::of(&session).ask("hello").batch();
    let append = left.append_first(first, task("t_1"), "m_1");
    drop(lease);
    let between = right.acquire(&session, WAIT).await;
    drop(between.unwrap_or_else(|error| panic!("{error}")));
    assert_lost(append.await.unwrap_err());
    assert_eq!(log(&left, &session).await.len(), 0);
    assert_eq!(left.get(&"ann".into(), "t_1").await.unwrap(), None);
}

#[tokio::test]
async fn a_new_task_is_kept_though_the_one_in_its_way_was_deleted_meanwhile() {
    let address = postgres::empty();
    let store = at(&address);
    store.open_now().await.unwrap();
    // Once nothing is inserted, and nothing is found afterwards.
    super::execute(
        &address,
        "CREATE SEQUENCE tries MINVALUE -100 START 1;
         CREATE FUNCTION in_the_way() RETURNS trigger LANGUAGE plpgsql AS
         'BEGIN IF nextval(''tries'') > 1 THEN RETURN NEW; END IF; RETURN NULL; END';
         CREATE TRIGGER in_the_way BEFORE INSERT ON tasks FOR EACH ROW EXECUTE FUNCTION in_the_way()",
    )
    .await;
    let task = task("t_1");
    let opened = store.insert(task.clone(), "m_1").await.unwrap();
    assert_eq!(opened, Opened::New);
    let kept = store.get(&task.user, &task.id).await.unwrap();
    assert_eq!(kept, Some(task));
    // A hundred times it is given up.
    super::execute(&address, "ALTER SEQUENCE tries RESTART -100").await;
    let refused = store.insert(self::task("t_2"), "m_2").await.unwrap_err();
    assert!(matches!(refused, StoreError::Failed { .. }), "{refused}");
}

fn task(id: &str) -> TaskRecord {
    TaskRecord {
        id: id.into(),
        user: UserId::from("ann"),
        context: "c_1".into(),
        state: "WORKING".into(),
        is_running: true,
        updated: Timestamp(1),
        body: "{}".into(),
        revision: 1,
        attempts: 0,
    }
}

#[tokio::test]
async fn the_number_of_a_hold_is_greater_than_all_before_it() {
    let address = postgres::empty();
    let stores = [at(&address), at(&address), at(&address)];
    let session = SessionId::from("s_1");
    let mut before = 0;
    for turn in 0..12 {
        let lease = stores[turn % 3].acquire(&session, WAIT).await;
        let lease = lease.unwrap_or_else(|error| panic!("{error}"));
        let now = fence(&address, "s_1").await;
        assert!(now > before, "{now} after {before}");
        before = now;
        drop(lease);
    }
}

#[tokio::test]
async fn those_who_wait_on_several_copies_come_in_their_order() {
    let address = postgres::empty();
    let stores = [at(&address), at(&address)].map(Arc::new);
    let session = SessionId::from("s_1");
    let first = acquire(&stores[0], &session).await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut waiting = Vec::new();
    for number in 0..6 {
        let store = Arc::clone(&stores[number % 2]);
        let (session, order) = (session.clone(), Arc::clone(&order));
        waiting.push(tokio::spawn(async move {
            let lease = store.acquire(&session, WAIT).await;
            let lease = lease.unwrap_or_else(|error| panic!("{error}"));
            order.lock().unwrap().push(number);
            drop(lease);
        }));
        while super::count(&address, "hold_line").await != waiting.len() as i64 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    // The line is as long as all copies together make it.
    let refused = stores[1]
        .acquire(&session, BusyPolicy::Wait { max_waiters: 6 })
        .await;
    assert!(matches!(
        refused.err(),
        Some(StoreError::Busy {
            waiting: Some(6),
            ..
        })
    ));
    drop(first);
    for one in waiting {
        one.await.unwrap();
    }
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(super::count(&address, "hold_line").await, 0);
}

#[tokio::test]
async fn a_place_in_line_whose_owner_died_is_passed_over() {
    let address = postgres::empty();
    let (left, right) = (copy(&address, SHORT), copy(&address, SHORT));
    let session = SessionId::from("s_1");
    let first = acquire(&left, &session).await;
    super::execute(
        &address,
        "INSERT INTO hold_line (session, holder, until)
         VALUES ('s_1', 'the dead', clock_timestamp() + interval '1 second')",
    )
    .await;
    drop(first);
    let lease = tokio::time::timeout(Duration::from_secs(60), right.acquire(&session, WAIT)).await;
    assert!(lease.unwrap().is_ok());
}

/// So it is with a claim whose answer was lost, too: nobody renews it.
#[tokio::test]
async fn a_hold_whose_owner_died_ends_with_its_lease() {
    let address = postgres::empty();
    let store = copy(&address, SHORT);
    store.open_now().await.unwrap();
    super::execute(
        &address,
        "INSERT INTO holds (session, holder, fence, until)
         VALUES ('s_1', 'the dead', nextval('hold_fences'), clock_timestamp() + interval '1 second')",
    )
    .await;
    let session = SessionId::from("s_1");
    let before = fence(&address, "s_1").await;
    let lease = tokio::time::timeout(Duration::from_secs(60), store.acquire(&session, WAIT)).await;
    assert!(lease.unwrap().is_ok_and(|lease| lease.is_valid()));
    assert!(fence(&address, "s_1").await > before);
}

#[tokio::test]
async fn a_claim_that_nobody_waits_for_is_given_up() {
    let address = postgres::empty();
    let (left, right) = (at(&address), at(&address));
    let session = SessionId::from("s_1");
    for _ in 0..20 {
        tokio::select! {
            biased;
            _ = left.acquire(&session, WAIT) => {}
            () = tokio::time::sleep(Duration::from_micros(300)) => {}
        }
    }
    let lease = tokio::time::timeout(Duration::from_secs(5), right.acquire(&session, WAIT)).await;
    assert!(lease.expect("well before a lease ends").is_ok());
}

#[tokio::test]
async fn turns_that_another_copy_is_at_are_not_taken_for_left_behind() {
    let address = postgres::empty();
    let (left, right) = (at(&address), at(&address));
    let session = create(&left, "s_1").await;
    let lease = acquire(&left, &session).await;
    let mut sketch = Sketch::of(&session).ask("one");
    left.append(sketch.batch()).await.unwrap();
    assert_eq!(left.unfinished(None, 9).await.unwrap().len(), 1);
    assert_eq!(right.unfinished(None, 9).await.unwrap().len(), 0);
    drop(lease);
    drop(left);
    assert_eq!(right.unfinished(None, 9).await.unwrap().len(), 1);
}

#[tokio::test]
async fn what_one_copy_changes_another_is_told() {
    let address = postgres::empty();
    let name = super::unique("told");
    let right = at(&format!("{address}&application_name={name}"));
    let left = at(&address);
    right.open_now().await.unwrap();
    let mut changes = right.changes();
    let mut next = async || {
        let next = tokio::time::timeout(Duration::from_secs(30), changes.next());
        next.await.expect("it is told")
    };
    assert_eq!(
        next().await,
        Some(Change::Anything),
        "nobody listened before"
    );
    let session = create(&left, &super::unique("s")).await;
    let _held = acquire(&left, &session).await;
    let mut sketch = Sketch::of(&session).exchange("one", "1");
    left.append(sketch.batch()).await.unwrap();
    let mut task = task(&super::unique("t"));
    left.insert(task.clone(), "m_1").await.unwrap();
    let mut seen = Vec::new();
    let expected = [
        Change::Session(session.clone()),
        Change::Task(task.id.clone()),
    ];
    while !expected.iter().all(|change| seen.contains(change)) {
        seen.push(next().await.unwrap());
    }

    // A connection that broke says that anything may have changed, and goes on.
    super::cut(&address, &name).await;
    while next().await != Some(Change::Anything) {}
    loop {
        task.revision += 1;
        left.put(task.clone()).await.unwrap();
        match tokio::time::timeout(Duration::from_millis(300), next()).await {
            Ok(Some(Change::Task(id))) if id == task.id => break,
            _ => {}
        }
    }
}
