//! Streams of turns in which nothing happens for a while.

use crate::support::TestApi;
use axum::body::{Body, BodyDataStream};
use axum::http::Request;
use futures_util::StreamExt;
use lango_core::{Limits, TokenStore};
use lango_testkit::model::{ScriptedModel, call, delegate_and_finish};
use lango_testkit::tool::CountingTool;
use serde_json::{Value, json};
use tower::ServiceExt;

/// A turn whose tool never returns.
fn stuck() -> TestApi {
    let replies = [
        delegate_and_finish("operator", "read it"),
        call("fs_read", json!({ "path": "a" })),
    ];
    let reader = CountingTool::new("fs_read").never_returning();
    TestApi::with_reader(ScriptedModel::replies(replies), Limits::default(), reader)
}

async fn open(api: &TestApi, token: &str, path: &str) -> BodyDataStream {
    let body: Value = match path {
        "/agui" => {
            json!({ "threadId": "t", "runId": "r", "messages": [{ "id": "m", "role": "user", "content": "hi" }] })
        }
        "/v1/responses" => json!({ "input": "hi", "stream": true }),
        _ => json!({ "messages": [{ "role": "user", "content": "hi" }], "stream": true }),
    };
    let request = Request::post(path)
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json")
        .body(Body::from(body.to_string()))
        .unwrap();
    let response = api.router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200);
    response.into_body().into_data_stream()
}

/// Reads until this text comes; none if the stream ends before.
async fn read_until(stream: &mut BodyDataStream, text: &str) -> Option<()> {
    loop {
        let frame = stream.next().await?.unwrap();
        if String::from_utf8_lossy(&frame).contains(text) {
            return Some(());
        }
    }
}

const PATHS: [&str; 3] = ["/v1/chat/completions", "/v1/responses", "/agui"];

#[tokio::test(start_paused = true)]
async fn a_stream_in_which_nothing_happens_is_kept_alive() {
    for path in PATHS {
        let api = stuck();
        let token = api.token("run").await;
        let mut stream = open(&api, &token, path).await;
        for _ in 0..3 {
            assert_eq!(read_until(&mut stream, ":\n\n").await, Some(()), "{path}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_when_its_token_is_revoked() {
    for (path, end) in PATHS
        .into_iter()
        .zip(["\"error\"", "response.failed", "RUN_ERROR"])
    {
        let api = stuck();
        let token = api.token("run").await;
        let mut stream = open(&api, &token, path).await;
        let id = api.store.tokens().await.unwrap()[0].id.clone();
        assert!(api.store.revoke_token(&id).await.unwrap());
        assert_eq!(read_until(&mut stream, end).await, Some(()), "{path}");
        assert_eq!(read_until(&mut stream, "anything").await, None, "{path}");
    }
}
