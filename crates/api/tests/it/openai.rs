//! Answers, streams, approvals and formats of `/v1/`.

use crate::support::{MODEL, TestApi, TestResponse};
use lango_core::{Limits, ModelReply};
use lango_testkit::model::{ScriptedModel, call, calls, delegate, delegate_and_finish, say};
use serde_json::{Value, json};

const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";

fn chat(text: &str) -> Value {
    json!({ "model": "lango", "messages": [{ "role": "user", "content": text }] })
}

fn streamed(mut body: Value) -> Value {
    body["stream"] = json!(true);
    body
}

/// Returns the concatenated text of a stream of chunks.
fn chat_text(chunks: &[Value]) -> String {
    let deltas = chunks
        .iter()
        .map(|chunk| &chunk["choices"][0]["delta"]["content"]);
    deltas.filter_map(Value::as_str).collect()
}

fn types(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect()
}

/// A model that delegates a task which calls a tool that asks for approval.
fn writing() -> Vec<ModelReply> {
    vec![
        delegate_and_finish("operator", "write it"),
        call("fs_write", json!({ "path": "a" })),
        say("It is written."),
    ]
}

#[tokio::test]
async fn the_models_are_lango_and_the_configured_one() {
    let api = TestApi::new(ScriptedModel::replies([]));
    let token = api.token("read").await;
    let models = api.get(&token, "/v1/models").await.ok();
    let ids: Vec<_> = models["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| &model["id"])
        .collect();
    assert_eq!(ids, ["lango", MODEL]);
    assert_eq!(models["object"], "list");
    for path in [
        "/v1/models/lango",
        "/v1/models/test/scripted",
        "/v1/models/test%2Fscripted",
    ] {
        assert_eq!(api.get(&token, path).await.ok()["object"], "model");
    }
    let error = api.get(&token, "/v1/models/gpt-9").await.openai_error(404);
    assert_eq!(error["code"], "model_not_found");
}

#[tokio::test]
async fn a_chat_completion_is_one_turn() {
    let api = TestApi::new(ScriptedModel::replies([say("Hello!")]));
    let token = api.token("run").await;
    let response = api.post(&token, CHAT, &chat("hi")).await;
    let body = response.ok();
    assert_eq!(body["object"], "chat.completion");
    assert_eq!(body["choices"][0]["message"]["content"], "Hello!");
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    assert_eq!(body["usage"]["prompt_tokens"], 10);
    assert_eq!(body["usage"]["completion_tokens"], 5);
    assert_eq!(body["usage"]["total_tokens"], 15);
    assert_eq!(body["lango"]["session"], response.header("x-lango-session"));
    assert_eq!(body["lango"]["approvals"], json!([]));
}

#[tokio::test]
async fn a_streamed_chat_completion_ends_with_usage_and_done() {
    let api = TestApi::new(ScriptedModel::replies([say("Hello, world!")]).with_chunk_size(4));
    let token = api.token("run").await;
    let mut body = streamed(chat("hi"));
    body["stream_options"] = json!({ "include_usage": true });
    let response = api.post(&token, CHAT, &body).await;
    let chunks = response.events();
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
    assert_eq!(chat_text(&chunks), "Hello, world!");
    assert!(chunks.len() > 5, "the text came in one piece: {chunks:?}");
    let [.., last, usage] = &chunks[..] else {
        panic!("{chunks:?}");
    };
    assert_eq!(last["choices"][0]["finish_reason"], "stop");
    assert_eq!(usage["choices"], json!([]));
    assert_eq!(usage["usage"]["total_tokens"], 15);
    assert!(
        response.body.ends_with("data: [DONE]\n\n"),
        "{}",
        response.body
    );
    assert!(!response.header("x-lango-session").is_empty());
}

#[tokio::test]
async fn deltas_end_with_the_answer_when_a_draft_is_withdrawn() {
    let with_call = ModelReply {
        text: "Let me look.".to_owned(),
        ..delegate("operator", "look")
    };
    let replies = || [with_call.clone(), say("found"), say("Here it is.")];
    let api = TestApi::new(ScriptedModel::replies(replies()).with_chunk_size(3));
    let token = api.token("run").await;
    let chunks = api.post(&token, CHAT, &streamed(chat("hi"))).await.events();
    assert_eq!(chat_text(&chunks), "Let me look.\n\nHere it is.");

    let api = TestApi::new(ScriptedModel::replies(replies()).with_chunk_size(3));
    let token = api.token("run").await;
    let body = json!({ "model": "lango", "input": "hi", "stream": true });
    let events = api.post(&token, RESPONSES, &body).await.events();
    let done = events
        .iter()
        .filter(|event| event["type"] == "response.output_item.done");
    let statuses: Vec<_> = done.map(|event| &event["item"]["status"]).collect();
    assert_eq!(statuses, ["incomplete", "completed"]);
    let output = &events.last().unwrap()["response"]["output"];
    assert_eq!(output.as_array().unwrap().len(), 1);
    assert_eq!(output[0]["content"][0]["text"], "Here it is.");
}

#[tokio::test]
async fn a_response_is_one_turn() {
    let api = TestApi::new(ScriptedModel::replies([say("Hello!")]));
    let token = api.token("run").await;
    let body = json!({ "model": MODEL, "input": "hi", "metadata": { "a": "b" } });
    let response = api.post(&token, RESPONSES, &body).await;
    let body = response.ok();
    assert_eq!(body["object"], "response");
    assert_eq!(body["status"], "completed");
    assert_eq!(body["model"], MODEL);
    assert_eq!(body["metadata"]["a"], "b");
    assert_eq!(body["output"][0]["content"][0]["text"], "Hello!");
    assert_eq!(body["usage"]["input_tokens"], 10);
    assert_eq!(
        body["conversation"]["id"],
        response.header("x-lango-session")
    );
}

#[tokio::test]
async fn a_streamed_response_has_numbered_typed_events() {
    let api = TestApi::new(ScriptedModel::replies([say("Hi you")]).with_chunk_size(3));
    let token = api.token("run").await;
    let body = json!({ "model": "lango", "input": "hi", "stream": true });
    let response = api.post(&token, RESPONSES, &body).await;
    let events = response.events();
    assert_eq!(
        types(&events),
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], number);
    }
    let names: Vec<_> = response
        .body
        .lines()
        .filter_map(|line| line.strip_prefix("event: "))
        .collect();
    assert_eq!(names, types(&events));
    let last = &events.last().unwrap()["response"];
    assert_eq!(last["output"][0]["content"][0]["text"], "Hi you");
    assert_eq!(last["usage"]["output_tokens"], 5);
}

#[tokio::test]
async fn a_pending_approval_ends_the_response_with_its_id() {
    for is_streamed in [false, true] {
        let api = TestApi::new(ScriptedModel::replies(writing()));
        let token = api.token("read run approve").await;
        let mut body = chat("write it");
        body["stream"] = json!(is_streamed);
        let response = api.post(&token, CHAT, &body).await;
        let (text, last) = if is_streamed {
            let chunks = response.events();
            (chat_text(&chunks), chunks.last().unwrap().clone())
        } else {
            let body = response.ok();
            let text = body["choices"][0]["message"]["content"].as_str().unwrap();
            (text.to_owned(), body.clone())
        };
        assert_eq!(last["choices"][0]["finish_reason"], "stop");
        let id = last["lango"]["approvals"][0].as_str().unwrap();
        assert!(
            text.contains(&format!("Approval `{id}` is pending")),
            "{text}"
        );
        assert!(
            text.contains(&format!("POST /api/approvals/{id}")),
            "{text}"
        );
        assert!(text.contains("fs_write"), "{text}");
        assert_eq!(api.writer.runs(), 0);

        // The session waits, and the error says what to do.
        let headers = [("X-Lango-Session", response.header("x-lango-session"))];
        let next = api.post_with(&token, CHAT, &headers, &chat("and?")).await;
        let error = next.openai_error(409);
        assert!(error["message"].as_str().unwrap().contains(id), "{error}");
        assert_eq!(next.header("x-should-retry"), "false");

        let answer = json!({ "answer": "once" });
        let path = format!("/api/approvals/{id}");
        assert_eq!(api.post(&token, &path, &answer).await.status, 202);
    }
}

#[tokio::test]
async fn a_response_that_waits_for_an_approval_is_incomplete() {
    for is_streamed in [false, true] {
        let api = TestApi::new(ScriptedModel::replies(writing()));
        let token = api.token("run").await;
        let body = json!({ "model": "lango", "input": "write it", "stream": is_streamed });
        let response = api.post(&token, RESPONSES, &body).await;
        let object = if is_streamed {
            let events = response.events();
            let last = events.last().unwrap();
            assert_eq!(last["type"], "response.incomplete");
            last["response"].clone()
        } else {
            response.ok()
        };
        assert_eq!(object["status"], "incomplete");
        assert_eq!(object["incomplete_details"], json!({}));
        let id = object["lango"]["approvals"][0].as_str().unwrap();
        assert_eq!(object["metadata"]["lango_approvals"], id);
        assert_eq!(object["usage"]["input_tokens"], 20);
    }
}

#[tokio::test]
async fn several_approvals_are_all_named() {
    let replies = vec![
        delegate_and_finish("operator", "write both"),
        calls([
            ("fs_write", json!({ "n": 1 })),
            ("fs_write", json!({ "n": 2 })),
        ]),
        say("done"),
    ];
    let api = TestApi::new(ScriptedModel::replies(replies));
    let token = api.token("run").await;
    let body = api.post(&token, CHAT, &chat("write both")).await.ok();
    assert_eq!(body["lango"]["approvals"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_turn_at_its_limit_ends_with_length() {
    let limits = Limits {
        model_calls: 1,
        ..Limits::default()
    };
    let replies = || ScriptedModel::from_fn(|_| delegate("operator", "go on"));
    let api = TestApi::with_limits(replies(), limits);
    let token = api.token("run").await;
    let body = api.post(&token, CHAT, &chat("hi")).await.ok();
    assert_eq!(body["choices"][0]["finish_reason"], "length");
    let body = json!({ "model": "lango", "input": "hi" });
    let body = api.post(&token, RESPONSES, &body).await.ok();
    assert_eq!(body["status"], "incomplete");
    assert_eq!(body["incomplete_details"]["reason"], "max_output_tokens");
}

#[tokio::test]
async fn a_failed_turn_is_an_error_that_clients_do_not_repeat() {
    let api = TestApi::new(ScriptedModel::replies([]));
    let token = api.token("run").await;
    let response = api.post(&token, CHAT, &chat("hi")).await;
    let error = response.openai_error(424);
    assert_eq!(error["code"], "setup_needed");
    assert_eq!(response.header("x-should-retry"), "false");
    assert!(!response.header("x-lango-session").is_empty());

    let response = api.post(&token, CHAT, &streamed(chat("hi"))).await;
    let chunks = response.events();
    assert_eq!(chunks.last().unwrap()["error"]["code"], "setup_needed");

    for is_streamed in [false, true] {
        let body = json!({ "model": "lango", "input": "hi", "stream": is_streamed });
        let response = api.post(&token, RESPONSES, &body).await;
        let object = if is_streamed {
            let events = response.events();
            assert_eq!(events.last().unwrap()["type"], "response.failed");
            events.last().unwrap()["response"].clone()
        } else {
            response.ok()
        };
        assert_eq!(object["status"], "failed");
        assert_eq!(object["error"]["code"], "server_error");
        assert_eq!(object["lango"]["code"], "setup_needed");
    }
}

#[tokio::test]
async fn an_answer_satisfies_the_schema_of_the_request() {
    let schema = json!({ "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } } });
    let reply = || ScriptedModel::from_fn(|_| say("```json\n{\"n\": 1}\n```")).with_chunk_size(2);
    let api = TestApi::new(reply());
    let token = api.token("run").await;
    let mut body = chat("count");
    body["response_format"] = json!({ "type": "json_schema", "json_schema": { "name": "n", "strict": true, "schema": schema } });
    let whole = api.post(&token, CHAT, &body).await.ok();
    assert_eq!(whole["choices"][0]["message"]["content"], "{\"n\": 1}");
    let chunks = api.post(&token, CHAT, &streamed(body)).await.events();
    assert_eq!(chat_text(&chunks), "{\"n\": 1}");
    let format = json!({ "type": "json_schema", "name": "n", "schema": schema });
    let body = json!({ "model": "lango", "input": "count", "text": { "format": format } });
    let response = api.post(&token, RESPONSES, &body).await.ok();
    assert_eq!(response["output"][0]["content"][0]["text"], "{\"n\": 1}");
    let mut body = chat("count");
    body["response_format"] = json!({ "type": "json_object" });
    let whole = api.post(&token, CHAT, &body).await.ok();
    assert_eq!(whole["choices"][0]["message"]["content"], "{\"n\": 1}");
}

#[tokio::test]
async fn images_in_data_urls_become_files_of_the_message() {
    const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let api = TestApi::new(ScriptedModel::from_fn(|_| say("A dot.")));
    let token = api.token("run").await;
    let url = format!("data:image/png;base64,{PNG}");
    let body = json!({ "model": "lango", "messages": [{ "role": "user", "content": [
        { "type": "text", "text": "what is it?" },
        { "type": "image_url", "image_url": { "url": url } },
    ] }] });
    api.post(&token, CHAT, &body).await.ok();
    assert!(
        api.last_request().contains("image-1.png"),
        "{}",
        api.last_request()
    );
    let body = json!({ "model": "lango", "input": [{ "role": "user", "content": [
        { "type": "input_text", "text": "what is it?" },
        { "type": "input_image", "image_url": url },
    ] }] });
    api.post(&token, RESPONSES, &body).await.ok();
    assert!(api.last_request().contains("image-1.png"));
}

#[tokio::test]
async fn a_turn_goes_on_when_its_client_disconnects() {
    let api = TestApi::new(ScriptedModel::replies([say("Hello!")]));
    let token = api.token("read run").await;
    let request = axum::http::Request::post(CHAT)
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json")
        .body(axum::body::Body::from(streamed(chat("hi")).to_string()))
        .unwrap();
    let response = tower::ServiceExt::oneshot(api.router.clone(), request)
        .await
        .unwrap();
    let session = response.headers()["x-lango-session"]
        .to_str()
        .unwrap()
        .to_owned();
    drop(response);
    let path = format!("/api/sessions/{session}/events");
    for _ in 0..200 {
        let events: TestResponse = api.get(&token, &path).await;
        if events.body.contains("turn.finished") {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the turn did not end");
}
