//! Tests with several replicas on one database: leases, queues, fencing and notifications.

use super::{SHORT, at, create, fence, log, replica, user_messages};
use futures_util::StreamExt;
use lango_core::{
    BoxLease, BusyPolicy, ChangeFeed, SessionCatalog, SessionId, SessionStore, StoreChange,
    StoreError, TaskInsertOutcome, TaskStore, Timestamp,
};
use lango_core::{TaskLog as _, TaskRecord, UserId};
use lango_store::Store;
use lango_store::archive::remove_hidden;
use lango_testkit::postgres;
use lango_testkit::session_store_contract::LogBuilder;
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

/// Waits until a lease that is no longer renewed is lost.
async fn wait_until_lost(lease: &BoxLease) {
    tokio::time::timeout(Duration::from_secs(60), lease.lost())
        .await
        .expect("a lease that is not renewed expires");
    assert!(!lease.is_valid());
}

#[tokio::test]
async fn a_session_leased_by_another_replica_is_busy_until_it_is_released() {
    let address = postgres::fresh_schema();
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
    // Dropping the store waits until the lease is released.
    drop(right);
    assert!(!is_busy(&left, &session).await);
}

#[tokio::test]
async fn a_lease_is_renewed_while_its_owner_is_alive() {
    let address = postgres::fresh_schema();
    let (left, right) = (replica(&address, SHORT), replica(&address, SHORT));
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
async fn a_replica_takes_over_from_a_dead_one_which_can_no_longer_write() {
    let address = postgres::fresh_schema();
    let (left, right) = (replica(&address, SHORT), replica(&address, SHORT));
    let session = create(&left, "s_1").await;
    let lease = acquire(&left, &session).await;
    let mut builder = LogBuilder::new(&session).exchange("one", "1");
    left.append(builder.batch()).await.unwrap();
    let before = fence(&address, "s_1").await;

    // This looks as if the lease was not renewed in time.
    super::execute(
        &address,
        "UPDATE holds SET until = clock_timestamp() - interval '1 second'",
    )
    .await;
    let late = left.append(builder.clone().exchange("late", "0").batch());
    assert_lost(late.await.unwrap_err());
    let taken = acquire(&right, &session).await;
    assert!(fence(&address, "s_1").await > before);
    wait_until_lost(&lease).await;

    // Appends fail while another replica has the lease, after that replica wrote, and after it released the lease.
    let mut stale = builder.clone().exchange("stale", "0");
    let stale = stale.batch();
    assert_lost(left.append(stale.clone()).await.unwrap_err());
    right
        .append(builder.exchange("two", "2").batch())
        .await
        .unwrap();
    assert_lost(left.append(stale.clone()).await.unwrap_err());
    drop(taken);
    assert!(!is_busy(&right, &session).await);
    assert_lost(left.append(stale).await.unwrap_err());
    assert_eq!(user_messages(&log(&right, &session).await), ["one", "two"]);
    assert_eq!(right.verify(&session).await.unwrap(), 6);

    // The replica that lost the lease can acquire it again.
    drop(lease);
    // It may have to wait: `right` releases the lease of its last check in the background.
    let _again = left.acquire(&session, WAIT).await.unwrap();
    let mut builder = LogBuilder::new(&session).at(7).exchange("three", "3");
    left.append(builder.batch()).await.unwrap();
    assert_eq!(right.verify(&session).await.unwrap(), 9);
}

#[track_caller]
fn assert_lost(error: StoreError) {
    assert!(matches!(error, StoreError::LeaseLost { .. }), "{error}");
}

#[tokio::test]
async fn a_replica_cannot_write_to_a_session_leased_by_another() {
    let address = postgres::fresh_schema();
    let (left, right) = (at(&address), at(&address));
    let session = create(&left, "s_1").await;
    let mut builder = LogBuilder::new(&session).exchange("one", "1");
    right.append(builder.batch()).await.unwrap();
    let lease = acquire(&left, &session).await;
    let batch = builder.exchange("two", "2").batch();
    assert_lost(right.append(batch.clone()).await.unwrap_err());
    drop(lease);
    // A lease that this replica released is released before its next append.
    left.append(batch).await.unwrap();
    assert_eq!(log(&right, &session).await.len(), 6);
}

#[tokio::test]
async fn a_former_owner_cannot_hide_a_session_and_a_deleted_one_leaves_no_lease() {
    let address = postgres::fresh_schema();
    let (left, right) = (at(&address), at(&address));
    let session = create(&left, "s_1").await;
    let _former = acquire(&left, &session).await;
    let ended = "UPDATE holds SET until = clock_timestamp() - interval '1 second'";
    super::execute(&address, ended).await;
    assert_lost(left.hide_session(&session, None).await.unwrap_err());
    let taken = acquire(&right, &session).await;
    assert_lost(left.hide_session(&session, None).await.unwrap_err());
    assert!(right.read_head(&session).await.is_ok());

    assert!(right.hide_session(&session, None).await.unwrap());
    assert!(!right.hide_session(&session, None).await.unwrap());
    remove_hidden(&right, &session).await.unwrap();
    assert_eq!(super::count(&address, "holds").await, 0);
    drop(taken);

    // Wiping deletes expired leases and tickets that others left, but not valid ones.
    let left_over = "INSERT INTO holds (session, holder, fence, until) VALUES
        ('s_2', 'dead', 1, '-infinity'),
        ('s_3', 'alive', 2, clock_timestamp() + interval '1 hour');
        INSERT INTO hold_line (session, holder, until) VALUES
        ('s_2', 'dead', clock_timestamp() - interval '2 days'),
        ('s_3', 'alive', clock_timestamp() + interval '1 hour')";
    super::execute(&address, left_over).await;
    create(&right, "s_4").await;
    right
        .append(LogBuilder::new(&"s_4".into()).exchange("one", "1").batch())
        .await
        .unwrap();
    right.wipe_deleted().await.unwrap();
    let left_over = "SELECT count(*) FROM holds WHERE session IN ('s_3', 's_4')";
    assert_eq!(super::number(&address, left_over).await, 2);
    assert_eq!(super::count(&address, "holds").await, 2);
    assert_eq!(super::count(&address, "hold_line").await, 1);
}

#[tokio::test]
async fn an_append_under_a_lease_that_was_released_meanwhile_is_refused() {
    let address = postgres::fresh_schema();
    let (left, right) = (at(&address), at(&address));
    let session = create(&left, "s_1").await;
    let lease = acquire(&left, &session).await;
    let append = left.append(LogBuilder::new(&session).exchange("one", "1").batch());
    drop(lease);
    // Another replica had the lease in between, and may have read the log.
    let between = right.acquire(&session, WAIT).await;
    drop(between.unwrap_or_else(|error| panic!("{error}")));
    drop(right);
    assert_lost(append.await.unwrap_err());
    assert_eq!(log(&left, &session).await.len(), 0);
}

#[tokio::test]
async fn a_task_is_not_stored_with_events_under_a_lease_that_was_released_meanwhile() {
    let address = postgres::fresh_schema();
    let (left, right) = (at(&address), at(&address));
    let session = create(&left, "s_1").await;
    let lease = acquire(&left, &session).await;
    let first = LogBuilder::new(&session).ask("hello").batch();
    let append = left.append_first(first, task("t_1"), "m_1");
    drop(lease);
    let between = right.acquire(&session, WAIT).await;
    drop(between.unwrap_or_else(|error| panic!("{error}")));
    assert_lost(append.await.unwrap_err());
    assert_eq!(log(&left, &session).await.len(), 0);
    assert_eq!(left.get(&"ann".into(), "t_1").await.unwrap(), None);
}

#[tokio::test]
async fn a_new_task_is_stored_if_the_conflicting_one_is_deleted_meanwhile() {
    let address = postgres::fresh_schema();
    let store = at(&address);
    store.open_now().await.unwrap();
    // The first insert has no effect, and the lookup after it finds nothing.
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
    assert_eq!(opened, TaskInsertOutcome::New);
    let stored = store.get(&task.user, &task.id).await.unwrap();
    assert_eq!(stored, Some(task));
    // If it keeps failing, the store gives up.
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
async fn fencing_tokens_increase_with_every_lease() {
    let address = postgres::fresh_schema();
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
async fn waiters_on_several_replicas_are_served_in_order() {
    let address = postgres::fresh_schema();
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
    // The queue counts the waiters of all replicas.
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
async fn a_ticket_of_a_dead_replica_is_skipped() {
    let address = postgres::fresh_schema();
    let (left, right) = (replica(&address, SHORT), replica(&address, SHORT));
    let session = SessionId::from("s_1");
    let first = acquire(&left, &session).await;
    super::execute(
        &address,
        "INSERT INTO hold_line (session, holder, until)
         VALUES ('s_1', 'dead', clock_timestamp() + interval '1 second')",
    )
    .await;
    drop(first);
    let lease = tokio::time::timeout(Duration::from_secs(60), right.acquire(&session, WAIT)).await;
    assert!(lease.unwrap().is_ok());
}

/// The same applies to a claim whose reply was lost, because it is not renewed.
#[tokio::test]
async fn the_lease_of_a_dead_replica_expires() {
    let address = postgres::fresh_schema();
    let store = replica(&address, SHORT);
    store.open_now().await.unwrap();
    super::execute(
        &address,
        "INSERT INTO holds (session, holder, fence, until)
         VALUES ('s_1', 'dead', nextval('hold_fences'), clock_timestamp() + interval '1 second')",
    )
    .await;
    let session = SessionId::from("s_1");
    let before = fence(&address, "s_1").await;
    let lease = tokio::time::timeout(Duration::from_secs(60), store.acquire(&session, WAIT)).await;
    assert!(lease.unwrap().is_ok_and(|lease| lease.is_valid()));
    assert!(fence(&address, "s_1").await > before);
}

#[tokio::test]
async fn a_claim_of_a_dropped_waiter_is_released() {
    let address = postgres::fresh_schema();
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
    assert!(lease.expect("well before a lease expires").is_ok());
}

#[tokio::test]
async fn turns_that_another_replica_runs_are_not_listed_as_unfinished() {
    let address = postgres::fresh_schema();
    let (left, right) = (at(&address), at(&address));
    let session = create(&left, "s_1").await;
    let lease = acquire(&left, &session).await;
    let mut builder = LogBuilder::new(&session).ask("one");
    left.append(builder.batch()).await.unwrap();
    assert_eq!(left.unfinished(None, 9).await.unwrap().len(), 1);
    assert_eq!(right.unfinished(None, 9).await.unwrap().len(), 0);
    drop(lease);
    drop(left);
    assert_eq!(right.unfinished(None, 9).await.unwrap().len(), 1);
}

#[tokio::test]
async fn replicas_are_notified_of_each_others_changes() {
    let address = postgres::fresh_schema();
    let name = super::unique("notified");
    let right = at(&format!("{address}&application_name={name}"));
    let left = at(&address);
    right.open_now().await.unwrap();
    let mut changes = right.subscribe();
    let mut next = async || {
        let next = tokio::time::timeout(Duration::from_secs(30), changes.next());
        next.await.expect("a change is notified")
    };
    assert_eq!(
        next().await,
        Some(StoreChange::Anything),
        "earlier notifications may have been missed"
    );
    let session = create(&left, &super::unique("s")).await;
    let _lease = acquire(&left, &session).await;
    let mut builder = LogBuilder::new(&session).exchange("one", "1");
    left.append(builder.batch()).await.unwrap();
    let mut task = task(&super::unique("t"));
    left.insert(task.clone(), "m_1").await.unwrap();
    let mut seen = Vec::new();
    let expected = [
        StoreChange::Session(session.clone()),
        StoreChange::Task(task.id.clone()),
    ];
    while !expected.iter().all(|change| seen.contains(change)) {
        seen.push(next().await.unwrap());
    }

    // After a lost connection the store notifies that anything may have changed, and continues.
    super::terminate_connections(&address, &name).await;
    while next().await != Some(StoreChange::Anything) {}
    loop {
        task.revision += 1;
        left.put(task.clone()).await.unwrap();
        match tokio::time::timeout(Duration::from_millis(300), next()).await {
            Ok(Some(StoreChange::Task(id))) if id == task.id => break,
            _ => {}
        }
    }
}
