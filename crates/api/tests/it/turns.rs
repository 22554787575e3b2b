//! Turns over the API: started once, queued, cancelled, and with files.

use crate::sessions::ask;
use crate::support::TestApi;
use lango_testkit::model::{ScriptedModel, delegate, say};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[tokio::test]
async fn a_repeated_request_is_the_same_turn() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let api = TestApi::new(ScriptedModel::from_fn(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        say("hi")
    }));
    let token = api.token("read run").await;
    let body = json!({ "text": "hello" });
    let mut seen = Vec::new();
    for _ in 0..5 {
        let headers = [("idempotency-key", "7f1c")];
        let started = api.post_with(&token, "/api/turns", &headers, &body).await;
        assert_eq!(started.status, 202, "{}", started.body);
        let started = started.json();
        seen.push((started["session"].clone(), started["turn"].clone()));
    }
    seen.dedup();
    assert_eq!(seen.len(), 1);
    let session = seen[0].0.as_str().unwrap();
    ask(&api, &token, Some(session), "again").await;
    assert_eq!(calls.load(Ordering::SeqCst), 2, "one call for each turn");
    let other = api.token_of("bob", "read run").await;
    let headers = [("idempotency-key", "7f1c")];
    let started = api
        .post_with(&other, "/api/turns", &headers, &body)
        .await
        .json();
    assert_ne!(started["session"], seen[0].0, "keys of users are apart");
}

#[tokio::test]
async fn a_key_of_another_message_is_refused() {
    let api = TestApi::new(ScriptedModel::from_fn(|_| say("hi")));
    let token = api.token("read run").await;
    let (session, _) = ask(&api, &token, None, "first").await;
    let headers = [("idempotency-key", "k1")];
    let send = |text: &str| {
        let body = json!({ "session": session, "text": text });
        let (api, token) = (&api, &token);
        async move { api.post_with(token, "/api/turns", &headers, &body).await }
    };
    let started = send("second").await;
    assert_eq!(started.status, 202, "{}", started.body);
    let other = send("third").await;
    assert_eq!(other.status, 422, "{}", other.body);
    let detail = other.json()["detail"].to_string();
    assert!(detail.contains("belongs to another message"), "{detail}");
    assert_eq!(send("second").await.status, 202);
}

#[tokio::test]
async fn a_waiting_turn_can_be_cancelled() {
    let api = TestApi::new(ScriptedModel::replies([
        delegate("operator", "write"),
        lango_testkit::model::call("fs_write", json!({ "path": "a" })),
    ]));
    let token = api.token("read run").await;
    let started = api
        .post(&token, "/api/turns", &json!({ "text": "write a" }))
        .await
        .json();
    let (session, turn) = (
        started["session"].as_str().unwrap(),
        started["turn"].as_str().unwrap(),
    );
    let pending = || async { api.get(&token, "/api/approvals").await.ok()["count"].clone() };
    while pending().await != 1 {
        tokio::task::yield_now().await;
    }
    let path = format!("/api/sessions/{session}/turns/{turn}/cancel");
    let mut cancelled = api.post(&token, &path, &Value::Null).await;
    while cancelled.status == 409 {
        // The turn is being parked.
        tokio::task::yield_now().await;
        cancelled = api.post(&token, &path, &Value::Null).await;
    }
    assert_eq!(cancelled.status, 202, "{}", cancelled.body);
    while pending().await != 0 {
        tokio::task::yield_now().await;
    }
    let events = api
        .get(&token, &format!("/api/sessions/{session}/turns/{turn}"))
        .await
        .ok();
    let last = events["events"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["outcome"], "cancelled", "{last}");
    let again = api.post(&token, &path, &Value::Null).await;
    assert_eq!(again.status, 409, "it has ended");
}

#[tokio::test]
async fn files_of_a_message_are_checked_and_shown() {
    let api = TestApi::new(ScriptedModel::from_fn(|_| say("seen")));
    let token = api.token("read run").await;
    // The smallest PNG: one pixel.
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let file =
        |data: &str| json!({ "text": "look", "attachments": [{ "name": "a.png", "data": data }] });
    let broken = api.post(&token, "/api/turns", &file("no base64!")).await;
    assert_eq!(broken.status, 422, "{}", broken.body);
    let started = api.post(&token, "/api/turns", &file(png)).await;
    assert_eq!(started.status, 202, "{}", started.body);
    let session = started.json()["session"].as_str().unwrap().to_owned();
    let events = api
        .get(&token, &format!("/api/sessions/{session}/events"))
        .await
        .ok();
    let attachment = &events["events"][0]["attachments"][0];
    let digest = attachment["digest"].as_str().unwrap();
    let path = format!("/api/attachments/{session}/{digest}");
    let request = axum::http::Request::get(&path)
        .header("authorization", format!("Bearer {token}"))
        .body(axum::body::Body::empty())
        .unwrap();
    let response = tower::ServiceExt::oneshot(api.router.clone(), request)
        .await
        .unwrap();
    assert_eq!(response.headers()["content-type"], "image/png");
    assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    let other = api.token_of("bob", "read").await;
    assert_eq!(api.get(&other, &path).await.status, 404);
}

#[tokio::test]
async fn a_turn_that_waits_for_a_deleted_session_does_not_create_it_again() {
    let api = TestApi::new(ScriptedModel::from_fn(|_| say("hi")));
    let token = api.token("read run").await;
    let (session, _) = ask(&api, &token, None, "one").await;
    let id = lango_core::SessionId::from(session.as_str());
    let lease = lango_core::SessionStore::acquire(&*api.store, &id, lango_core::BusyPolicy::Refuse)
        .await
        .unwrap();
    let body = json!({ "session": session, "text": "two" });
    let started = api.post(&token, "/api/turns", &body).await.json();
    assert_eq!(started["status"], "queued", "{started}");
    drop(lease);
    let mut deleted = 409;
    for _ in 0..200 {
        let request = axum::http::Request::delete(format!("/api/sessions/{session}"))
            .header("authorization", format!("Bearer {token}"));
        deleted = api
            .send(request.body(axum::body::Body::empty()).unwrap())
            .await
            .status;
        if deleted != 409 {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(deleted, 204);
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    let shown = api.get(&token, &format!("/api/sessions/{session}")).await;
    assert_eq!(shown.status, 404, "{}", shown.body);
}
