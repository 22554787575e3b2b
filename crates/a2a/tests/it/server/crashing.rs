//! A server that crashes at any point between accepting a message and reporting its end. The next start, or another
//! replica, completes the task: nothing is lost, and nothing is done twice.

use super::support::{message, with_timeout};
use super::test_replica::{
    CrashPoint, SharedLog, TestDatabase, TestReplica, fast_settings, in_process, on_each,
};
use lango_a2a::server::RunCause;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::runtime::Runtime;

const POINTS: [CrashPoint; 8] = [
    CrashPoint::BeforeLease,
    CrashPoint::Leased,
    CrashPoint::Started,
    CrashPoint::Stepped(0),
    CrashPoint::Stepped(2),
    CrashPoint::BeforeEnd,
    CrashPoint::Ended,
    CrashPoint::Reported,
];

on_each! { sync
    the_next_start_completes_a_task_after_a_crash_at_any_point
    another_replica_completes_a_task_after_a_crash_and_its_subscribers_get_the_end
    the_tasks_of_a_conversation_run_in_order_after_a_crash
    many_interrupted_tasks_are_resumed_a_few_at_a_time
    after_an_orderly_shutdown_another_replica_resumes_the_tasks
}

fn assert_done(task: &Value) {
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
    let artifacts = task["artifacts"].as_array().unwrap();
    assert_eq!(artifacts.len(), 1);
    assert_eq!(artifacts[0]["parts"][0]["text"], "0 1 2 ", "{task}");
}

/// Lets a replica accept a message and crash at a point. Returns the id of the task.
fn crash(
    database: &TestDatabase,
    log: &Arc<SharedLog>,
    point: CrashPoint,
    params: &Value,
) -> Value {
    let process = Runtime::new().unwrap();
    let id = process.block_on(async {
        let replica = TestReplica::crashing(database, log, point).await;
        replica.allow_steps(3);
        let mut params = params.clone();
        params["configuration"] = json!({ "returnImmediately": true });
        let id = replica.result("SendMessage", params).await["task"]["id"].clone();
        with_timeout(replica.agent.reached.notified()).await;
        id
    });
    // Drop everything without any clean-up.
    drop(process);
    id
}

fn the_next_start_completes_a_task_after_a_crash_at_any_point(database: TestDatabase) {
    for point in POINTS {
        let log = Arc::<SharedLog>::default();
        let params = json!({ "message": message("steps 3") });
        let id = crash(&database, &log, point, &params);
        let process = Runtime::new().unwrap();
        process.block_on(async {
            let replica = TestReplica::start(&database, &log).await;
            replica.allow_steps(3);
            assert_done(&replica.wait_for_state(&id, "TASK_STATE_COMPLETED").await);
            // The client that got no answer retries.
            let again = replica.result("SendMessage", params).await;
            assert_eq!(again["task"]["id"], id);
            let params = json!({ "contextId": again["task"]["contextId"] });
            let list = replica.result("ListTasks", params).await;
            assert_eq!(list["totalSize"], 1);
            let starts: Vec<RunCause> = replica
                .agent
                .runs
                .lock()
                .unwrap()
                .iter()
                .map(|run| run.cause)
                .collect();
            let is_known = matches!(point, CrashPoint::Ended | CrashPoint::Reported);
            let expected = if is_known {
                vec![]
            } else {
                vec![RunCause::Resumed]
            };
            assert_eq!(starts, expected, "{point:?}");
        });
        let steps: Vec<usize> = log
            .steps
            .lock()
            .unwrap()
            .iter()
            .map(|(_, step)| *step)
            .collect();
        assert_eq!(steps, [0, 1, 2], "{point:?}");
        assert_eq!(log.started.lock().unwrap().len(), 1, "{point:?}");
    }
}

fn another_replica_completes_a_task_after_a_crash_and_its_subscribers_get_the_end(
    database: TestDatabase,
) {
    for point in POINTS {
        let log = Arc::<SharedLog>::default();
        let survivor = Runtime::new().unwrap();
        let replica = survivor.block_on(TestReplica::start(&database, &log));
        let params = json!({ "message": message("steps 3") });
        let crashing = Runtime::new().unwrap();
        let id = crashing.block_on(async {
            let replica = TestReplica::crashing(&database, &log, point).await;
            replica.allow_steps(3);
            let mut params = params.clone();
            params["configuration"] = json!({ "returnImmediately": true });
            let id = replica.result("SendMessage", params).await["task"]["id"].clone();
            with_timeout(replica.agent.reached.notified()).await;
            id
        });
        survivor.block_on(async {
            let events = match replica.task(&id).await["status"]["state"].as_str() {
                Some("TASK_STATE_COMPLETED") => None,
                _ => Some(replica.subscribe(&id).await),
            };
            drop(tokio::task::spawn_blocking(move || drop(crashing)).await);
            replica.allow_steps(3);
            assert_done(&replica.wait_for_state(&id, "TASK_STATE_COMPLETED").await);
            if let Some(events) = events {
                let events = events.remaining().await;
                let last = events.last().unwrap();
                let state = match last.get("task") {
                    Some(task) => &task["status"]["state"],
                    None => &last["statusUpdate"]["status"]["state"],
                };
                assert_eq!(state, "TASK_STATE_COMPLETED", "{point:?} {events:?}");
            }
            let again = replica.result("SendMessage", params).await;
            assert_eq!(again["task"]["id"], id);
        });
        let steps: Vec<usize> = log
            .steps
            .lock()
            .unwrap()
            .iter()
            .map(|(_, step)| *step)
            .collect();
        assert_eq!(steps, [0, 1, 2], "{point:?}");
    }
}

fn the_tasks_of_a_conversation_run_in_order_after_a_crash(database: TestDatabase) {
    let log = Arc::<SharedLog>::default();
    let process = Runtime::new().unwrap();
    let ids: Vec<Value> = process.block_on(async {
        let replica = TestReplica::start(&database, &log).await;
        let mut ids = Vec::new();
        for number in 0..5 {
            let mut message = message(&format!("{number}: steps 1"));
            message["contextId"] = json!("one");
            let params = json!({
                "message": message, "configuration": { "returnImmediately": true },
            });
            ids.push(replica.result("SendMessage", params).await["task"]["id"].clone());
            // Tasks are ordered by their times.
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
        replica.wait_for_state(&ids[0], "TASK_STATE_WORKING").await;
        ids
    });
    drop(process);
    let process = Runtime::new().unwrap();
    process.block_on(async {
        let replica = TestReplica::start(&database, &log).await;
        replica.allow_steps(5);
        for id in &ids {
            replica.wait_for_state(id, "TASK_STATE_COMPLETED").await;
        }
        assert_eq!(
            log.max_running.load(Ordering::SeqCst),
            1,
            "one task of a conversation runs at a time"
        );
        assert_eq!(replica.agent.runs.lock().unwrap().len(), 5);
    });
    let started: Vec<Value> = log
        .started
        .lock()
        .unwrap()
        .iter()
        .map(|id| json!(id))
        .collect();
    assert_eq!(started, ids);
}

fn many_interrupted_tasks_are_resumed_a_few_at_a_time(database: TestDatabase) {
    let log = Arc::<SharedLog>::default();
    let process = Runtime::new().unwrap();
    let ids: Vec<Value> = process.block_on(async {
        let replica = TestReplica::start(&database, &log).await;
        let mut ids = Vec::new();
        for _ in 0..60 {
            ids.push(replica.start_task("steps 1").await["id"].clone());
        }
        ids
    });
    drop(process);
    log.max_running.store(0, Ordering::SeqCst);
    let process = Runtime::new().unwrap();
    process.block_on(async {
        let mut settings = fast_settings();
        settings.limits.recovering = 7;
        let replica = TestReplica::with(&database, &log, None, settings, None).await;
        // New tasks have separate slots.
        let new = replica.start_task("steps 0").await["id"].clone();
        replica.wait_for_state(&new, "TASK_STATE_COMPLETED").await;
        replica.allow_steps(60);
        for id in &ids {
            replica.wait_for_state(id, "TASK_STATE_COMPLETED").await;
        }
        let again = replica.agent.runs.lock().unwrap();
        assert_eq!(
            again
                .iter()
                .filter(|run| run.cause == RunCause::Resumed)
                .count(),
            60
        );
    });
    let max_running = log.max_running.load(Ordering::SeqCst);
    assert!(
        (7..=8).contains(&max_running),
        "{max_running} ran at the same time"
    );
    assert_eq!(log.steps.lock().unwrap().len(), 60);
}

fn after_an_orderly_shutdown_another_replica_resumes_the_tasks(database: TestDatabase) {
    in_process(stops_in_order(database));
}

async fn stops_in_order(database: TestDatabase) {
    let log = Arc::<SharedLog>::default();
    let first = TestReplica::start(&database, &log).await;
    first.allow_steps(1);
    let running = first.start_task("steps 3").await;
    first.wait_for_steps(1).await;
    let mut queued = message("steps 1");
    queued["contextId"] = running["contextId"].clone();
    let params = json!({ "message": queued, "configuration": { "returnImmediately": true } });
    let queued = first.result("SendMessage", params).await["task"]["id"].clone();
    with_timeout(first.server.stop(Duration::ZERO)).await;

    let second = TestReplica::start(&database, &log).await;
    second.allow_steps(3);
    let running = &running["id"];
    assert_done(&second.wait_for_state(running, "TASK_STATE_COMPLETED").await);
    second.wait_for_state(&queued, "TASK_STATE_COMPLETED").await;
    assert_eq!(log.steps.lock().unwrap().len(), 4);
    assert_eq!(log.started.lock().unwrap().len(), 2);
}
