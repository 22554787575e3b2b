//! Tasks that are taken back, and servers that stop.

use super::support::{TestServer, message, reason, reply, sent, settings, soon};
use lango_a2a::server::{AgentStatus, Report};
use reqwest::Method;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::Duration;

#[tokio::test]
async fn a_running_task_is_told_to_stop_and_is_cancelled_when_it_has() {
    let server = TestServer::start().await;
    let id = server.begin("until-cancelled").await["id"].clone();
    server.until(&id, "TASK_STATE_WORKING").await;
    let events = server.subscribe(&id).await;
    let task = server.result("CancelTask", json!({ "id": id })).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_CANCELED");
    assert_eq!(server.agent.returned.load(Ordering::SeqCst), 1);
    assert_eq!(server.task(&id).await, task);
    let events = events.rest().await;
    assert_eq!(
        events.last().unwrap()["statusUpdate"]["status"],
        task["status"]
    );
}

#[tokio::test]
async fn a_job_that_does_not_stop_is_ended() {
    let mut settings = settings();
    settings.limits.stop_timeout = Duration::from_millis(30);
    let server = TestServer::with(settings).await;
    let id = server.begin("stubborn").await["id"].clone();
    server.until(&id, "TASK_STATE_WORKING").await;
    let path = format!("/tasks/{}:cancel", id.as_str().unwrap());
    let (status, task) = server.http(Method::POST, &path, Some(json!({}))).await;
    assert_eq!(
        (status.as_u16(), &task["status"]["state"]),
        (200, &json!("TASK_STATE_CANCELED"))
    );
    assert_eq!(server.agent.returned.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_waiting_task_is_taken_back_with_the_agent() {
    let server = TestServer::start().await;
    let id = server.send("authorise").await["id"].clone();
    let task = server.result("CancelTask", json!({ "id": id })).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_CANCELED");
    assert_eq!(
        *server.agent.taken_back.lock().unwrap(),
        [id.as_str().unwrap()]
    );
}

#[tokio::test]
async fn what_has_ended_or_is_not_there_cannot_be_cancelled() {
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
    let error = server
        .error("CancelTask", json!({ "id": "nobody's" }))
        .await;
    assert_eq!(error["code"], -32001);
    let (status, body) = server
        .http(Method::POST, "/tasks/nobody:cancel", None)
        .await;
    assert_eq!(
        (status.as_u16(), &body["error"]["status"]),
        (404, &json!("NOT_FOUND"))
    );
}

#[tokio::test]
async fn a_stopping_server_lets_work_end_and_takes_no_new_one() {
    let server = TestServer::start().await;
    let mut events = server.stream("hold").await;
    let id = events.one().await["task"]["id"].clone();
    let waiting = server.send("ask what?").await["id"].clone();
    let parked = server.subscribe(&waiting).await;
    let stopping = tokio::spawn({
        let server = server.server.clone();
        async move { server.stop(Duration::from_secs(60)).await }
    });
    let refused = soon(async {
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
    soon(stopping).await.unwrap();
    let states: Vec<Value> = events
        .rest()
        .await
        .iter()
        .map(|event| event["statusUpdate"]["status"]["state"].clone())
        .collect();
    assert_eq!(states, ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]);
    assert_eq!(
        parked.rest().await.len(),
        1,
        "its stream closes though the task waits"
    );
    assert_eq!(
        server.task(&id).await["status"]["state"],
        "TASK_STATE_COMPLETED"
    );
}

#[tokio::test]
async fn work_that_outlasts_the_grace_is_told_to_stop_and_left_for_the_next_start() {
    let mut settings = settings();
    settings.limits.stop_timeout = Duration::from_millis(100);
    let server = TestServer::with(settings).await;
    let gentle = server.begin("until-cancelled").await["id"].clone();
    let stubborn = server.begin("stubborn").await["id"].clone();
    server.until(&gentle, "TASK_STATE_WORKING").await;
    server.until(&stubborn, "TASK_STATE_WORKING").await;
    let events = server.subscribe(&stubborn).await;
    soon(server.server.stop(Duration::from_millis(10))).await;
    assert_eq!(server.agent.returned.load(Ordering::SeqCst), 1);
    assert_eq!(events.rest().await.len(), 1);
    for id in [&gentle, &stubborn] {
        let task = server.task(id).await;
        assert_eq!(
            task["status"]["state"], "TASK_STATE_WORKING",
            "nobody says what is not known"
        );
    }
}

#[tokio::test]
async fn of_a_job_that_says_nothing_the_agent_is_asked_before_it_has_failed() {
    let server = TestServer::start().await;
    let stands = |standing| *server.agent.standing.lock().unwrap() = standing;
    for word in ["nothing", "panic"] {
        stands(AgentStatus::Changed(vec![Report::Completed("done".into())]));
        let task = server.send(word).await;
        assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{word}");

        stands(AgentStatus::Unknown);
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
async fn a_task_that_is_held_is_left_and_looked_at_again() {
    let mut settings = settings();
    settings.limits.poll_every = Duration::from_millis(20);
    let server = TestServer::with(settings).await;
    let stands = |standing| *server.agent.standing.lock().unwrap() = standing;
    stands(AgentStatus::Busy);
    let looks = || server.agent.looks.load(Ordering::SeqCst);

    // Nobody listens.
    let id = server.begin("nothing").await["id"].clone();
    soon(async {
        while looks() < 2 {
            let task = server.task(&id).await;
            assert_eq!(task["status"]["state"], "TASK_STATE_SUBMITTED");
        }
    })
    .await;
    stands(AgentStatus::Changed(vec![Report::Completed("done".into())]));
    assert_eq!(
        server.task(&id).await["status"]["state"],
        "TASK_STATE_COMPLETED"
    );

    // Somebody does, and in the end nothing is known of it.
    stands(AgentStatus::Busy);
    let mut events = server.stream("nothing").await;
    events.one().await;
    let before = looks();
    soon(async {
        while looks() < before + 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    stands(AgentStatus::Unknown);
    let rest = events.rest().await;
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert_eq!(
        rest[0]["statusUpdate"]["status"]["state"],
        "TASK_STATE_FAILED"
    );
}

#[tokio::test]
async fn a_task_that_the_agent_cannot_take_back_is_not_cancelled() {
    let server = TestServer::start().await;
    *server.agent.keeps.lock().unwrap() = Some("somebody is at it".to_owned());
    let waiting = server.send("authorise").await["id"].clone();
    let error = server.error("CancelTask", json!({ "id": waiting })).await;
    assert_eq!(
        (&error["code"], reason(&error["data"])),
        (&json!(-32002), "TASK_NOT_CANCELABLE")
    );
    let said = error["message"].as_str().unwrap();
    assert!(said.contains("somebody is at it"), "{said}");
    assert_eq!(
        server.task(&waiting).await["status"]["state"],
        "TASK_STATE_AUTH_REQUIRED"
    );

    // Nor one whose run had stopped: what became of it counts.
    let running = server.begin("until-cancelled").await["id"].clone();
    server.until(&running, "TASK_STATE_WORKING").await;
    let news = vec![Report::Completed("too late".into())];
    *server.agent.standing.lock().unwrap() = AgentStatus::Changed(news);
    let error = server.error("CancelTask", json!({ "id": running })).await;
    assert_eq!(error["code"], -32002);
    assert_eq!(
        server.task(&running).await["status"]["state"],
        "TASK_STATE_COMPLETED"
    );

    *server.agent.keeps.lock().unwrap() = None;
    let task = server.result("CancelTask", json!({ "id": waiting })).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_CANCELED");
}
