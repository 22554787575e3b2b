//! The limits: each one is enforced with an error, and other requests are not affected.

use super::support::{TestServer, message, read, reason, reply, sent, settings};
use futures_util::StreamExt as _;
use reqwest::Method;
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused_in_the_format_of_its_binding() {
    let mut settings = settings();
    settings.limits.body_bytes = 10_000;
    let server = TestServer::with(settings).await;
    let long = json!({ "message": message(&"x".repeat(10_000)) });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": long });
    let response = sent(server.request(Method::POST, "/"), &call).await;
    assert_eq!(response.status(), 413);
    let answer = read(response).await;
    assert_eq!(
        (&answer["error"]["code"], &answer["id"]),
        (&json!(-32600), &json!(null))
    );
    let (status, body) = server
        .http(Method::POST, "/message:send", Some(long.clone()))
        .await;
    assert_eq!(
        (status.as_u16(), &body["error"]["code"]),
        (413, &json!(413))
    );
    // Also without a `Content-Length` header.
    let bytes = long.to_string().into_bytes();
    let chunks = futures_util::stream::iter([Ok::<_, std::io::Error>(bytes)]);
    let request = server.request(Method::POST, "/message:send");
    let request = request.header("content-type", "application/json");
    let response = request
        .body(reqwest::Body::wrap_stream(chunks))
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 413);
    let fitting = json!({ "message": message(&"x".repeat(9_000)) });
    assert_eq!(
        server
            .http(Method::POST, "/message:send", Some(fitting))
            .await
            .0,
        200
    );
}

#[tokio::test]
async fn only_a_few_large_bodies_are_in_memory_at_the_same_time() {
    let mut settings = settings();
    settings.limits.small_body_bytes = 2_000;
    settings.limits.large_bodies = 1;
    settings.limits.body_timeout = Duration::from_millis(2_000);
    let server = TestServer::with(settings).await;
    let large = json!({ "message": message(&"x".repeat(5_000)) });
    let whole = |text: &serde_json::Value| text.to_string().into_bytes();
    let bytes = whole(&large)[..3_000].to_vec();
    // The first request sends enough bytes to count as large, and then stalls.
    let slow = futures_util::stream::iter([Ok::<_, std::io::Error>(bytes)])
        .chain(futures_util::stream::pending());
    let request = server.request(Method::POST, "/message:send");
    let request = request.header("content-type", "application/json");
    let slow = tokio::spawn(request.body(reqwest::Body::wrap_stream(slow)).send());
    tokio::time::sleep(Duration::from_millis(300)).await;
    let (status, body) = server
        .http(Method::POST, "/message:send", Some(large.clone()))
        .await;
    assert_eq!(status, 429, "{body}");
    assert_eq!(
        server.send("small").await["status"]["state"],
        "TASK_STATE_COMPLETED"
    );
    assert_eq!(slow.await.unwrap().unwrap().status(), 408);
    // Its slot is free again.
    let (status, body) = server
        .http(Method::POST, "/message:send", Some(large))
        .await;
    assert_eq!(status, 200, "{body}");
}

#[tokio::test]
async fn a_body_that_does_not_arrive_times_out() {
    let mut settings = settings();
    settings.limits.body_timeout = Duration::from_millis(30);
    let server = TestServer::with(settings).await;
    for path in ["/", "/message:send"] {
        let chunks = futures_util::stream::pending::<Result<Vec<u8>, std::io::Error>>();
        let request = server.request(Method::POST, path);
        let request = request.header("content-type", "application/json");
        let request = request.body(reqwest::Body::wrap_stream(chunks));
        let response = super::support::with_timeout(request.send()).await.unwrap();
        assert_eq!(response.status(), 408, "{path}");
    }
}

#[tokio::test]
async fn a_full_server_refuses_new_tasks_until_a_slot_is_free() {
    let mut settings = settings();
    settings.limits.running = 2;
    settings.limits.queue = 0;
    let server = TestServer::with(settings).await;
    let one = server.start_task("hold").await["id"].clone();
    let two = server.start_task("hold").await["id"].clone();
    let params = json!({ "message": message("x") });
    let error = server.error("SendMessage", params.clone()).await;
    assert_eq!(
        (&error["code"], reason(&error["data"])),
        (&json!(-32000), "SERVER_BUSY")
    );
    let response = sent(server.request(Method::POST, "/message:send"), &params).await;
    assert_eq!(response.status(), 429);
    assert_eq!(response.headers()["retry-after"], "1");
    assert_eq!(
        server.result("ListTasks", json!({})).await["totalSize"],
        2,
        "a refused message creates no task"
    );
    server.agent.gate.add_permits(2);
    server.wait_for_state(&one, "TASK_STATE_COMPLETED").await;
    server.wait_for_state(&two, "TASK_STATE_COMPLETED").await;
    // The slot of a run is free once the run has returned, a moment after it reported its end.
    super::support::with_timeout(async {
        while server
            .rpc("SendMessage", params.clone())
            .await
            .get("error")
            .is_some()
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_message_beyond_the_limit_waits_for_a_slot() {
    let mut settings = settings();
    settings.limits.running = 1;
    let server = TestServer::with(settings).await;
    let one = server.start_task("hold").await["id"].clone();
    let waiting = server.send("x");
    tokio::pin!(waiting);
    let is_early = tokio::time::timeout(Duration::from_millis(100), &mut waiting).await;
    assert!(is_early.is_err(), "the answer comes after the run");
    server.agent.gate.add_permits(1);
    let task = super::support::with_timeout(waiting).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    server.wait_for_state(&one, "TASK_STATE_COMPLETED").await;
}

#[tokio::test]
async fn a_message_that_waits_too_long_for_a_slot_is_refused_and_creates_no_task() {
    let mut settings = settings();
    settings.limits.running = 1;
    settings.limits.queue_timeout = Duration::from_millis(50);
    let server = TestServer::with(settings).await;
    server.start_task("hold").await;
    let params = json!({ "message": message("x") });
    let response = sent(server.request(Method::POST, "/message:send"), &params).await;
    assert_eq!(response.status(), 429);
    assert_eq!(response.headers()["retry-after"], "1");
    assert_eq!(server.result("ListTasks", json!({})).await["totalSize"], 1);
}

#[tokio::test]
async fn a_second_message_of_a_conversation_is_accepted_immediately_and_uses_no_slot() {
    let mut settings = settings();
    settings.limits.running = 2;
    let server = TestServer::with(settings).await;
    let first = server.start_task("hold").await;
    let mut second = message("hold");
    second["contextId"] = first["contextId"].clone();
    let params = json!({ "message": second, "configuration": { "returnImmediately": true } });
    let second = server.result("SendMessage", params).await["task"].clone();
    assert_eq!(second["status"]["state"], "TASK_STATE_SUBMITTED");
    let other = super::support::with_timeout(server.send("x")).await;
    assert_eq!(
        other["status"]["state"], "TASK_STATE_COMPLETED",
        "another conversation has a slot"
    );
    let cancelled = server
        .result("CancelTask", json!({ "id": second["id"] }))
        .await;
    assert_eq!(cancelled["status"]["state"], "TASK_STATE_CANCELED");
    server.agent.gate.add_permits(1);
    server
        .wait_for_state(&first["id"], "TASK_STATE_COMPLETED")
        .await;
}

#[tokio::test]
async fn streams_beyond_the_limit_are_refused() {
    let mut settings = settings();
    settings.limits.streams = 1;
    let server = TestServer::with(settings).await;
    let id = server.send("ask what?").await["id"].clone();
    let mut open = server.subscribe(&id).await;
    open.next_event().await;
    let error = server.error("SubscribeToTask", json!({ "id": id })).await;
    assert_eq!(reason(&error["data"]), "SERVER_BUSY");
    let error = server
        .error("SendStreamingMessage", json!({ "message": message("x") }))
        .await;
    assert_eq!(reason(&error["data"]), "SERVER_BUSY");
    assert_eq!(server.result("ListTasks", json!({})).await["totalSize"], 1);
}

#[tokio::test]
async fn a_task_at_its_size_limit_can_still_end() {
    let mut settings = settings();
    settings.limits.task_bytes = 50_000;
    let server = TestServer::with(settings).await;
    let task = server.send("big 100").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    let stored = task["artifacts"][0]["parts"][0]["text"]
        .as_str()
        .unwrap()
        .len();
    assert!((40_000..50_000).contains(&stored), "{stored}");
    let refused = task["status"]["message"]["parts"][0]["text"]
        .as_str()
        .unwrap();
    assert_eq!(refused, format!("{} refused", 100 - stored / 1000));
    // Messages count too.
    let id = server.send("ask what?").await["id"].clone();
    let params = json!({ "message": reply(&"x".repeat(60_000), &id) });
    let error = server.error("SendMessage", params).await;
    assert_eq!(error["data"][1]["fieldViolations"][0]["field"], "message");
    assert_eq!(
        server.task(&id).await["status"]["state"],
        "TASK_STATE_INPUT_REQUIRED"
    );
}

#[tokio::test]
async fn a_long_history_keeps_the_first_and_the_latest_messages() {
    let mut settings = settings();
    settings.limits.history = 5;
    let server = TestServer::with(settings).await;
    let id = server.send("ask 0").await["id"].clone();
    for at in 1..10 {
        let params = json!({ "message": reply(&format!("ask {at}"), &id) });
        server.result("SendMessage", params).await;
    }
    let history = server.task(&id).await["history"].clone();
    let texts: Vec<_> = history
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["parts"][0]["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["ask 0", "7", "ask 8", "8", "ask 9"]);
}
