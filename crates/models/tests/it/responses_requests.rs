//! Requests to OpenAI's Responses API, beyond the snapshots.

use crate::golden::request_text_of;
use crate::support::Wire::Responses;
use crate::support::{
    assistant, body, call, model, opaque, request, result, settings, user, with_functions,
    with_messages,
};
use lango_core::{
    Attachment, AttachmentContents, Message, ModelRequest, ModelSettings, ReasoningEffort,
};
use lango_models::{Provider, ProviderSettings};
use lango_testkit::model::say;
use lango_testkit::wire_server::{Fault, ScriptedAnswer, WireServer};
use serde_json::{Value, json};
use std::sync::Arc;

fn thought_and_call() -> Value {
    json!([
        { "id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "ZW5j" },
        { "id": "fc_1_r", "type": "function_call", "status": "completed", "call_id": "own", "name": "read", "arguments": "{}" },
    ])
}

fn types(body: &Value) -> Vec<&str> {
    let items = body["input"].as_array().unwrap().iter();
    items.map(|item| item["type"].as_str().unwrap()).collect()
}

/// Returns a request with a step of these calls and their results, as in the log.
fn step(ids: &[&str], opaque: lango_core::OpaqueData) -> ModelRequest {
    let calls: Vec<_> = ids.iter().map(|id| (*id, "read", "{}")).collect();
    let results = ids.iter().map(|id| result(id, "read", "ok"));
    let step = assistant("", &calls, Some(opaque));
    with_messages([user("x"), step].into_iter().chain(results).collect())
}

#[tokio::test]
async fn items_are_sent_back_with_the_call_ids_of_the_log() {
    let body = body(
        Responses,
        step(&["logged"], opaque(Responses, thought_and_call())),
    )
    .await;
    assert_eq!(
        types(&body),
        [
            "message",
            "reasoning",
            "function_call",
            "function_call_output"
        ]
    );
    assert_eq!(body["input"][1], thought_and_call()[0]);
    assert_eq!(body["input"][2]["call_id"], "logged");
    assert_eq!(body["input"][2]["id"], "fc_1_r");
}

#[tokio::test]
async fn items_that_no_longer_match_the_calls_are_left_out() {
    for ids in [&["a", "b"][..], &[][..]] {
        let body = body(Responses, step(ids, opaque(Responses, thought_and_call()))).await;
        assert!(!types(&body).contains(&"reasoning"), "{body}");
        assert!(!body.to_string().contains("fc_1_r"), "{body}");
    }
}

#[tokio::test]
async fn another_model_of_the_provider_gets_the_calls_without_the_items() {
    let mut of_another = opaque(Responses, thought_and_call());
    of_another.model = Some("responses/other".into());
    let foreign = body(Responses, step(&["a"], of_another.clone())).await;
    assert_eq!(
        types(&foreign),
        ["message", "function_call", "function_call_output"]
    );
    assert_eq!(foreign["input"][1].get("id"), None);
    of_another.model = Some("responses/m".into());
    let own = body(Responses, step(&["a"], of_another)).await;
    assert!(types(&own).contains(&"reasoning"));
}

#[tokio::test]
async fn a_long_id_of_another_provider_is_shortened_the_same_way_for_call_and_result() {
    let (one, two) = (
        format!("{}1{}", "x".repeat(70), "y".repeat(70)),
        format!("{}2{}", "x".repeat(70), "y".repeat(70)),
    );
    let messages = vec![
        user("x"),
        assistant("", &[(&one, "read", "{}"), (&two, "read", "{}")], None),
        result(&one, "read", "ok"),
        result(&two, "read", "ok"),
    ];
    let body = body(Responses, with_messages(messages)).await;
    let id = |at: usize| body["input"][at]["call_id"].as_str().unwrap();
    assert_eq!((id(1).len(), id(1), id(2)), (64, id(3), id(4)));
    assert_ne!(id(1), id(2));
}

#[tokio::test]
async fn attachments_settings_and_a_schema_are_sent() {
    let attachment = |name: &str, media_type: &str, bytes: &[u8]| {
        let attachment = Attachment {
            name: name.into(),
            media_type: media_type.into(),
            digest: name.into(),
            size: bytes.len() as u64,
        };
        (attachment, bytes.to_vec())
    };
    let (image, image_bytes) = attachment("a.png", "image/png", b"png");
    let (text, text_bytes) = attachment("b.txt", "text/plain", b"words");
    let mut contents = AttachmentContents::default();
    contents.insert(image.digest.clone(), image_bytes.into());
    contents.insert(text.digest.clone(), text_bytes.into());
    let schema = json!({
        "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"], "additionalProperties": false,
    });
    let request = ModelRequest {
        messages: vec![
            Message::User {
                text: "What is this?".into(),
                attachments: vec![image.clone(), text],
            },
            assistant("I look.", &[("c", "read", "{\"path\":\"a.png\"}")], None),
            Message::Result {
                call: "c".into(),
                name: "read".into(),
                text: "Here it is.".into(),
                failed: false,
                attachments: vec![image],
            },
        ],
        settings: ModelSettings {
            temperature: Some(0.5),
            reasoning_effort: Some(ReasoningEffort::Low),
            max_output_tokens: Some(500),
        },
        answer_schema: Some(Arc::new(schema)),
        contents,
        ..with_functions(&["read"])
    };
    insta::assert_snapshot!(
        "responses_settings",
        request_text_of(Responses, request, true).await
    );
}

#[tokio::test]
async fn an_open_schema_is_not_strict_and_a_raised_limit_is_sent() {
    let request = ModelRequest {
        answer_schema: Some(Arc::new(
            json!({ "type": "object", "properties": { "n": {} } }),
        )),
        raise_output_limit: true,
        ..request()
    };
    let body = body(Responses, request).await;
    assert_eq!(body["text"]["format"]["strict"], false);
    assert_eq!(body["max_output_tokens"], 32_768);
}

#[tokio::test]
async fn encrypted_reasoning_is_not_requested_again_from_a_model_that_refuses_it() {
    let refusal = || {
        let error = json!({ "error": {
            "message": "Encrypted content is not supported with this model.",
            "type": "invalid_request_error", "param": "include", "code": null,
        } });
        ScriptedAnswer::from(Fault::status(400, "").body(error))
    };
    let server = WireServer::scripted([
        refusal(),
        say("ok").into(),
        say("ok").into(),
        refusal(),
        refusal(),
    ])
    .await;
    let provider = Provider::new(settings(Responses, server.url()));
    for _ in 0..2 {
        call(&provider.model("m"), request()).await.1.unwrap();
    }
    let other = call(&provider.model("other"), request()).await.1;
    assert!(other.is_err(), "a second refusal is told");
    let requests = server.requests();
    let includes: Vec<bool> = requests
        .iter()
        .map(|request| request.body.get("include").is_some())
        .collect();
    assert_eq!(includes, [true, false, false, true, false]);
}

#[tokio::test]
async fn other_refusals_are_reported_immediately() {
    let server = WireServer::scripted([ScriptedAnswer::from(Fault::status(
        400,
        "Your request must include a prompt",
    ))])
    .await;
    let (_, end) = call(&model(Responses, server.url(), true), request()).await;
    assert!(end.is_err());
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn the_query_of_an_address_is_part_of_every_request() {
    for (given, base) in [
        ("?api-version=preview", "/v1"),
        ("/openai/v1/?api-version=preview", "/openai/v1"),
    ] {
        let list = ScriptedAnswer::json(&json!({ "data": [{ "id": "m1" }] }));
        let server = WireServer::scripted([say("ok").into(), list]).await;
        let provider = Provider::new(ProviderSettings {
            base_url: format!("{}{given}", server.url()),
            ..settings(Responses, server.url())
        });
        call(&provider.model("m"), request()).await.1.unwrap();
        assert_eq!(provider.list().await.unwrap(), ["m1"]);
        let paths: Vec<String> = server
            .requests()
            .into_iter()
            .map(|request| request.path)
            .collect();
        assert_eq!(
            paths,
            [
                format!("{base}/responses?api-version=preview"),
                format!("{base}/models?api-version=preview")
            ]
        );
    }
}
