//! Settings, schemas and attachments in the format of each provider.

use crate::support::Wire::{self, Anthropic, Gemini, OpenAi, Responses};
use crate::support::{assistant, body, request, result, settings, with_functions};
use lango_core::{Message, ModelRequest, ModelSettings, ReasoningEffort};
use lango_models::Provider;
use lango_testkit::model::say;
use lango_testkit::wire_server::WireServer;
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) async fn body_for_model(kind: Wire, id: &str, request: ModelRequest) -> Value {
    let server = WireServer::scripted([say("ok")]).await;
    let model = Provider::new(settings(kind, server.url())).model(id);
    crate::support::call(&model, request).await.1.unwrap();
    server.requests().remove(0).body
}

#[tokio::test]
async fn settings_are_sent_in_the_form_of_each_provider() {
    let settings = ModelSettings {
        temperature: Some(0.5),
        reasoning_effort: Some(ReasoningEffort::Low),
        max_output_tokens: Some(2000),
    };
    let wanted = || ModelRequest {
        settings,
        ..request()
    };
    let chat = body(OpenAi, wanted()).await;
    assert_eq!(
        (
            &chat["temperature"],
            &chat["reasoning_effort"],
            &chat["max_tokens"]
        ),
        (&json!(0.5), &json!("low"), &json!(2000))
    );
    let responses = body(Responses, wanted()).await;
    assert_eq!(
        (
            &responses["temperature"],
            &responses["reasoning"],
            &responses["max_output_tokens"]
        ),
        (&json!(0.5), &json!({ "effort": "low" }), &json!(2000))
    );
    let config = body(Gemini, wanted()).await["generationConfig"].clone();
    assert_eq!(
        config,
        json!({ "temperature": 0.5, "maxOutputTokens": 2000, "thinkingConfig": { "thinkingBudget": 1024 } })
    );
    let anthropic = body(Anthropic, wanted()).await;
    assert_eq!(anthropic["thinking"], json!({ "type": "adaptive" }));
    assert_eq!(anthropic["output_config"], json!({ "effort": "low" }));
    assert!(
        anthropic.get("temperature").is_none(),
        "a model that thinks takes none"
    );
    assert_eq!(anthropic["max_tokens"], 2000);
}

#[tokio::test]
async fn an_answer_schema_is_sent_in_the_form_of_each_provider() {
    let schema = json!({
        "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"], "additionalProperties": false,
    });
    let wanted = || ModelRequest {
        answer_schema: Some(Arc::new(schema.clone())),
        ..request()
    };
    let chat = body_for_model(OpenAi, "gpt-5.4", wanted()).await;
    assert_eq!(
        chat["response_format"],
        json!({ "type": "json_schema", "json_schema": { "name": "answer", "schema": schema, "strict": true } })
    );
    let responses = body_for_model(Responses, "gpt-5.4", wanted()).await;
    assert_eq!(
        responses["text"]["format"],
        json!({ "type": "json_schema", "name": "answer", "schema": schema, "strict": true })
    );
    let anthropic = body_for_model(Anthropic, "claude-sonnet-5-5", wanted()).await;
    assert_eq!(
        anthropic["output_config"]["format"],
        json!({ "type": "json_schema", "schema": schema })
    );
    let gemini = body_for_model(Gemini, "gemini-3.8-flash", wanted()).await;
    assert_eq!(gemini["generationConfig"]["responseJsonSchema"], schema);
    assert_eq!(
        gemini["generationConfig"]["responseMimeType"],
        "application/json"
    );
    let with_tools = ModelRequest {
        answer_schema: Some(Arc::new(schema.clone())),
        ..with_functions(&["fs_read"])
    };
    let chat = body_for_model(OpenAi, "gpt-5.4", with_tools).await;
    assert!(
        chat.get("response_format").is_none(),
        "some servers refuse both"
    );
}

#[tokio::test]
async fn a_raised_output_limit_is_higher_on_every_wire() {
    let raised = || ModelRequest {
        raise_output_limit: true,
        settings: ModelSettings {
            max_output_tokens: Some(1000),
            ..ModelSettings::default()
        },
        ..request()
    };
    assert_eq!(body(OpenAi, raised()).await["max_tokens"], 32_768);
    assert_eq!(body(Anthropic, raised()).await["max_tokens"], 32_768);
    assert_eq!(body(Responses, raised()).await["max_output_tokens"], 32_768);
    let gemini = body(Gemini, raised()).await;
    assert_eq!(gemini["generationConfig"]["maxOutputTokens"], 32_768);
}

/// Returns a request with an image and a text file in the user's message, and an image in a result.
fn with_attachments() -> ModelRequest {
    let attachment = |name: &str, media_type: &str, content: &[u8]| lango_core::Attachment {
        name: name.into(),
        media_type: media_type.into(),
        digest: name.into(),
        size: content.len() as u64,
    };
    let image = attachment("a.png", "image/png", b"PNG1");
    let text = attachment("b.txt", "text/plain", b"words");
    let shot = attachment("c.png", "image/png", b"PNG2");
    let contents = [("a.png", "PNG1"), ("b.txt", "words"), ("c.png", "PNG2")];
    let mut returned = result("c1", "fs_read", "read");
    if let Message::Result { attachments, .. } = &mut returned {
        attachments.push(shot);
    }
    ModelRequest {
        messages: vec![
            Message::User {
                text: "what is it?".into(),
                attachments: vec![image, text],
            },
            assistant("", &[("c1", "fs_read", "{}")], None),
            returned,
        ],
        contents: contents
            .map(|(digest, content)| (digest.into(), Arc::from(content.as_bytes())))
            .into(),
        ..request()
    }
}

#[tokio::test]
async fn attachments_are_sent_in_the_form_of_each_provider() {
    let chat = body(OpenAi, with_attachments()).await;
    insta::assert_snapshot!(
        "attachments_openai",
        serde_json::to_string_pretty(&chat["messages"]).unwrap()
    );
    let responses = body(Responses, with_attachments()).await;
    insta::assert_snapshot!(
        "attachments_responses",
        serde_json::to_string_pretty(&responses["input"]).unwrap()
    );
    let anthropic = body(Anthropic, with_attachments()).await;
    insta::assert_snapshot!(
        "attachments_anthropic",
        serde_json::to_string_pretty(&anthropic["messages"]).unwrap()
    );
    let gemini = body(Gemini, with_attachments()).await;
    insta::assert_snapshot!(
        "attachments_gemini",
        serde_json::to_string_pretty(&gemini["contents"]).unwrap()
    );
}

#[tokio::test]
async fn mistrals_own_service_gets_no_stream_options() {
    let server = WireServer::scripted([say("ok")]).await;
    let settings = lango_models::ProviderSettings {
        id: "mistral".to_owned(),
        ..settings(OpenAi, server.url())
    };
    let model = Provider::new(settings).model("mistral-large-latest");
    crate::support::call(&model, request()).await.1.unwrap();
    assert!(server.requests()[0].body.get("stream_options").is_none());
}

#[tokio::test]
async fn an_older_claude_thinks_within_its_output_limit() {
    for (limit, budget) in [
        (Some(9000), json!(4500)),
        (Some(1500), Value::Null),
        (None, json!(20_480)),
    ] {
        let wanted = ModelRequest {
            settings: ModelSettings {
                reasoning_effort: Some(ReasoningEffort::High),
                max_output_tokens: limit,
                ..ModelSettings::default()
            },
            ..request()
        };
        let body = body_for_model(Anthropic, "claude-haiku-4-5", wanted).await;
        assert_eq!(body["thinking"]["budget_tokens"], budget, "{limit:?}");
        assert_eq!(
            body["max_tokens"].as_u64().unwrap(),
            limit.unwrap_or(50_000).min(64_000)
        );
    }
}
