//! Streams of events: each event once and in order, across reconnects, slow readers and other processes.

use crate::sessions::ask;
use crate::support::TestApi;
use axum::body::{Body, BodyDataStream};
use axum::http::Request;
use axum::http::header::{ACCEPT, AUTHORIZATION};
use futures_util::StreamExt;
use lango_testkit::model::{ScriptedModel, say};
use serde_json::Value;
use std::time::Duration;
use tower::ServiceExt;

/// A reader of a stream.
struct Reader {
    body: BodyDataStream,
    text: String,
}

/// A frame of a stream: its name, its id and its data.
type Frame = (String, Option<u64>, Value);

impl Reader {
    async fn open(api: &TestApi, token: &str, path: &str, after: Option<u64>) -> Self {
        let mut request = Request::get(path)
            .header(AUTHORIZATION, format!("Bearer {token}"))
            .header(ACCEPT, "text/event-stream");
        if let Some(after) = after {
            request = request.header("last-event-id", after.to_string());
        }
        let request = request.body(Body::empty()).unwrap();
        let response = api.router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self {
            body: response.into_body().into_data_stream(),
            text: String::new(),
        }
    }

    /// Returns the next frame, without comments.
    async fn next(&mut self) -> Frame {
        loop {
            if let Some((frame, rest)) = self.text.split_once("\n\n") {
                let (frame, rest) = (frame.to_owned(), rest.to_owned());
                self.text = rest;
                if !frame.starts_with(':') {
                    return parse(&frame);
                }
                continue;
            }
            let next = tokio::time::timeout(Duration::from_secs(60), self.body.next()).await;
            let chunk = next
                .expect("a frame comes")
                .expect("the stream goes on")
                .unwrap();
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// Returns the `seq` of the next stored events.
    async fn seqs(&mut self, count: usize) -> Vec<u64> {
        let mut seqs = Vec::new();
        while seqs.len() < count {
            let (name, id, data) = self.next().await;
            if name == "event" {
                assert_eq!(id, data["seq"].as_u64());
                seqs.extend(id);
            }
        }
        seqs
    }

    async fn named(&mut self, wanted: &str) -> Value {
        loop {
            let (name, _, data) = self.next().await;
            if name == wanted {
                return data;
            }
        }
    }
}

fn parse(frame: &str) -> Frame {
    let field = |name: &str| {
        let mut lines = frame.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    };
    let data = serde_json::from_str(field("data").unwrap()).unwrap();
    let id = field("id").map(|id| id.parse().unwrap());
    (field("event").unwrap().to_owned(), id, data)
}

fn api() -> TestApi {
    TestApi::new(ScriptedModel::from_fn(|_| say("hi there")).with_chunk_size(2))
}

#[tokio::test]
async fn a_reader_sees_every_event_once_and_in_order_across_reconnects() {
    let api = api();
    let token = api.token("read run").await;
    let (session, _) = ask(&api, &token, None, "one").await;
    let path = format!("/api/sessions/{session}/events");
    let mut reader = Reader::open(&api, &token, &path, None).await;
    assert_eq!(reader.seqs(2).await, [1, 2]);
    drop(reader);
    ask(&api, &token, Some(&session), "two").await;
    let mut reader = Reader::open(&api, &token, &path, Some(2)).await;
    assert_eq!(reader.seqs(4).await, [3, 4, 5, 6]);
    ask(&api, &token, Some(&session), "three").await;
    assert_eq!(reader.seqs(3).await, [7, 8, 9]);
}

#[tokio::test]
async fn a_reader_that_falls_behind_misses_nothing() {
    let api = api();
    let token = api.token("read run").await;
    let (session, _) = ask(&api, &token, None, "one").await;
    let path = format!("/api/sessions/{session}/events");
    let mut reader = Reader::open(&api, &token, &path, Some(3)).await;
    // More events than the feed holds for a reader that does not read.
    for _ in 0..120 {
        ask(&api, &token, Some(&session), "more").await;
    }
    let expected: Vec<u64> = (4..=363).collect();
    assert_eq!(reader.seqs(360).await, expected);
}

#[tokio::test]
async fn drafts_are_streamed_and_never_counted_as_events() {
    let api = api();
    let token = api.token("read run").await;
    let (session, _) = ask(&api, &token, None, "one").await;
    let path = format!("/api/sessions/{session}/events");
    let mut reader = Reader::open(&api, &token, &path, Some(3)).await;
    let asked = ask(&api, &token, Some(&session), "two");
    let read = async {
        let mut draft = String::new();
        loop {
            let (name, id, data) = reader.next().await;
            match name.as_str() {
                "draft" => {
                    assert_eq!(id, None);
                    draft.push_str(data["text"].as_str().unwrap());
                }
                "event" if data["type"] == "turn.finished" => return draft,
                _ => {}
            }
        }
    };
    let (_, draft) = tokio::join!(asked, read);
    assert_eq!(draft, "hi there");
}

#[tokio::test]
async fn the_stream_of_a_page_has_sessions_approvals_and_the_open_session() {
    let api = api();
    let token = api.token("read run").await;
    let (session, _) = ask(&api, &token, None, "one").await;
    let path = format!("/api/events?session={session}&after=3");
    let mut reader = Reader::open(&api, &token, &path, None).await;
    assert_eq!(reader.named("approvals").await["count"], 0);
    ask(&api, &token, Some(&session), "two").await;
    assert_eq!(reader.seqs(3).await, [4, 5, 6]);
    let (other, _) = ask(&api, &token, None, "elsewhere").await;
    loop {
        let summary = reader.named("session").await;
        if summary["id"] == other.as_str() {
            break;
        }
    }
    let request = Request::delete(format!("/api/sessions/{other}"))
        .header(AUTHORIZATION, format!("Bearer {token}"))
        .body(Body::empty())
        .unwrap();
    assert_eq!(api.send(request).await.status, 204);
    assert_eq!(reader.named("deleted").await["id"], other.as_str());
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_when_its_token_is_revoked() {
    let api = api();
    let token = api.token("read run").await;
    let mut reader = Reader::open(&api, &token, "/api/events", None).await;
    assert_eq!(
        api.post(&token, "/api/sign-out", &Value::Null).await.status,
        204
    );
    reader.named("signed_out").await;
    assert!(reader.body.next().await.is_none());
}

#[tokio::test]
async fn one_stream_more_than_allowed_is_refused() {
    let api = api();
    let token = api.token("read").await;
    let mut open = Vec::new();
    for _ in 0..16 {
        open.push(Reader::open(&api, &token, "/api/events", None).await);
    }
    assert_eq!(api.get(&token, "/api/events").await.status, 429);
    open.pop();
    Reader::open(&api, &token, "/api/events", None).await;
}

#[tokio::test]
async fn a_cursor_beyond_the_end_is_accepted_and_waits() {
    let api = api();
    let token = api.token("read run").await;
    let (session, _) = ask(&api, &token, None, "one").await;
    let path = format!("/api/sessions/{session}/events");
    let mut reader = Reader::open(&api, &token, &path, Some(u64::MAX)).await;
    let next = tokio::time::timeout(Duration::from_millis(200), reader.next()).await;
    assert!(next.is_err(), "{next:?}");
}

#[tokio::test]
async fn the_stream_of_a_session_ends_when_the_session_is_deleted() {
    let api = api();
    let token = api.token("read run").await;
    let (session, _) = ask(&api, &token, None, "one").await;
    let path = format!("/api/sessions/{session}/events");
    let mut reader = Reader::open(&api, &token, &path, None).await;
    assert_eq!(reader.seqs(3).await, [1, 2, 3]);
    let request = Request::delete(format!("/api/sessions/{session}"))
        .header(AUTHORIZATION, format!("Bearer {token}"))
        .body(Body::empty())
        .unwrap();
    assert_eq!(api.send(request).await.status, 204);
    assert_eq!(reader.named("deleted").await["id"], session.as_str());
    assert!(reader.body.next().await.is_none());
}

#[tokio::test]
async fn a_stream_that_is_refused_starts_no_turn() {
    let api = api();
    let token = api.token("read run").await;
    let mut open = Vec::new();
    for _ in 0..16 {
        open.push(Reader::open(&api, &token, "/api/events", None).await);
    }
    let input = serde_json::json!({
        "threadId": "t", "runId": "r", "messages": [{ "id": "m", "role": "user", "content": "hi" }],
        "tools": [], "context": [], "state": {}, "forwardedProps": {},
    });
    let chat = serde_json::json!({ "model": "lango", "stream": true, "messages": [{ "role": "user", "content": "hi" }] });
    let response = serde_json::json!({ "model": "lango", "stream": true, "input": "hi" });
    for (path, body) in [
        ("/v1/chat/completions", chat),
        ("/v1/responses", response),
        ("/agui", input),
    ] {
        let refused = api.post(&token, path, &body).await;
        assert_eq!(refused.status, 429, "{path}: {}", refused.body);
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    let listed = api.get(&token, "/api/sessions").await.ok();
    assert_eq!(listed["sessions"], serde_json::json!([]));
}
