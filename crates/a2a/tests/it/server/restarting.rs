//! Restarts of a server, and failures of its store.

use super::memory::{MemoryTasks, SystemClock};
use super::support::{
    TestServer, message, reason, recover_continuously, reply, settings, with_timeout,
};
use lango_a2a::server::{AgentStatus, ArtifactChunk, Report, RunCause};
use lango_core::{TaskInsertOutcome, TaskStore};
use lango_store::Store;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Stops a server, and returns its tasks.
async fn stop(server: TestServer) -> Arc<MemoryTasks> {
    server.server.stop(Duration::ZERO).await;
    server.tasks
}

#[tokio::test]
async fn tasks_survive_a_restart() {
    let before = TestServer::start().await;
    let ended = before.send("artifact forty-two").await;
    let waiting = before.send("ask what?").await;
    let after = TestServer::with_tasks(stop(before).await, settings()).await;
    assert_eq!(after.server.recover().await.unwrap().settled, 0);
    assert_eq!(after.task(&ended["id"]).await, ended);
    assert_eq!(after.task(&waiting["id"]).await, waiting);
    let params = json!({ "message": reply("this", &waiting["id"]) });
    let answered = after.result("SendMessage", params).await["task"].clone();
    assert_eq!(answered["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(answered["history"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn tasks_in_the_database_survive_a_restart_and_are_listed_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        let root = lango_core::AgentName::new("lango");
        let store = Store::open_sqlite(folder.path().join("lango.db"), root).unwrap();
        let clock = Arc::new(SystemClock);
        TestServer::with_store(Arc::new(store), Arc::default(), clock, settings())
    };
    let before = start().await;
    let mut made = Vec::new();
    for text in ["artifact one", "ask what?", "chunks 300", "fail four"] {
        made.insert(0, before.send(text).await);
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    let list = before
        .result(
            "ListTasks",
            json!({ "includeArtifacts": true, "pageSize": 3 }),
        )
        .await;
    before.server.stop(Duration::ZERO).await;
    drop(before);

    let after = start().await;
    assert_eq!(after.server.recover().await.unwrap().settled, 0);
    for task in &made {
        assert_eq!(after.task(&task["id"]).await, *task);
    }
    let params = json!({ "includeArtifacts": true, "pageSize": 3 });
    assert_eq!(after.result("ListTasks", params).await, list);
    let ids =
        |tasks: &[serde_json::Value]| tasks.iter().map(|it| it["id"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(list["tasks"].as_array().unwrap()), ids(&made[..3]));
    let params = json!({ "pageToken": list["nextPageToken"] });
    let rest = after.result("ListTasks", params).await;
    assert_eq!(ids(rest["tasks"].as_array().unwrap()), ids(&made[3..]));
    let params = json!({ "message": reply("this", &made[2]["id"]) });
    let answered = after.result("SendMessage", params).await;
    assert_eq!(answered["task"]["status"]["state"], "TASK_STATE_COMPLETED");
}

#[tokio::test]
async fn interrupted_tasks_are_resumed_unless_the_agent_reports_another_status() {
    let mut settings = settings();
    settings.limits.stop_timeout = Duration::from_millis(20);
    let before = TestServer::with(settings.clone()).await;
    let ids = ["stubborn one", "stubborn two", "stubborn three"];
    let mut started = Vec::new();
    for text in ids {
        let id = before.start_task(text).await["id"].clone();
        before.wait_for_state(&id, "TASK_STATE_WORKING").await;
        started.push(id);
    }
    let tasks = stop(before).await;

    let other = TestServer::with_tasks(Arc::clone(&tasks), settings.clone()).await;
    *other.agent.status.lock().unwrap() = AgentStatus::Busy;
    let recovered = other.server.recover().await.unwrap();
    assert_eq!((recovered.resumed, recovered.skipped), (0, 3));

    for status in [AgentStatus::Unknown, AgentStatus::Interrupted] {
        let after = TestServer::with_tasks(Arc::clone(&tasks), settings.clone()).await;
        *after.agent.status.lock().unwrap() = status;
        let recovered = after.server.recover().await.unwrap();
        assert_eq!((recovered.resumed, recovered.settled), (3, 0));
        // They run here now, so another scan finds nothing.
        assert_eq!(after.server.recover().await.unwrap(), Default::default());
        with_timeout(async {
            while after.agent.runs.lock().unwrap().len() < 3 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        for run in after.agent.runs.lock().unwrap().iter() {
            assert_eq!(run.cause, RunCause::Resumed);
            let index = started
                .iter()
                .position(|id| *id == json!(run.task))
                .unwrap();
            assert_eq!(run.message.text(), Some(ids[index]));
        }
        after.server.stop(Duration::ZERO).await;
    }

    let last = TestServer::with_tasks(tasks, settings).await;
    let reports = vec![Report::AuthRequired("may I?".into())];
    *last.agent.status.lock().unwrap() = AgentStatus::Changed(reports);
    // The agent reports this only once. For the other tasks nothing has changed.
    assert_eq!(last.server.recover().await.unwrap().settled, 1);
    assert_eq!(last.agent.runs.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn a_task_whose_process_ends_every_time_is_not_resumed_forever() {
    let mut settings = settings();
    settings.limits.max_attempts = 3;
    let tasks = Arc::<MemoryTasks>::default();
    let first = TestServer::with_tasks(Arc::clone(&tasks), settings.clone()).await;
    // This run reports nothing and never returns.
    let id = first.start_task("ask-in-vain").await["id"].clone();
    // The server does not fail a task that has started: the agent has to decide that.
    for round in 0..9 {
        let next = TestServer::with_tasks(Arc::clone(&tasks), settings.clone()).await;
        let (status, expected) = match round {
            0..3 => (AgentStatus::Unknown, (1, 0)),
            3..8 => (AgentStatus::Interrupted, (1, 0)),
            _ => (AgentStatus::Unknown, (0, 1)),
        };
        *next.agent.status.lock().unwrap() = status;
        let recovered = next.server.recover().await.unwrap();
        assert_eq!((recovered.resumed, recovered.settled), expected, "{round}");
    }
    let last = TestServer::with_tasks(tasks, settings).await;
    let task = last.task(&id).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_FAILED");
    let why = task["status"]["message"]["parts"][0]["text"].as_str();
    assert!(why.unwrap().contains("resumed 3 times"), "{why:?}");
}

#[tokio::test]
async fn a_task_whose_run_panics_every_time_is_not_resumed_forever() {
    let mut settings = settings();
    settings.limits.max_attempts = 3;
    settings.limits.recover_every = Duration::from_millis(20);
    let server = TestServer::with(settings).await;
    *server.agent.status.lock().unwrap() = AgentStatus::Interrupted;
    recover_continuously(&server.server);
    let id = server.start_task("work-then-panic").await["id"].clone();
    let task = server.wait_for_state(&id, "TASK_STATE_FAILED").await;
    let why = task["status"]["message"]["parts"][0]["text"].as_str();
    assert!(why.unwrap().contains("crashed in 3 attempts"), "{why:?}");
    assert_eq!(server.agent.runs.lock().unwrap().len(), 4);
}

#[tokio::test]
async fn reading_a_waiting_task_asks_the_agent_for_its_status() {
    let server = TestServer::start().await;
    let id = server.send("authorise").await["id"].clone();
    let set_report =
        |report| *server.agent.status.lock().unwrap() = AgentStatus::Changed(vec![report]);
    set_report(Report::Working("allowed".into()));
    assert_eq!(
        server.task(&id).await["status"]["state"],
        "TASK_STATE_WORKING"
    );
    let parts = vec![a2a::Part::text("half")];
    set_report(Report::Artifact(ArtifactChunk::whole("a", parts)));
    server.task(&id).await;
    let other = TestServer::with_tasks(Arc::clone(&server.tasks), settings()).await;
    assert_eq!(
        other.task(&id).await["artifacts"][0]["parts"][0]["text"],
        "half"
    );
    set_report(Report::Completed("done elsewhere".into()));
    let error = server.error("CancelTask", json!({ "id": id })).await;
    assert_eq!(error["code"], -32002);
    assert_eq!(
        server.task(&id).await["status"]["state"],
        "TASK_STATE_COMPLETED"
    );
}

#[tokio::test]
async fn a_status_that_cannot_be_stored_is_not_published() {
    let mut settings = settings();
    settings.limits.poll_every = Duration::from_millis(20);
    let server = TestServer::with(settings).await;
    let mut events = server.stream("hold").await;
    let id = events.next_event().await["task"]["id"].clone();
    assert_eq!(
        events.next_event().await["statusUpdate"]["status"]["state"],
        "TASK_STATE_WORKING"
    );
    server.tasks.fails.store(true, Ordering::SeqCst);
    server.agent.gate.add_permits(1);
    with_timeout(async {
        while server.agent.returned.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let params = json!({ "message": message("x") });
    let error = server.error("SendMessage", params).await;
    assert_eq!(
        (&error["code"], reason(&error["data"])),
        (&json!(-32000), "STORE_UNAVAILABLE")
    );
    assert!(!error.to_string().contains("secret"), "{error}");
    let (status, _) = server.get("/tasks").await;
    assert_eq!(status, 503);
    assert_eq!(
        server.task(&id).await["status"]["state"],
        "TASK_STATE_WORKING",
        "an end that is not stored is not visible"
    );
    // The end is published as soon as it can be stored.
    server.tasks.fails.store(false, Ordering::SeqCst);
    let rest = events.remaining().await;
    assert_eq!(rest.len(), 1);
    assert_eq!(
        rest[0]["statusUpdate"]["status"]["state"],
        "TASK_STATE_COMPLETED"
    );
    assert_eq!(
        server.task(&id).await["status"]["state"],
        "TASK_STATE_COMPLETED"
    );
}

#[tokio::test]
async fn a_question_that_could_not_be_stored_does_not_prevent_the_end() {
    let server = TestServer::start().await;
    let mut events = server.stream("ask-in-vain").await;
    let id = events.next_event().await["task"]["id"].clone();
    server.tasks.fails.store(true, Ordering::SeqCst);
    server.agent.gate.add_permits(1);
    with_timeout(async {
        while server.tasks.failures.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    server.tasks.fails.store(false, Ordering::SeqCst);
    server.agent.gate.add_permits(1);
    let rest = events.remaining().await;
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert_eq!(
        rest[0]["statusUpdate"]["status"]["message"]["parts"][0]["text"],
        "without asking"
    );
    let task = server.task(&id).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(task["history"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn the_end_of_a_task_is_accepted_even_if_earlier_reports_are_refused() {
    let mut settings = settings();
    settings.limits.task_bytes = 10_000;
    let server = TestServer::with(settings).await;
    let id = server.send("authorise").await["id"].clone();
    let long = vec![a2a::Part::text("x".repeat(20_000))];
    let reports = vec![
        Report::Artifact(ArtifactChunk::whole("long", long)),
        Report::Artifact(ArtifactChunk::whole("empty", Vec::new())),
        Report::Artifact(ArtifactChunk::whole(
            "short",
            vec![a2a::Part::text("short")],
        )),
        Report::Completed("done".into()),
    ];
    *server.agent.status.lock().unwrap() = AgentStatus::Changed(reports);
    let task = server.task(&id).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(task["artifacts"].as_array().unwrap().len(), 1);
    assert_eq!(task["artifacts"][0]["artifactId"], "short");
}

#[tokio::test]
async fn recovery_skips_busy_and_damaged_tasks() {
    let tasks = Arc::<MemoryTasks>::default();
    let record = |at: usize, body: String| lango_core::TaskRecord {
        id: format!("t-{at}").into(),
        user: lango_core::UserId::new("ann"),
        context: format!("c-{at}").into(),
        state: "working".into(),
        is_running: true,
        updated: lango_core::Timestamp(at as u64),
        body: body.into(),
        revision: 1,
        attempts: 0,
    };
    // More tasks than recovery handles concurrently.
    for at in 0..100 {
        let body = match at % 10 {
            0 => "{".to_owned(),
            _ => json!({ "id": format!("t-{at}"), "contextId": format!("c-{at}"),
                "status": { "state": "TASK_STATE_WORKING" } })
            .to_string(),
        };
        let opened = tasks.insert(record(at, body), &format!("m-{at}")).await;
        assert_eq!(opened.unwrap(), TaskInsertOutcome::New);
    }
    let server = TestServer::with_tasks(Arc::clone(&tasks), settings()).await;
    *server.agent.status.lock().unwrap() = AgentStatus::Busy;
    let first = server.server.recover().await.unwrap();
    assert_eq!((first.settled, first.skipped), (0, 90));
    let mut damaged: Vec<_> = (0..10).map(|at| format!("t-{}", at * 10)).collect();
    damaged.sort();
    assert_eq!(first.damaged, damaged);
    assert_eq!(
        server.task(&json!("t-1")).await["status"]["state"],
        "TASK_STATE_WORKING"
    );

    let done = vec![Report::Completed("elsewhere".into())];
    *server.agent.status.lock().unwrap() = AgentStatus::Changed(done);
    assert_eq!(
        server.task(&json!("t-1")).await["status"]["state"],
        "TASK_STATE_COMPLETED"
    );
    *server.agent.status.lock().unwrap() = AgentStatus::Unknown;
    let second = server.server.recover().await.unwrap();
    assert_eq!((second.settled, second.skipped), (89, 0));
    assert_eq!(second.damaged, damaged);
    assert_eq!(
        server.task(&json!("t-2")).await["status"]["state"],
        "TASK_STATE_FAILED"
    );
}
