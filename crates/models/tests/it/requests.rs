//! Requests in each wire format, beyond the snapshots: cases that providers would answer with status 400.

use crate::support::Wire;
use crate::support::{
    assistant, body, notice, opaque, request, result, sent, settings, user, with_functions,
    with_messages,
};
use lango_core::{EventBody, Function, Message, ModelRequest, OpaqueData};
use lango_models::{Provider, ProviderSettings};
use lango_testkit::model::say;
use lango_testkit::wire_server::WireServer;
use serde_json::{Value, json};
use std::sync::Arc;

/// Returns a step of two calls with their results and the provider's opaque data.
fn one_step(opaque: Option<OpaqueData>) -> Vec<Message> {
    let calls = [
        ("call_1", "read", r#"{"path":"1"}"#),
        ("call_2", "read", r#"{"path":"2"}"#),
    ];
    vec![
        user("Compare."),
        assistant("", &calls, opaque),
        result("call_1", "read", "one"),
        result("call_2", "read", "two"),
    ]
}

fn anthropic_blocks(ids: [&str; 2]) -> Value {
    json!([
        { "type": "thinking", "thinking": "Hm\u{e9}\n", "signature": "c2ln+/==" },
        { "type": "redacted_thinking", "data": "ZW5j" },
        { "type": "text", "text": "I look." },
        { "type": "tool_use", "id": ids[0], "name": "read", "input": { "path": "1", "deep": [1.5, null] } },
        { "type": "tool_use", "id": ids[1], "name": "read", "input": { "path": "2" } },
    ])
}

/// Serializes and deserializes the data, as the log does.
fn stored_and_loaded(opaque: OpaqueData) -> OpaqueData {
    let line = json!({ "type": "agent.message", "text": "", "opaque": opaque }).to_string();
    let event: EventBody = serde_json::from_str(&line).unwrap();
    match serde_json::from_str(&serde_json::to_string(&event).unwrap()).unwrap() {
        EventBody::AgentMessage { opaque, .. } => opaque.unwrap(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn anthropic_gets_all_results_of_a_step_and_the_text_after_them_in_one_message() {
    let mut messages = one_step(None);
    messages.push(notice("Conclude now."));
    let body = body(Wire::Anthropic, with_messages(messages)).await;
    let list = body["messages"].as_array().unwrap();
    let roles: Vec<_> = list
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    let types: Vec<_> = list[2]["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["type"].clone())
        .collect();
    assert_eq!(types, ["tool_result", "tool_result", "text"]);
}

#[tokio::test]
async fn anthropic_gets_its_blocks_back_unchanged() {
    let blocks = anthropic_blocks(["call_1", "call_2"]);
    let stored = opaque(Wire::Anthropic, blocks.clone());
    for stored in [stored.clone(), stored_and_loaded(stored)] {
        let body = body(Wire::Anthropic, with_messages(one_step(Some(stored)))).await;
        assert_eq!(
            body["messages"][1]["content"].to_string(),
            blocks.to_string()
        );
    }
}

#[tokio::test]
async fn anthropic_gets_its_blocks_back_with_the_call_ids_of_the_log() {
    let stored = opaque(Wire::Anthropic, anthropic_blocks(["", ""]));
    let body = body(Wire::Anthropic, with_messages(one_step(Some(stored)))).await;
    let expected = anthropic_blocks(["call_1", "call_2"]);
    assert_eq!(
        body["messages"][1]["content"].to_string(),
        expected.to_string()
    );
    assert_eq!(body["messages"][2]["content"][1]["tool_use_id"], "call_2");
}

#[tokio::test]
async fn blocks_that_no_longer_match_the_calls_are_left_out() {
    let stored = opaque(Wire::Anthropic, anthropic_blocks(["call_1", "call_2"]));
    let messages = vec![
        user("Compare."),
        assistant("I look.", &[("call_1", "read", "{}")], Some(stored)),
        result("call_1", "read", "one"),
    ];
    let body = body(Wire::Anthropic, with_messages(messages)).await;
    let expected = json!([
        { "type": "text", "text": "I look." },
        { "type": "tool_use", "id": "call_1", "name": "read", "input": {} },
    ]);
    assert_eq!(body["messages"][1]["content"], expected);
}

#[tokio::test]
async fn opaque_data_of_one_provider_is_not_sent_to_another() {
    for of in Wire::ALL {
        for to in Wire::ALL.into_iter().filter(|to| *to != of) {
            let stored = opaque(of, json!([{ "secret": "thought" }]));
            let body = body(to, with_messages(one_step(Some(stored))))
                .await
                .to_string();
            assert!(!body.contains("secret"), "{to:?} got what {of:?} sent");
        }
    }
}

#[tokio::test]
async fn anthropic_gets_the_tools_of_the_history_if_none_is_offered() {
    let body = body(Wire::Anthropic, with_messages(one_step(None))).await;
    assert_eq!(
        body["tools"],
        json!([{ "name": "read", "input_schema": { "type": "object" } }])
    );
    assert_eq!(body["tool_choice"], json!({ "type": "none" }));
    let plain = crate::support::body(Wire::Anthropic, request()).await;
    assert_eq!((plain.get("tools"), plain.get("tool_choice")), (None, None));
}

#[tokio::test]
async fn anthropic_caches_the_instruction_and_the_conversation_so_far() {
    let body = body(Wire::Anthropic, with_messages(one_step(None))).await;
    let mark = json!({ "type": "ephemeral" });
    assert_eq!(body["system"][0]["cache_control"], mark);
    assert_eq!(body["messages"][2]["content"][1]["cache_control"], mark);
    assert_eq!(body.to_string().matches("cache_control").count(), 2);
}

#[tokio::test]
async fn gemini_gets_its_parts_back_unchanged() {
    let parts = json!([
        { "text": "Hmm.", "thought": true },
        { "functionCall": { "id": "x1", "name": "read", "args": { "path": "1" } }, "thoughtSignature": "c2ln" },
        { "functionCall": { "name": "read", "args": { "path": "2" } } },
    ]);
    let stored = opaque(Wire::Gemini, parts.clone());
    for stored in [stored.clone(), stored_and_loaded(stored)] {
        let body = body(Wire::Gemini, with_messages(one_step(Some(stored)))).await;
        assert_eq!(body["contents"][1]["parts"].to_string(), parts.to_string());
        let results = &body["contents"][2]["parts"];
        assert_eq!(
            results[0]["functionResponse"]["id"], "x1",
            "answered under its own id"
        );
        assert_eq!(
            results[1]["functionResponse"].get("id"),
            None,
            "it came without one"
        );
    }
}

#[tokio::test]
async fn gemini_3_gets_a_placeholder_for_unsigned_calls_of_this_turn() {
    let past = vec![
        assistant("", &[("call_0", "read", "{}")], None),
        result("call_0", "read", "zero"),
    ];
    let messages: Vec<Message> = [user("First.")]
        .into_iter()
        .chain(past)
        .chain(one_step(None))
        .collect();
    for (id, expected) in [
        ("gemini-2.5-pro", 0),
        ("gemini-3-pro", 1),
        ("gemini-12", 1),
        ("other", 0),
    ] {
        let server = WireServer::scripted([say("ok")]).await;
        let model = Provider::new(settings(Wire::Gemini, server.url())).model(id);
        let request = with_messages(messages.clone());
        crate::support::call(&model, request).await.1.unwrap();
        let contents = server.requests()[0].body["contents"].clone();
        let signatures = contents.to_string().matches("thoughtSignature").count();
        assert_eq!(signatures, expected, "{id}");
        let of_this_turn = &contents[3]["parts"][0];
        assert_eq!(
            of_this_turn.get("thoughtSignature").is_some(),
            expected == 1,
            "{id}"
        );
    }
}

#[tokio::test]
async fn openai_gets_its_signed_reasoning_back() {
    let details = json!([{ "type": "reasoning.encrypted", "data": "xyz" }]);
    let stored = opaque(Wire::OpenAi, json!({ "reasoning_details": details }));
    let body = body(
        Wire::OpenAi,
        with_messages(one_step(Some(stored_and_loaded(stored)))),
    )
    .await;
    assert_eq!(body["messages"][2]["reasoning_details"], details);
}

#[tokio::test]
async fn consecutive_user_messages_are_merged() {
    let messages = || vec![user("One."), user("Two."), notice("Three.")];
    let openai = body(Wire::OpenAi, with_messages(messages())).await;
    assert_eq!(openai["messages"][1]["content"], "One.\n\nTwo.\n\nThree.");
    assert_eq!(openai["messages"].as_array().unwrap().len(), 2);
    let anthropic = body(Wire::Anthropic, with_messages(messages())).await;
    assert_eq!(anthropic["messages"].as_array().unwrap().len(), 1);
    let gemini = body(Wire::Gemini, with_messages(messages())).await;
    assert_eq!(gemini["contents"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_request_stays_valid_with_broken_arguments_in_its_history() {
    for broken in ["{\"path\": \"/et", "[1]", "\"text\"", "", "null"] {
        let messages = || {
            vec![
                user("x"),
                assistant("", &[("c", "read", broken)], None),
                result("c", "read", "no"),
            ]
        };
        let openai = body(Wire::OpenAi, with_messages(messages())).await;
        assert_eq!(
            openai["messages"][2]["tool_calls"][0]["function"]["arguments"], "{}",
            "{broken}"
        );
        let anthropic = body(Wire::Anthropic, with_messages(messages())).await;
        assert_eq!(
            anthropic["messages"][1]["content"][0]["input"],
            json!({}),
            "{broken}"
        );
        let gemini = body(Wire::Gemini, with_messages(messages())).await;
        assert_eq!(
            gemini["contents"][1]["parts"][0]["functionCall"]["args"],
            json!({}),
            "{broken}"
        );
    }
}

#[tokio::test]
async fn an_empty_message_is_not_sent_to_providers_that_forbid_it() {
    let messages = || {
        vec![
            user("x"),
            assistant(" ", &[], None),
            notice("Say something."),
        ]
    };
    let anthropic = body(Wire::Anthropic, with_messages(messages())).await;
    let gemini = body(Wire::Gemini, with_messages(messages())).await;
    for list in [&anthropic["messages"], &gemini["contents"]] {
        assert_eq!(list.as_array().unwrap().len(), 1, "{list}");
    }
}

#[tokio::test]
async fn any_schema_becomes_an_object_schema() {
    for schema in [
        json!({}),
        json!(true),
        Value::Null,
        json!({ "type": "object" }),
        json!({ "properties": {} }),
    ] {
        let function = Function {
            name: "now".into(),
            description: "The time".into(),
            parameters: schema.clone().into(),
        };
        let request = || ModelRequest {
            functions: Arc::from([function.clone()]),
            ..request()
        };
        let openai = body(Wire::OpenAi, request()).await;
        let parameters = &openai["tools"][0]["function"]["parameters"];
        assert_eq!(
            *parameters,
            json!({ "type": "object", "properties": {} }),
            "{schema}"
        );
        let anthropic = body(Wire::Anthropic, request()).await;
        assert_eq!(
            anthropic["tools"][0]["input_schema"]["type"], "object",
            "{schema}"
        );
        let gemini = body(Wire::Gemini, request()).await;
        let declaration = &gemini["tools"][0]["functionDeclarations"][0];
        assert_eq!(
            declaration.get("parametersJsonSchema"),
            None,
            "{schema}: it takes nothing"
        );
    }
}

#[tokio::test]
async fn each_provider_gets_its_key_in_its_own_header() {
    let table = [
        (Wire::OpenAi, "authorization", "Bearer the-key"),
        (Wire::Responses, "authorization", "Bearer the-key"),
        (Wire::Anthropic, "x-api-key", "the-key"),
        (Wire::Gemini, "x-goog-api-key", "the-key"),
    ];
    for (kind, header, value) in table {
        let recorded = sent(kind, request(), true).await;
        assert_eq!(recorded.header(header), Some(value));
        assert_eq!(recorded.header("content-type"), Some("application/json"));
        assert!(
            !recorded.path.contains("the-key") && !recorded.body.to_string().contains("the-key")
        );
    }
    let recorded = sent(Wire::Anthropic, request(), true).await;
    assert_eq!(recorded.header("anthropic-version"), Some("2023-06-01"));
}

#[tokio::test]
async fn a_provider_without_a_key_gets_no_key_header() {
    for kind in Wire::ALL {
        let server = WireServer::scripted([say("ok")]).await;
        let settings = ProviderSettings {
            api_key: None,
            ..settings(kind, server.url())
        };
        let model = Provider::new(settings).model("m");
        crate::support::call(&model, request()).await.1.unwrap();
        let recorded = &server.requests()[0];
        for header in ["authorization", "x-api-key", "x-goog-api-key"] {
            assert_eq!(recorded.header(header), None);
        }
    }
}

#[tokio::test]
async fn the_version_is_appended_only_to_an_address_without_a_path() {
    let table = [
        (Wire::OpenAi, "/v1/chat/completions", "/chat/completions"),
        (Wire::Responses, "/v1/responses", "/responses"),
        (Wire::Anthropic, "/v1/messages", "/messages"),
        (
            Wire::Gemini,
            "/v1beta/models/m:streamGenerateContent?alt=sse",
            "/models/m:streamGenerateContent?alt=sse",
        ),
    ];
    for (kind, versioned, rest) in table {
        for (given, expected) in [
            ("", versioned.to_owned()),
            ("/", versioned.to_owned()),
            ("/api/v7", format!("/api/v7{rest}")),
            ("/api/v7/", format!("/api/v7{rest}")),
        ] {
            let server = WireServer::scripted([say("ok")]).await;
            let model = crate::support::model(kind, &format!("{}{given}", server.url()), true);
            crate::support::call(&model, request()).await.1.unwrap();
            assert_eq!(server.requests()[0].path, expected, "{given}");
        }
    }
    let whole = sent(Wire::Gemini, request(), false).await;
    assert_eq!(whole.path, "/v1beta/models/m:generateContent");
}

#[tokio::test]
async fn functions_are_sent_only_if_there_are_any() {
    for kind in Wire::ALL {
        let recorded = sent(kind, with_functions(&["fs_read", "fs_list"]), true).await;
        assert_eq!(recorded.functions(), ["fs_read", "fs_list"]);
        assert_eq!(sent(kind, request(), true).await.body.get("tools"), None);
    }
}
