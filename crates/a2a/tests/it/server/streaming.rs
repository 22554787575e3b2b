//! Streams: what they begin with, what follows, when they close, and that they do not disturb each other.

use super::support::{Events, TestServer, golden, message, reply, sent, settings};
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
async fn a_stream_is_the_task_its_updates_and_its_end_over_both_bindings() {
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
    let events = server.stream("steps 2").await.rest().await;
    assert_eq!(events.into_iter().map(golden).collect::<Vec<_>>(), expected);

    let request = server.request(Method::POST, "/message:stream");
    let response = sent(request, &json!({ "message": message("steps 2") })).await;
    let events = Events::of(response, false).rest().await;
    let id = events[0]["task"]["id"].clone();
    assert_eq!(events.into_iter().map(golden).collect::<Vec<_>>(), expected);
    // What came in pieces is kept as one text.
    let kept = server.task(&id).await["artifacts"].clone();
    assert_eq!(
        kept,
        json!([{ "artifactId": "a", "parts": [{ "text": "0 1 " }] }])
    );
}

#[tokio::test]
async fn what_is_for_machines_comes_with_the_words_or_with_the_task() {
    let server = TestServer::start().await;
    let events = server.stream("mark ann").await.rest().await;
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
async fn a_stream_closes_when_the_client_is_asked_and_the_answer_opens_another() {
    let server = TestServer::start().await;
    let events = server.stream("ask what?").await.rest().await;
    let states: Vec<_> = events.iter().map(state).collect();
    assert_eq!(
        states,
        ["TASK_STATE_SUBMITTED", "TASK_STATE_INPUT_REQUIRED"]
    );
    let params = json!({ "message": reply("this", &events[0]["task"]["id"]) });
    let events = server
        .rpc_stream("SendStreamingMessage", params)
        .await
        .rest()
        .await;
    let states: Vec<_> = events.iter().map(state).collect();
    assert_eq!(states, ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]);
}

#[tokio::test]
async fn a_stream_stays_open_while_somebody_elsewhere_has_to_allow_something() {
    let server = TestServer::start().await;
    let mut events = server.stream("authorise").await;
    let id = events.one().await["task"]["id"].clone();
    assert_eq!(state(&events.one().await), "TASK_STATE_AUTH_REQUIRED");
    let news = vec![
        lango_a2a::server::Report::Working("allowed".into()),
        lango_a2a::server::Report::Completed("done".into()),
    ];
    *server.agent.standing.lock().unwrap() = AgentStatus::Changed(news);
    server.task(&id).await;
    let rest = events.rest().await;
    let states: Vec<_> = rest.iter().map(state).collect();
    assert_eq!(states, ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]);
}

#[tokio::test]
async fn what_another_process_made_of_a_waiting_task_reaches_its_subscribers() {
    let mut settings = settings();
    settings.limits.poll_every = Duration::from_millis(20);
    let server = TestServer::with(settings).await;
    let id = server.send("authorise").await["id"].clone();
    let mut events = server.subscribe(&id).await;
    assert_eq!(state(&events.one().await), "TASK_STATE_AUTH_REQUIRED");
    let news = vec![lango_a2a::server::Report::Completed(
        "done elsewhere".into(),
    )];
    *server.agent.standing.lock().unwrap() = AgentStatus::Changed(news);
    let rest = events.rest().await;
    assert_eq!(
        rest.iter().map(state).collect::<Vec<_>>(),
        ["TASK_STATE_COMPLETED"]
    );
}

#[tokio::test]
async fn a_subscription_begins_with_the_task_as_it_is() {
    let server = TestServer::start().await;
    let id = server.begin("steps 3").await["id"].clone();
    server.agent.gate.add_permits(1);
    let before = server.until(&id, "TASK_STATE_WORKING").await;
    assert_eq!(before["status"]["message"]["parts"][0]["text"], "on it");
    let path = format!("/tasks/{}:subscribe", id.as_str().unwrap());
    let mut all = Vec::new();
    for method in [Method::POST, Method::GET] {
        let response = server.request(method, &path).send().await.unwrap();
        all.push(Events::of(response, false));
    }
    all.push(server.subscribe(&id).await);
    let mut seen = Vec::new();
    for events in &mut all {
        let first = events.one().await;
        assert_eq!(state(&first), "TASK_STATE_WORKING");
        seen.push(
            first["task"]["artifacts"][0]["parts"][0]["text"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        );
    }
    server.agent.gate.add_permits(2);
    for (events, mut text) in all.into_iter().zip(seen) {
        let rest = events.rest().await;
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
    assert_eq!(state(&events.one().await), "TASK_STATE_INPUT_REQUIRED");
    server
        .result("SendMessage", json!({ "message": reply("this", &id) }))
        .await;
    let rest = events.rest().await;
    let states: Vec<_> = rest.iter().map(state).collect();
    assert_eq!(states, ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]);

    let error = server.error("SubscribeToTask", json!({ "id": id })).await;
    assert_eq!(error["code"], -32004);
    let path = format!("/tasks/{}:subscribe", id.as_str().unwrap());
    let (status, _) = server.http(Method::POST, &path, None).await;
    assert_eq!(status, 400);
    let error = server
        .error("SubscribeToTask", json!({ "id": "nobody's" }))
        .await;
    assert_eq!(error["code"], -32001);
}

#[tokio::test]
async fn all_streams_of_a_task_see_the_same_and_closing_one_disturbs_nobody() {
    let server = TestServer::start().await;
    let mut first = server.stream("steps 40").await;
    let id = first.one().await["task"]["id"].clone();
    assert_eq!(state(&first.one().await), "TASK_STATE_WORKING");
    let mut second = server.subscribe(&id).await;
    let mut third = server.subscribe(&id).await;
    second.one().await;
    third.one().await;
    server.agent.gate.add_permits(5);
    third.one().await;
    drop(third);
    server.agent.gate.add_permits(35);
    let (first, second) = (first.rest().await, second.rest().await);
    assert_eq!(first, second);
    assert_eq!(first.len(), 41);
    let text: String = first.iter().map(chunk).collect();
    let expected: String = (0..40).map(|at| format!("{at} ")).collect();
    assert_eq!(text, expected);
}

#[tokio::test]
async fn work_goes_on_when_every_client_has_gone_away() {
    let server = TestServer::start().await;
    let mut events = server.stream("hold").await;
    let id = events.one().await["task"]["id"].clone();
    drop(events);
    let params = json!({ "message": message("hold") });
    let waiting = server.rpc("SendMessage", params);
    let waited = tokio::time::timeout(Duration::from_millis(100), waiting).await;
    assert!(waited.is_err(), "it waits for the gate");
    server.agent.gate.add_permits(2);
    server.until(&id, "TASK_STATE_COMPLETED").await;
    super::support::soon(async {
        while server.agent.returned.load(Ordering::SeqCst) < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_subscriber_that_cannot_keep_up_is_given_the_whole_task_and_holds_nobody_up() {
    let mut settings = settings();
    settings.limits.max_lag = 8;
    let server = TestServer::with(settings).await;
    // Nothing is read from the stream while two thousand updates of twenty kilobytes come: more than a connection holds.
    let id = server.begin("hold-then-replace 2000").await["id"].clone();
    let slow = server.subscribe(&id).await;
    server.agent.gate.add_permits(1);
    let task = server.until(&id, "TASK_STATE_COMPLETED").await;
    let events = slow.rest().await;
    let snapshots = events.iter().filter(|event| event.get("task").is_some());
    assert!(
        snapshots.count() >= 2,
        "the first, and at least one in place of what was missed"
    );
    assert!(events.len() < 2000);
    assert_eq!(state(events.last().unwrap()), "TASK_STATE_COMPLETED");
    // Whoever follows the stream has in the end what the task has.
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
async fn a_text_of_many_pieces_is_written_down_a_few_times_only() {
    let server = TestServer::start().await;
    let task = server.send("chunks 2000").await;
    let expected: String = (0..2000).map(|at| format!("{at} ")).collect();
    assert_eq!(task["artifacts"][0]["parts"], json!([{ "text": expected }]));
    // Opened, ended, and at most every half second in between: a minute on the slowest machine.
    let writes = server.tasks.writes.load(Ordering::SeqCst);
    assert!((2..120).contains(&writes), "{writes}");
}

#[tokio::test]
async fn a_quiet_stream_says_that_it_is_alive() {
    let mut settings = settings();
    settings.limits.keep_alive = Duration::from_millis(20);
    let server = TestServer::with(settings).await;
    let id = server.send("ask what?").await["id"].clone();
    let mut events = server.subscribe(&id).await;
    assert_eq!(state(&events.one().await), "TASK_STATE_INPUT_REQUIRED");
    assert_eq!(events.one().await, Value::Null);
    assert_eq!(events.one().await, Value::Null);
}
