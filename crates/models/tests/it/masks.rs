//! A provider that echoes the key in text, calls, reasoning and errors, streamed or not, in every encoding.

use crate::support::{BOTH, Wire, call, request, settings, shown};
use lango_core::{Model, ModelReply};
use lango_models::{MaskedModel, Provider, ProviderSettings};
use lango_secrets::{Credential, Masks, SecretValue};
use lango_testkit::canary::{echo, encodings, find_encoding};
use lango_testkit::model::{call as call_tool, say};
use lango_testkit::wire_server::{Fault, ScriptedAnswer, WireServer};
use serde_json::json;
use std::sync::Arc;

const KEY: &str = "sk-canary/\"+\\&<%41-77f0c1";

fn masked(kind: Wire, url: &str, stream: bool) -> (MaskedModel, Provider) {
    let masks = Masks::default();
    let key = Credential::fixed("THE_KEY", SecretValue::new(KEY), &masks);
    let provider = Provider::new(ProviderSettings {
        api_key: Some(key),
        masks: masks.clone(),
        stream,
        ..settings(kind, url)
    });
    let model: Arc<dyn Model> = Arc::new(provider.model("m"));
    (MaskedModel::new(model, masks), provider)
}

#[track_caller]
fn assert_hidden(text: &str) {
    assert_eq!(find_encoding(text.as_bytes(), KEY), None, "{text}");
}

#[tokio::test]
async fn text_and_calls_with_the_key_are_masked() {
    let reply = || ModelReply {
        text: format!("before {} after", echo(KEY)),
        ..call_tool(
            "fs_write",
            json!({ "path": KEY, "content": echo(KEY), KEY: 1 }),
        )
    };
    for kind in Wire::ALL {
        for stream in BOTH {
            let server = WireServer::scripted([reply()]).await;
            let (model, _) = masked(kind, server.url(), stream);
            let (events, reply) = call(&model, request()).await;
            let reply = reply.unwrap();
            assert_hidden(&shown(&events));
            assert_hidden(&reply.text);
            assert!(
                reply.text.starts_with("before [secret THE_KEY]"),
                "{}",
                reply.text
            );
            assert!(reply.text.ends_with(" after"), "{}", reply.text);
            let found = reply.text.matches("[secret THE_KEY]").count();
            assert_eq!(found, encodings(KEY).len(), "{}", reply.text);
            let arguments: serde_json::Value =
                serde_json::from_str(&reply.calls[0].arguments).unwrap();
            assert_eq!(arguments["path"], "[secret THE_KEY]");
            assert_hidden(&reply.calls[0].arguments);
        }
    }
}

#[tokio::test]
async fn a_key_that_is_split_over_chunks_of_a_stream_is_masked() {
    for size in 1..=7 {
        let text = format!("it is {} now", echo(KEY));
        let pieces: Vec<char> = text.chars().collect();
        let pieces = pieces.chunks(size).map(|piece| {
            let piece: String = piece.iter().collect();
            json!({ "choices": [{ "index": 0, "delta": { "content": piece } }] }).to_string()
        });
        let end = [
            json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] })
                .to_string(),
            "[DONE]".to_owned(),
        ];
        let server = WireServer::scripted([ScriptedAnswer::frames(pieces.chain(end))]).await;
        let (model, _) = masked(Wire::OpenAi, server.url(), true);
        let (events, reply) = call(&model, request()).await;
        let reply = reply.unwrap();
        assert_hidden(&shown(&events));
        assert_hidden(&reply.text);
        assert_eq!(shown(&events), reply.text);
        assert!(reply.text.ends_with(" now"), "{}", reply.text);
    }
}

#[tokio::test]
async fn stored_reasoning_is_masked() {
    let text = echo(KEY);
    let (first, second) = text.split_at(text.find("canary").unwrap() + 3);
    let frames = [
        json!({ "type": "message_start", "message": { "usage": { "input_tokens": 1 } } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "thinking", "thinking": "" } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "thinking_delta", "thinking": first } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "thinking_delta", "thinking": second } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "signature_delta", "signature": "c2ln" } }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "content_block_start", "index": 1, "content_block": { "type": "text", "text": "" } }),
        json!({ "type": "content_block_delta", "index": 1, "delta": { "type": "text_delta", "text": "Hi." } }),
        json!({ "type": "content_block_stop", "index": 1 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 1 } }),
        json!({ "type": "message_stop" }),
    ];
    let server = WireServer::scripted([ScriptedAnswer::frames(frames)]).await;
    let (model, _) = masked(Wire::Anthropic, server.url(), true);
    let (_, reply) = call(&model, request()).await;
    let reply = reply.unwrap();
    let opaque = reply.opaque.expect("thoughts are kept").data.to_string();
    assert!(opaque.contains("[secret THE_KEY]"), "{opaque}");
    assert_hidden(&opaque);
}

#[tokio::test]
async fn errors_and_lists_with_the_key_are_masked() {
    for kind in Wire::ALL {
        for (_, text) in encodings(KEY) {
            // Also truncated in the middle of the key.
            for before in [0, 150, 180, 190] {
                let reply_text = format!("{}{text}", "x".repeat(before));
                let server = WireServer::scripted([Fault::status(401, &reply_text)]).await;
                let (model, provider) = masked(kind, server.url(), true);
                let (_, error) = call(&model, request()).await;
                let message = error.unwrap_err().to_string();
                assert_hidden(&message);
                assert!(
                    !message.contains("canary") && !message.contains("2FuYX"),
                    "{message}"
                );
                drop(provider);
            }
        }
        let list = json!({
            "data": [{ "id": KEY }, { "id": echo(KEY) }],
            "models": [{ "name": KEY }, { "name": echo(KEY) }]
        });
        let server = WireServer::scripted([ScriptedAnswer::json(&list)]).await;
        let (_, provider) = masked(kind, server.url(), true);
        for id in provider.list().await.unwrap() {
            assert_hidden(&id);
        }
    }
}

#[tokio::test]
async fn a_compressed_reply_is_refused() {
    for stream in BOTH {
        let answer = ScriptedAnswer::from(say("hi"))
            .with(Fault::status(200, "x").header("content-encoding", "gzip"));
        let server = WireServer::scripted([answer]).await;
        let (model, _) = masked(Wire::OpenAi, server.url(), stream);
        let error = call(&model, request()).await.1.unwrap_err().to_string();
        assert!(error.contains("compressed"), "{error}");
    }
}

#[tokio::test]
async fn the_key_is_not_sent_to_a_redirect() {
    let other = WireServer::scripted([say("hi")]).await;
    let server = WireServer::scripted([Fault::Redirect(format!("{}/{KEY}", other.url()))]).await;
    let (model, _) = masked(Wire::OpenAi, server.url(), true);
    let error = call(&model, request()).await.1.unwrap_err().to_string();
    assert_hidden(&error);
    assert!(other.requests().is_empty());
}
