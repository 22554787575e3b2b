//! Streams: their first event, their updates, when they close, and that they are independent of each other.

use super::support::{Events, TestServer, message, normalize, reply, sent, settings};
use lango_a2a::server::AgentStatus;
use reqwest::Method;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::Duration;

fn state(event: &Value) -> &str {
    let status = event.get("task").or(event.get("statusUpdate"));
    status.map_or("", |it| it["status"]["state"].as_str().unwrap())
}

fn chunk(event: &Value) -> &str {
    event["artifactUpdate"]["artifact"]["parts"][0]["text"]
        .as_str()
        .unwrap_or_default()
}

fn status(state: &str, text: Option<&str>) -> Value {
    let mut status = json!({ "state": state, "timestamp": "TIME" });
    if let Some(text) = text {
        status["message"] = json!({
            "messageId": "MESSAGE", "contextId": "CONTEXT", "taskId": "TASK",
            "role": "ROLE_AGENT", "parts": [{ "text": text }],
        });
    }
    json!({ "statusUpdate": { "taskId": "TASK", "contextId": "CONTEXT", "status": status } })
}

fn artifact(text: &str, append: bool) -> Value {
    json!({ "artifactUpdate": {
        "taskId": "TASK", "contextId": "CONTEXT",
        "artifact": { "artifactId": "a", "parts": [{ "text": text }] },
        "append": append, "lastChunk": false,
    } })
}

#[tokio::test]
async fn a_stream_has_the_task_its_updates_and_its_end_over_both_bindings() {
    let server = TestServer::start().await;
    server.agent.gate.add_permits(4);
    let expected = [
        json!({ "task": {
            "id": "TASK", "contextId": "CONTEXT",
            "status": { "state": "TASK_STATE_SUBMITTED", "timestamp": "TIME" },
            "history": [{
                "messageId": "MESSAGE", "contextId": "CONTEXT", "taskId": "TASK",
                "role": "ROLE_USER", "parts": [{ "text": "steps 2" }],
            }],
        } }),
        status("TASK_STATE_WORKING", Some("on it")),
        artifact("0 ", false),
        artifact("1 ", true),
        status("TASK_STATE_COMPLETED", Some("stepped")),
    ];
    let events = server.stream("steps 2").await.remaining().await;
    assert_eq!(
        events.into_iter().map(normalize).collect::<Vec<_>>(),
        expected
    );

    let request = server.request(Method::POST, "/message:stream");
    let response = sent(request, &json!({ "message": message("steps 2") })).await;
    let events = Events::of(response, false).remaining().await;
    let id = events[0]["task"]["id"].clone();
    assert_eq!(
        events.into_iter().map(normalize).collect::<Vec<_>>(),
        expected
    );
    // The chunks are stored as one text.
    let artifacts = server.task(&id).await["artifacts"].clone();
    assert_eq!(
        artifacts,
        json!([{ "artifactId": "a", "parts": [{ "text": "0 1 " }] }])
    );
}

#[tokio::test]
async fn metadata_belongs_to_the_status_message_or_else_to_the_task() {
    let server = TestServer::start().await;
    let events = server.stream("mark ann").await.remaining().await;
    let working = &events[1]["statusUpdate"];
    assert_eq!(
        working["status"]["message"]["metadata"],
        json!({ "step": 1 })
    );
    assert!(working.get("metadata").is_none());
    let completed = &events[2]["statusUpdate"];
    assert_eq!(completed["metadata"], json!({ "author": "ann" }));
    assert!(completed["status"].get("message").is_none());
    let task = server.task(&events[0]["task"]["id"]).await;
    assert_eq!(task["metadata"], json!({ "author": "ann" }));
}

#[tokio::test]
async fn a_stream_closes_when_the_task_asks_the_client_and_the_reply_opens_another() {
    let server = TestServer::start().await;
    let events = server.stream("ask what?").await.remaining().await;
    let states: Vec<_> = events.iter().map(state).collect();
    assert_eq!(
        states,
        ["TASK_STATE_SUBMITTED", "TASK_STATE_INPUT_REQUIRED"]
    );
    let params = json!({ "message": reply("this", &events[0]["task"]["id"]) });
    let events = server
        .rpc_stream("SendStreamingMessage", params)
        .await
        .remaining()
        .await;
    let states: Vec<_> = events.iter().map(state).collect();
    assert_eq!(states, ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]);
}

#[tokio::test]
async fn a_stream_stays_open_while_the_task_waits_for_an_approval() {
    let server = TestServer::start().await;
    let mut events = server.stream("authorise").await;
    let id = events.next_event().await["task"]["id"].clone();
    assert_eq!(
        state(&events.next_event().await),
        "TASK_STATE_AUTH_REQUIRED"
    );
    let reports = vec![
        lango_a2a::server::Report::Working("allowed".into()),
        lango_a2a::server::Report::Completed("done".into()),
    ];
    *server.agent.status.lock().unwrap() = AgentStatus::Changed(reports);
    server.task(&id).await;
    let rest = events.remaining().await;
    let states: Vec<_> = rest.iter().map(state).collect();
    assert_eq!(states, ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]);
}

#[tokio::test]
async fn subscribers_of_a_waiting_task_see_changes_by_other_processes() {
    let mut settings = settings();
    settings.limits.poll_every = Duration::from_millis(20);
    let server = TestServer::with(settings).await;
    let id = server.send("authorise").await["id"].clone();
    let mut events = server.subscribe(&id).await;
    assert_eq!(
        state(&events.next_event().await),
        "TASK_STATE_AUTH_REQUIRED"
    );
    let reports = vec![lango_a2a::server::Report::Completed(
        "done elsewhere".into(),
    )];
    *server.agent.status.lock().unwrap() = AgentStatus::Changed(reports);
    let rest = events.remaining().await;
    assert_eq!(
        rest.iter().map(state).collect::<Vec<_>>(),
        ["TASK_STATE_COMPLETED"]
    );
}

#[tokio::test]
async fn a_subscription_starts_with_the_current_task() {
    let server = TestServer::start().await;
    let id = server.start_task("steps 3").await["id"].clone();
    server.agent.gate.add_permits(1);
    let before = server.wait_for_state(&id, "TASK_STATE_WORKING").await;
    assert_eq!(before["status"]["message"]["parts"][0]["text"], "on it");
    let path = format!("/tasks/{}:subscribe", id.as_str().unwrap());
    let mut all = Vec::new();
    for method in [Method::POST, Method::GET] {
        let response = server.request(method, &path).send().await.unwrap();
        all.push(Events::of(response, false));
    }
    all.push(server.subscribe(&id).await);
    let mut texts = Vec::new();
    for events in &mut all {
        let first = events.next_event().await;
        assert_eq!(state(&first), "TASK_STATE_WORKING");
        texts.push(
            first["task"]["artifacts"][0]["parts"][0]["text"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        );
    }
    server.agent.gate.add_permits(2);
    for (events, mut text) in all.into_iter().zip(texts) {
        let rest = events.remaining().await;
        assert_eq!(state(rest.last().unwrap()), "TASK_STATE_COMPLETED");
        rest.iter().for_each(|event| text.push_str(chunk(event)));
        assert_eq!(
            text, "0 1 2 ",
            "nothing is missing between the task and its updates"
        );
    }
}

#[tokio::test]
async fn a_waiting_task_can_be_subscribed_to_and_an_ended_one_cannot() {
    let server = TestServer::start().await;
    let id = server.send("ask what?").await["id"].clone();
    let mut events = server.subscribe(&id).await;
    assert_eq!(
        state(&events.next_event().await),
        "TASK_STATE_INPUT_REQUIRED"
    );
    server
        .result("SendMessage", json!({ "message": reply("this", &id) }))
        .await;
    let rest = events.remaining().await;
    let states: Vec<_> = rest.iter().map(state).collect();
    assert_eq!(states, ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]);

    let error = server.error("SubscribeToTask", json!({ "id": id })).await;
    assert_eq!(error["code"], -32004);
    let path = format!("/tasks/{}:subscribe", id.as_str().unwrap());
    let (status, _) = server.http(Method::POST, &path, None).await;
    assert_eq!(status, 400);
    let error = server
        .error("SubscribeToTask", json!({ "id": "unknown" }))
        .await;
    assert_eq!(error["code"], -32001);
}

#[tokio::test]
async fn all_streams_of_a_task_have_the_same_events_even_if_one_closes() {
    let server = TestServer::start().await;
    let mut first = server.stream("steps 40").await;
    let id = first.next_event().await["task"]["id"].clone();
    assert_eq!(state(&first.next_event().await), "TASK_STATE_WORKING");
    let mut second = server.subscribe(&id).await;
    let mut third = server.subscribe(&id).await;
    second.next_event().await;
    third.next_event().await;
    server.agent.gate.add_permits(5);
    third.next_event().await;
    drop(third);
    server.agent.gate.add_permits(35);
    let (first, second) = (first.remaining().await, second.remaining().await);
    assert_eq!(first, second);
    assert_eq!(first.len(), 41);
    let text: String = first.iter().map(chunk).collect();
    let expected: String = (0..40).map(|at| format!("{at} ")).collect();
    assert_eq!(text, expected);
}

#[tokio::test]
async fn a_run_continues_after_all_clients_have_disconnected() {
    let server = TestServer::start().await;
    let mut events = server.stream("hold").await;
    let id = events.next_event().await["task"]["id"].clone();
    drop(events);
    let params = json!({ "message": message("hold") });
    let waiting = server.rpc("SendMessage", params);
    let waited = tokio::time::timeout(Duration::from_millis(100), waiting).await;
    assert!(waited.is_err(), "it waits for the gate");
    server.agent.gate.add_permits(2);
    server.wait_for_state(&id, "TASK_STATE_COMPLETED").await;
    super::support::with_timeout(async {
        while server.agent.returned.load(Ordering::SeqCst) < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_slow_subscriber_gets_the_whole_task_and_does_not_delay_the_run() {
    let mut settings = settings();
    settings.limits.max_lag = 8;
    let server = TestServer::with(settings).await;
    // The client reads nothing while 2000 updates of 20 kB arrive, which is more than the connection can buffer.
    let id = server.start_task("hold-then-replace 2000").await["id"].clone();
    let slow = server.subscribe(&id).await;
    server.agent.gate.add_permits(1);
    let task = server.wait_for_state(&id, "TASK_STATE_COMPLETED").await;
    let events = slow.remaining().await;
    let snapshots = events.iter().filter(|event| event.get("task").is_some());
    assert!(
        snapshots.count() >= 2,
        "the first one, and at least one instead of the missed updates"
    );
    assert!(events.len() < 2000);
    assert_eq!(state(events.last().unwrap()), "TASK_STATE_COMPLETED");
    // At the end, a client that follows the stream has the same artifact as the task.
    let mut artifact = Value::Null;
    for event in &events {
        if let Some(task) = event.get("task") {
            artifact = task["artifacts"][0].clone();
        }
        if let Some(update) = event.get("artifactUpdate") {
            artifact = update["artifact"].clone();
        }
    }
    assert_eq!(artifact, task["artifacts"][0]);
}

#[tokio::test]
async fn a_text_of_many_chunks_is_stored_only_a_few_times() {
    let server = TestServer::start().await;
    let task = server.send("chunks 2000").await;
    let expected: String = (0..2000).map(|at| format!("{at} ")).collect();
    assert_eq!(task["artifacts"][0]["parts"], json!([{ "text": expected }]));
    // The first write, the last one, and at most one every half second in between, for up to a minute on a slow
    // machine.
    let writes = server.tasks.writes.load(Ordering::SeqCst);
    assert!((2..120).contains(&writes), "{writes}");
}

#[tokio::test]
async fn a_quiet_stream_sends_keep_alive_comments() {
    let mut settings = settings();
    settings.limits.keep_alive = Duration::from_millis(20);
    let server = TestServer::with(settings).await;
    let id = server.send("ask what?").await["id"].clone();
    let mut events = server.subscribe(&id).await;
    assert_eq!(
        state(&events.next_event().await),
        "TASK_STATE_INPUT_REQUIRED"
    );
    assert_eq!(events.next_event().await, Value::Null);
    assert_eq!(events.next_event().await, Value::Null);
}
