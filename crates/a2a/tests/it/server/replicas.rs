//! Two replicas over one database: a client can get, list, follow, cancel and resend the tasks of one through the
//! other.

use super::support::{message, with_timeout};
use super::test_replica::{SharedLog, TestDatabase, TestReplica, fast_settings, on_each};
use lango_a2a::server::RunCause;
use lango_core::{BoxStream, ChangeFeed, StoreChange, UserId};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;

on_each! { async
    a_task_can_be_read_and_listed_through_any_replica
    a_stream_of_one_replica_follows_a_task_of_another
    a_message_sent_to_two_replicas_at_the_same_time_opens_one_task
    a_task_can_be_cancelled_through_any_replica
    a_cancel_request_survives_a_crash_of_the_replica
    an_interrupted_task_is_cancelled_immediately
    scans_ignore_tasks_that_run_here_or_were_just_written
    hints_make_changes_visible_immediately
}

async fn start_two(database: &TestDatabase) -> (TestReplica, TestReplica, Arc<SharedLog>) {
    let log = Arc::<SharedLog>::default();
    let one = TestReplica::start(database, &log).await;
    let other = TestReplica::start(database, &log).await;
    (one, other, log)
}

async fn a_task_can_be_read_and_listed_through_any_replica(database: TestDatabase) {
    let (one, other, _) = start_two(&database).await;
    one.allow_steps(1);
    let id = one.start_task("steps 2").await["id"].clone();
    let listed = other.result("ListTasks", json!({})).await;
    assert_eq!(listed["tasks"][0]["id"], id);
    one.wait_for_steps(1).await;
    // The artifact is visible as soon as it is stored.
    with_timeout(async {
        while other.task(&id).await["artifacts"][0]["parts"][0]["text"] != "0 " {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    one.allow_steps(1);
    let done = other.wait_for_state(&id, "TASK_STATE_COMPLETED").await;
    assert_eq!(done, one.task(&id).await);
    assert_eq!(other.agent.runs.lock().unwrap().len(), 0);
}

async fn a_stream_of_one_replica_follows_a_task_of_another(database: TestDatabase) {
    let (one, other, _) = start_two(&database).await;
    let id = one.start_task("steps 3").await["id"].clone();
    one.wait_for_state(&id, "TASK_STATE_WORKING").await;
    let mut events = other.subscribe(&id).await;
    let first = events.next_event().await;
    assert_eq!(first["task"]["id"], id);
    one.allow_steps(1);
    let piece = events.next_event().await;
    let artifact = &piece["artifactUpdate"]["artifact"];
    assert_eq!(artifact["parts"][0]["text"], "0 ", "{piece}");
    one.allow_steps(2);
    let rest = events.remaining().await;
    let mut text = "0 ".to_owned();
    for event in &rest {
        let update = &event["artifactUpdate"];
        if let Some(more) = update["artifact"]["parts"][0]["text"].as_str() {
            if update["append"] == false {
                text.clear();
            }
            text.push_str(more);
        }
    }
    assert_eq!(text, "0 1 2 ", "{rest:?}");
    let last = &rest.last().unwrap()["statusUpdate"]["status"];
    assert_eq!(last, &one.task(&id).await["status"]);

    // A client that waits for the answer to a message gets the end too.
    let message = message("steps 1");
    let params = |is_immediate: bool| json!({ "message": message, "configuration": { "returnImmediately": is_immediate } });
    let started = one.result("SendMessage", params(true)).await;
    let waiting = other.result("SendMessage", params(false));
    let (waited, ()) = tokio::join!(waiting, async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        one.allow_steps(1);
    });
    assert_eq!(waited["task"]["id"], started["task"]["id"]);
    assert_eq!(waited["task"]["status"]["state"], "TASK_STATE_COMPLETED");
}

async fn a_message_sent_to_two_replicas_at_the_same_time_opens_one_task(database: TestDatabase) {
    let (one, other, log) = start_two(&database).await;
    one.allow_steps(20);
    other.allow_steps(20);
    for _ in 0..10 {
        let params = json!({ "message": message("steps 2") });
        let (first, second) = tokio::join!(
            one.result("SendMessage", params.clone()),
            other.result("SendMessage", params.clone())
        );
        assert_eq!(first["task"], second["task"]);
        assert_eq!(other.result("SendMessage", params).await, first);
    }
    assert_eq!(log.started.lock().unwrap().len(), 10);
    assert_eq!(log.steps.lock().unwrap().len(), 20);
}

async fn a_task_can_be_cancelled_through_any_replica(database: TestDatabase) {
    let (one, other, log) = start_two(&database).await;
    let id = one.start_task("steps 3").await["id"].clone();
    one.wait_for_state(&id, "TASK_STATE_WORKING").await;
    let events = one.subscribe(&id).await;
    let task = other.result("CancelTask", json!({ "id": id })).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_CANCELED");
    assert_eq!(one.task(&id).await, task);
    let events = events.remaining().await;
    let last = &events.last().unwrap()["statusUpdate"]["status"]["state"];
    assert_eq!(last, "TASK_STATE_CANCELED");
    assert!(
        one.tasks
            .cancel_requests(None, 10)
            .await
            .unwrap()
            .is_empty()
    );
    let error = one.error("CancelTask", json!({ "id": id })).await;
    assert_eq!(error["code"], -32002);

    // A queued task can be cancelled, too.
    let first = one.start_task("steps 1").await;
    one.wait_for_state(&first["id"], "TASK_STATE_WORKING").await;
    let mut queued = message("steps 1");
    queued["contextId"] = first["contextId"].clone();
    let params = json!({ "message": queued, "configuration": { "returnImmediately": true } });
    let queued = one.result("SendMessage", params).await["task"]["id"].clone();
    let task = other.result("CancelTask", json!({ "id": queued })).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_CANCELED");
    one.allow_steps(9);
    one.wait_for_state(&first["id"], "TASK_STATE_COMPLETED")
        .await;
    let steps = log.steps.lock().unwrap().clone();
    assert_eq!(steps, [(first["id"].as_str().unwrap().to_owned(), 0)]);
}

async fn a_cancel_request_survives_a_crash_of_the_replica(database: TestDatabase) {
    let log = Arc::<SharedLog>::default();
    let process = tokio::runtime::Runtime::new().unwrap();
    let path = database.clone();
    let id = process
        .spawn({
            let log = Arc::clone(&log);
            async move {
                let replica = TestReplica::start(&path, &log).await;
                replica.allow_steps(1);
                let id = replica.start_task("steps 3").await["id"].clone();
                replica.wait_for_steps(1).await;
                id
            }
        })
        .await
        .unwrap();
    tokio::task::spawn_blocking(move || drop(process))
        .await
        .unwrap();
    let store = database.open();
    let (user, name) = (UserId::new("ann"), id.as_str().unwrap());
    assert!(store.request_cancel(&user, name).await.unwrap());

    let next = TestReplica::start(&database, &log).await;
    next.allow_steps(3);
    next.wait_for_state(&id, "TASK_STATE_CANCELED").await;
    assert_eq!(log.steps.lock().unwrap().len(), 1);
}

async fn an_interrupted_task_is_cancelled_immediately(database: TestDatabase) {
    let log = Arc::<SharedLog>::default();
    // The survivor does not scan for interrupted tasks during the test.
    let mut settings = fast_settings();
    settings.limits.recover_every = Duration::from_secs(3600);
    let survivor = TestReplica::with(&database, &log, None, settings, None).await;
    let process = tokio::runtime::Runtime::new().unwrap();
    let path = database.clone();
    let id = process
        .spawn({
            let log = Arc::clone(&log);
            async move {
                let replica = TestReplica::start(&path, &log).await;
                let id = replica.start_task("steps 3").await["id"].clone();
                replica.wait_for_state(&id, "TASK_STATE_WORKING").await;
                id
            }
        })
        .await
        .unwrap();
    tokio::task::spawn_blocking(move || drop(process))
        .await
        .unwrap();
    let task = survivor.result("CancelTask", json!({ "id": id })).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_CANCELED");
    assert_eq!(log.steps.lock().unwrap().len(), 0);
}

async fn scans_ignore_tasks_that_run_here_or_were_just_written(database: TestDatabase) {
    let (one, other, log) = start_two(&database).await;
    let id = one.start_task("steps 1").await["id"].clone();
    one.wait_for_state(&id, "TASK_STATE_WORKING").await;
    let idle_checks = || log.idle_checks.load(Ordering::SeqCst);
    // The other replica checks, because the stored task has not changed for a while.
    with_timeout(async {
        while idle_checks() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    with_timeout(other.server.stop(Duration::ZERO)).await;
    let before = idle_checks();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(
        idle_checks(),
        before,
        "a scan checked a task that runs on the same replica"
    );
    one.allow_steps(1);
    one.wait_for_state(&id, "TASK_STATE_COMPLETED").await;
    let starts: Vec<RunCause> = one
        .agent
        .runs
        .lock()
        .unwrap()
        .iter()
        .map(|run| run.cause)
        .collect();
    assert_eq!(starts, [RunCause::NewTask]);
    assert_eq!(other.agent.runs.lock().unwrap().len(), 0);
}

/// A change feed that the test controls. Clones share the feed.
#[derive(Default, Clone)]
struct TestChanges {
    id: Arc<Mutex<String>>,
    changed: Arc<Notify>,
}

impl ChangeFeed for TestChanges {
    fn subscribe(&self) -> BoxStream<'static, StoreChange> {
        Box::pin(futures_util::stream::unfold(self.clone(), |feed| async {
            feed.changed.notified().await;
            let id = feed.id.lock().unwrap().as_str().into();
            Some((StoreChange::Task(id), feed))
        }))
    }
}

async fn hints_make_changes_visible_immediately(database: TestDatabase) {
    let log = Arc::<SharedLog>::default();
    let feed = TestChanges::default();
    // Without hints, the replica would not read the store during the test.
    let mut slow = fast_settings();
    slow.limits.follow_every = Duration::from_secs(3600);
    let changes = Some(Arc::new(feed.clone()) as Arc<dyn ChangeFeed>);
    let one = TestReplica::with(&database, &log, None, slow.clone(), changes.clone()).await;
    let other = TestReplica::with(&database, &log, None, fast_settings(), None).await;
    let hint = |id: &Value| {
        *feed.id.lock().unwrap() = id.as_str().unwrap().to_owned();
        feed.changed.notify_one();
    };

    let theirs = other.start_task("steps 1").await["id"].clone();
    other.wait_for_state(&theirs, "TASK_STATE_WORKING").await;
    let mut events = one.subscribe(&theirs).await;
    events.next_event().await;
    other.allow_steps(1);
    other.wait_for_state(&theirs, "TASK_STATE_COMPLETED").await;
    hint(&theirs);
    let rest = events.remaining().await;
    let last = &rest.last().unwrap()["statusUpdate"]["status"]["state"];
    assert_eq!(last, "TASK_STATE_COMPLETED");

    let own = one.start_task("steps 1").await["id"].clone();
    one.wait_for_state(&own, "TASK_STATE_WORKING").await;
    let cancel = other.result("CancelTask", json!({ "id": own }));
    let (task, ()) = tokio::join!(cancel, async {
        while one.tasks.cancel_requests(None, 1).await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        hint(&own);
    });
    assert_eq!(task["status"]["state"], "TASK_STATE_CANCELED");
}
