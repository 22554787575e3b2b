//! Cancelled tasks, and servers that shut down.

use super::support::{TestServer, message, reason, reply, sent, settings, with_timeout};
use lango_a2a::server::{AgentStatus, Report};
use reqwest::Method;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::Duration;

#[tokio::test]
async fn a_running_task_is_cancelled_once_its_run_has_stopped() {
    let server = TestServer::start().await;
    let id = server.start_task("until-cancelled").await["id"].clone();
    server.wait_for_state(&id, "TASK_STATE_WORKING").await;
    let events = server.subscribe(&id).await;
    let task = server.result("CancelTask", json!({ "id": id })).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_CANCELED");
    assert_eq!(server.agent.returned.load(Ordering::SeqCst), 1);
    assert_eq!(server.task(&id).await, task);
    let events = events.remaining().await;
    assert_eq!(
        events.last().unwrap()["statusUpdate"]["status"],
        task["status"]
    );
}

#[tokio::test]
async fn a_run_that_does_not_stop_is_aborted() {
    let mut settings = settings();
    settings.limits.stop_timeout = Duration::from_millis(30);
    let server = TestServer::with(settings).await;
    let id = server.start_task("stubborn").await["id"].clone();
    server.wait_for_state(&id, "TASK_STATE_WORKING").await;
    let path = format!("/tasks/{}:cancel", id.as_str().unwrap());
    let (status, task) = server.http(Method::POST, &path, Some(json!({}))).await;
    assert_eq!(
        (status.as_u16(), &task["status"]["state"]),
        (200, &json!("TASK_STATE_CANCELED"))
    );
    assert_eq!(server.agent.returned.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_waiting_task_is_cancelled_in_the_agent() {
    let server = TestServer::start().await;
    let id = server.send("authorise").await["id"].clone();
    let task = server.result("CancelTask", json!({ "id": id })).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_CANCELED");
    assert_eq!(
        *server.agent.cancelled.lock().unwrap(),
        [id.as_str().unwrap()]
    );
}

#[tokio::test]
async fn a_task_that_has_ended_or_does_not_exist_cannot_be_cancelled() {
    let server = TestServer::start().await;
    let id = server.send("one").await["id"].clone();
    let error = server.error("CancelTask", json!({ "id": id })).await;
    assert_eq!(
        (&error["code"], reason(&error["data"])),
        (&json!(-32002), "TASK_NOT_CANCELABLE")
    );
    let path = format!("/tasks/{}:cancel", id.as_str().unwrap());
    let (status, body) = server.http(Method::POST, &path, None).await;
    assert_eq!(
        (status.as_u16(), &body["error"]["status"]),
        (400, &json!("FAILED_PRECONDITION"))
    );
    let error = server.error("CancelTask", json!({ "id": "unknown" })).await;
    assert_eq!(error["code"], -32001);
    let (status, body) = server
        .http(Method::POST, "/tasks/unknown:cancel", None)
        .await;
    assert_eq!(
        (status.as_u16(), &body["error"]["status"]),
        (404, &json!("NOT_FOUND"))
    );
}

#[tokio::test]
async fn a_stopping_server_lets_runs_finish_and_refuses_new_ones() {
    let server = TestServer::start().await;
    let mut events = server.stream("hold").await;
    let id = events.next_event().await["task"]["id"].clone();
    let waiting = server.send("ask what?").await["id"].clone();
    let parked = server.subscribe(&waiting).await;
    let stopping = tokio::spawn({
        let server = server.server.clone();
        async move { server.stop(Duration::from_secs(60)).await }
    });
    let refused = with_timeout(async {
        loop {
            let request = server.request(Method::POST, "/message:send");
            let response = sent(request, &json!({ "message": message("one") })).await;
            if response.status() != 200 {
                return response;
            }
        }
    })
    .await;
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.headers()["retry-after"], "1");
    let params = json!({ "message": reply("x", &waiting) });
    let error = server.error("SendMessage", params).await;
    assert_eq!(
        (&error["code"], reason(&error["data"])),
        (&json!(-32000), "SERVER_STOPPING")
    );
    server.agent.gate.add_permits(1);
    with_timeout(stopping).await.unwrap();
    let states: Vec<Value> = events
        .remaining()
        .await
        .iter()
        .map(|event| event["statusUpdate"]["status"]["state"].clone())
        .collect();
    assert_eq!(states, ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]);
    assert_eq!(
        parked.remaining().await.len(),
        1,
        "its stream closes although the task waits"
    );
    assert_eq!(
        server.task(&id).await["status"]["state"],
        "TASK_STATE_COMPLETED"
    );
}

#[tokio::test]
async fn runs_that_do_not_finish_in_time_are_stopped_and_left_for_the_next_start() {
    let mut settings = settings();
    settings.limits.stop_timeout = Duration::from_millis(100);
    let server = TestServer::with(settings).await;
    let gentle = server.start_task("until-cancelled").await["id"].clone();
    let stubborn = server.start_task("stubborn").await["id"].clone();
    server.wait_for_state(&gentle, "TASK_STATE_WORKING").await;
    server.wait_for_state(&stubborn, "TASK_STATE_WORKING").await;
    let events = server.subscribe(&stubborn).await;
    with_timeout(server.server.stop(Duration::from_millis(10))).await;
    assert_eq!(server.agent.returned.load(Ordering::SeqCst), 1);
    assert_eq!(events.remaining().await.len(), 1);
    for id in [&gentle, &stubborn] {
        let task = server.task(id).await;
        assert_eq!(
            task["status"]["state"], "TASK_STATE_WORKING",
            "the outcome is not known, so the task stays unfinished"
        );
    }
}

#[tokio::test]
async fn a_task_whose_run_reports_nothing_fails_only_if_the_agent_does_not_know_it() {
    let server = TestServer::start().await;
    let set_status = |status| *server.agent.status.lock().unwrap() = status;
    for word in ["nothing", "panic"] {
        set_status(AgentStatus::Changed(vec![Report::Completed("done".into())]));
        let task = server.send(word).await;
        assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{word}");

        set_status(AgentStatus::Unknown);
        let task = server.send(word).await;
        assert_eq!(task["status"]["state"], "TASK_STATE_FAILED", "{word}");
        let why = task["status"]["message"]["parts"][0]["text"]
            .as_str()
            .unwrap();
        assert!(why.contains("unknown"), "{why}");
        assert!(!why.contains("again"), "{why}");
    }
}

#[tokio::test]
async fn a_busy_task_stays_unchanged_and_is_checked_again() {
    let mut settings = settings();
    settings.limits.poll_every = Duration::from_millis(20);
    let server = TestServer::with(settings).await;
    let set_status = |status| *server.agent.status.lock().unwrap() = status;
    set_status(AgentStatus::Busy);
    let status_queries = || server.agent.status_queries.load(Ordering::SeqCst);

    // Without subscribers.
    let id = server.start_task("nothing").await["id"].clone();
    with_timeout(async {
        while status_queries() < 2 {
            let task = server.task(&id).await;
            assert_eq!(task["status"]["state"], "TASK_STATE_SUBMITTED");
        }
    })
    .await;
    set_status(AgentStatus::Changed(vec![Report::Completed("done".into())]));
    assert_eq!(
        server.task(&id).await["status"]["state"],
        "TASK_STATE_COMPLETED"
    );

    // With a subscriber; in the end the agent does not know the task.
    set_status(AgentStatus::Busy);
    let mut events = server.stream("nothing").await;
    events.next_event().await;
    let before = status_queries();
    with_timeout(async {
        while status_queries() < before + 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    set_status(AgentStatus::Unknown);
    let rest = events.remaining().await;
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert_eq!(
        rest[0]["statusUpdate"]["status"]["state"],
        "TASK_STATE_FAILED"
    );
}

#[tokio::test]
async fn a_task_that_the_agent_cannot_cancel_is_not_cancelled() {
    let server = TestServer::start().await;
    *server.agent.cancel_error.lock().unwrap() = Some("another process runs it".to_owned());
    let waiting = server.send("authorise").await["id"].clone();
    let error = server.error("CancelTask", json!({ "id": waiting })).await;
    assert_eq!(
        (&error["code"], reason(&error["data"])),
        (&json!(-32002), "TASK_NOT_CANCELABLE")
    );
    let text = error["message"].as_str().unwrap();
    assert!(text.contains("another process runs it"), "{text}");
    assert_eq!(
        server.task(&waiting).await["status"]["state"],
        "TASK_STATE_AUTH_REQUIRED"
    );

    // A task whose run has stopped has the status that the agent reports.
    let running = server.start_task("until-cancelled").await["id"].clone();
    server.wait_for_state(&running, "TASK_STATE_WORKING").await;
    let reports = vec![Report::Completed("too late".into())];
    *server.agent.status.lock().unwrap() = AgentStatus::Changed(reports);
    let error = server.error("CancelTask", json!({ "id": running })).await;
    assert_eq!(error["code"], -32002);
    assert_eq!(
        server.task(&running).await["status"]["state"],
        "TASK_STATE_COMPLETED"
    );

    *server.agent.cancel_error.lock().unwrap() = None;
    let task = server.result("CancelTask", json!({ "id": waiting })).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_CANCELED");
}
