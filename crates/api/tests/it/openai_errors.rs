//! Errors of `/v1/`, all in OpenAI's shape.

use crate::support::TestApi;
use axum::body::Body;
use axum::http::Request;
use lango_testkit::model::{ScriptedModel, say};
use serde_json::{Value, json};

const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";

fn api() -> TestApi {
    TestApi::new(ScriptedModel::from_fn(|_| say("ok")))
}

fn with(mut body: Value, more: &Value) -> Value {
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    body
}

#[tokio::test]
async fn every_error_has_the_shape_and_the_status() {
    let api = api();
    let (reader, runner) = (api.token("read").await, api.token("run").await);
    let body = json!({ "messages": [{ "role": "user", "content": "hi" }] });
    let error = api.post("wrong", CHAT, &body).await;
    assert_eq!(error.header("www-authenticate"), "Bearer");
    assert_eq!(error.openai_error(401)["code"], "invalid_api_key");
    api.get("wrong", "/v1/models").await.openai_error(401);
    let error = api.post(&reader, CHAT, &body).await.openai_error(403);
    assert!(
        error["message"].as_str().unwrap().contains("`run`"),
        "{error}"
    );
    api.get(&runner, "/v1/models").await.openai_error(403);
    api.get(&reader, "/v1").await.openai_error(404);
    api.get(&reader, "/v1/embeddings").await.openai_error(404);
    api.get(&reader, "/v1/models/").await.openai_error(404);
    api.get(&runner, CHAT).await.openai_error(405);
    let send = |content_type: &'static str, body: String| {
        let request = Request::post(CHAT)
            .header("authorization", format!("Bearer {runner}"))
            .header("content-type", content_type);
        api.send(request.body(Body::from(body)).unwrap())
    };
    send("application/json", "{".to_owned())
        .await
        .openai_error(400);
    send("application/json", "[]".to_owned())
        .await
        .openai_error(400);
    send("text/plain", body.to_string()).await.openai_error(415);
    let huge = format!("\"{}\"", "x".repeat(30_000_000));
    send("application/json", huge).await.openai_error(413);
    let long = json!({ "messages": [{ "role": "user", "content": "x".repeat(1_100_000) }] });
    api.post(&runner, CHAT, &long).await.openai_error(413);
    // Other paths keep their own shape.
    let problem = api.get("wrong", "/api/me").await;
    assert_eq!(problem.header("content-type"), "application/problem+json");
}

#[tokio::test]
async fn tools_of_the_client_are_refused() {
    let api = api();
    let token = api.token("run").await;
    let tool = json!([{ "type": "function", "function": { "name": "f", "parameters": {} } }]);
    let chat = json!({ "messages": [{ "role": "user", "content": "hi" }] });
    let response = json!({ "input": "hi" });
    for (path, body, more) in [
        (CHAT, &chat, json!({ "tools": tool })),
        (CHAT, &chat, json!({ "functions": tool })),
        (CHAT, &chat, json!({ "tool_choice": "required" })),
        (CHAT, &chat, json!({ "function_call": { "name": "f" } })),
        (RESPONSES, &response, json!({ "tools": tool })),
        (
            RESPONSES,
            &response,
            json!({ "tool_choice": { "type": "function", "name": "f" } }),
        ),
    ] {
        let error = api
            .post(&token, path, &with(body.clone(), &more))
            .await
            .openai_error(400);
        assert_eq!(error["code"], "unsupported_parameter");
        let message = error["message"].as_str().unwrap();
        assert_eq!(
            message,
            "lango's agents have their own tools; remove tools from the request"
        );
    }
    let none = json!({ "tools": [], "tool_choice": "none", "functions": null });
    api.post(&token, CHAT, &with(chat, &none)).await.ok();
}

#[tokio::test]
async fn parameters_that_change_the_meaning_are_refused_and_others_ignored() {
    let api = api();
    let token = api.token("run").await;
    let chat = json!({ "messages": [{ "role": "user", "content": "hi" }] });
    let response = json!({ "input": "hi" });
    let url = json!([{ "role": "user", "content": [{ "type": "image_url", "image_url": { "url": "https://example.com/a.png" } }] }]);
    let audio =
        json!([{ "role": "user", "content": [{ "type": "input_audio", "input_audio": {} }] }]);
    for (path, body, more, param) in [
        (CHAT, &chat, json!({ "n": 2 }), "n"),
        (CHAT, &chat, json!({ "logprobs": true }), "logprobs"),
        (
            CHAT,
            &chat,
            json!({ "modalities": ["text", "audio"] }),
            "modalities",
        ),
        (
            CHAT,
            &chat,
            json!({ "web_search_options": {} }),
            "web_search_options",
        ),
        (CHAT, &chat, json!({ "stream": "yes" }), "stream"),
        (CHAT, &chat, json!({ "messages": [] }), "messages"),
        (CHAT, &chat, json!({ "messages": url }), "messages"),
        (CHAT, &chat, json!({ "messages": audio }), "messages"),
        (
            CHAT,
            &chat,
            json!({ "messages": [{ "role": "robot", "content": "hi" }] }),
            "messages",
        ),
        (CHAT, &chat, json!({ "model": 5 }), "model"),
        (
            CHAT,
            &chat,
            json!({ "response_format": { "type": "xml" } }),
            "response_format",
        ),
        (
            CHAT,
            &chat,
            json!({ "response_format": { "type": "json_schema" } }),
            "response_format",
        ),
        (
            RESPONSES,
            &response,
            json!({ "background": true }),
            "background",
        ),
        (
            RESPONSES,
            &response,
            json!({ "prompt": { "id": "p" } }),
            "prompt",
        ),
        (RESPONSES, &response, json!({ "input": 5 }), "input"),
        (
            RESPONSES,
            &response,
            json!({ "input": [{ "type": "function_call_output" }] }),
            "input",
        ),
        (
            RESPONSES,
            &response,
            json!({ "input": [{ "type": "item_reference", "id": "x" }] }),
            "input",
        ),
        (
            RESPONSES,
            &response,
            json!({ "text": { "format": { "type": "json_schema", "schema": { "type": "what" } } } }),
            "text.format",
        ),
    ] {
        let error = api
            .post(&token, path, &with(body.clone(), &more))
            .await
            .openai_error(400);
        assert_eq!(error["param"], param, "{more}: {error}");
    }
    for (path, body) in [(CHAT, chat), (RESPONSES, response)] {
        let model = with(body.clone(), &json!({ "model": "gpt-9" }));
        let error = api.post(&token, path, &model).await.openai_error(404);
        assert_eq!(error["code"], "model_not_found");
        let harmless = json!({ "temperature": 0.5, "max_tokens": 5, "user": "u", "metadata": {}, "store": true,
            "seed": 1, "n": 1, "logprobs": false, "parallel_tool_calls": true, "anything": [1] });
        api.post(&token, path, &with(body, &harmless)).await.ok();
    }
}

#[tokio::test]
async fn a_request_without_a_new_message_is_refused() {
    let api = api();
    let token = api.token("run").await;
    for messages in [
        json!([{ "role": "system", "content": "hi" }]),
        json!([{ "role": "user", "content": "hi" }, { "role": "assistant", "content": "hi" }]),
        json!([{ "role": "user", "content": "" }]),
        json!([{ "role": "user", "content": null }]),
        json!([{ "role": "tool", "content": "hi", "tool_call_id": "x" }]),
    ] {
        let body = json!({ "messages": messages });
        api.post(&token, CHAT, &body).await.openai_error(400);
        let body = json!({ "input": messages });
        api.post(&token, RESPONSES, &body).await.openai_error(400);
    }
}
