//! Opaque data that a provider requires back survives the log on disk unchanged.

use crate::support::BOTH;
use crate::support::Wire;
use crate::turns::{LONG_IDLE, TestRuntime, resilient, turn};
use lango_core::{EventBody, ModelReply, OpaqueData};
use lango_store::Store;
use lango_testkit::model::{delegate_and_finish, raw_call, say};
use lango_testkit::wire_server::WireServer;
use serde_json::{Value, json};
use std::sync::Arc;

/// Returns a step of two calls with signed reasoning in the provider's format, with the provider's ids or none.
fn signed_step(kind: Wire) -> Value {
    let (one, two) = (
        json!({ "path": "a é \u{1f980}" }),
        json!({ "path": "b", "lines": [1, 2.5, null] }),
    );
    match kind {
        Wire::OpenAi => {
            json!({ "reasoning_details": [{ "type": "reasoning.encrypted", "data": "ZW5j", "index": 0 }] })
        }
        Wire::Responses => json!([
            { "id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "ZW5j+/==" },
            { "id": "rs_2", "type": "reasoning", "summary": [], "encrypted_content": "ZW5k" },
            {
                "id": "msg_1_r", "type": "message", "status": "completed", "role": "assistant", "phase": "commentary",
                "content": [{ "type": "output_text", "annotations": [], "text": "I read both." }],
            },
            {
                "id": "fc_1_r", "type": "function_call", "status": "completed", "name": "fs_read",
                "call_id": "toolu_1", "arguments": "{\"path\":\"a é \u{1f980}\"}",
            },
            { "id": "x_1", "type": "something_new", "data": { "kept": [1, null] } },
            {
                "id": "fc_2_r", "type": "function_call", "status": "completed", "name": "fs_read",
                "call_id": "toolu_2", "arguments": "{\"path\":\"b\",\"lines\":[1,2.5,null]}",
            },
        ]),
        Wire::Anthropic => json!([
            { "type": "thinking", "thinking": "Two files, é.\n", "signature": "c2ln+/==" },
            { "type": "redacted_thinking", "data": "ZW5j" },
            { "type": "text", "text": "I read both." },
            { "type": "tool_use", "id": "toolu_1", "name": "fs_read", "input": one },
            { "type": "tool_use", "id": "toolu_2", "name": "fs_read", "input": two },
        ]),
        Wire::Gemini => json!([
            { "text": "Two files.", "thought": true },
            { "text": "I read both." },
            { "functionCall": { "id": "g1", "name": "fs_read", "args": one }, "thoughtSignature": "c2ln+/==" },
            { "functionCall": { "name": "fs_read", "args": two } },
        ]),
    }
}

fn step(kind: Wire, data: &Value) -> ModelReply {
    ModelReply {
        text: "I read both.".to_owned(),
        calls: vec![
            raw_call("toolu_1", "fs_read", r#"{"path":"a é 🦀"}"#),
            raw_call("toolu_2", "fs_read", r#"{"path":"b","lines":[1,2.5,null]}"#),
        ],
        opaque: Some(OpaqueData {
            kind: kind.name().into(),
            model: None,
            data: Arc::new(data.clone()),
        }),
        ..say("")
    }
}

/// Returns the part of the second request that contains the step.
fn replayed_step(kind: Wire, body: &Value) -> Value {
    match kind {
        Wire::OpenAi => json!({ "reasoning_details": body["messages"][2]["reasoning_details"] }),
        Wire::Responses => body["input"].as_array().unwrap()[1..7].into(),
        Wire::Anthropic => body["messages"][1]["content"].clone(),
        Wire::Gemini => body["contents"][1]["parts"].clone(),
    }
}

#[tokio::test]
async fn signed_reasoning_survives_the_log_unchanged() {
    for kind in Wire::ALL {
        for streaming in BOTH {
            let data = signed_step(kind);
            let script = [
                delegate_and_finish("operator", "Read a and b"),
                step(kind, &data),
                say("Both read."),
            ];
            let server = WireServer::scripted(script).await;
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("lango.db");
            let store = Arc::new(Store::open_sqlite(&path, "lango-orchestrator".into()).unwrap());
            let runtime =
                TestRuntime::new(store, resilient(kind, server.url(), streaming, LONG_IDLE));
            let mut conversation = runtime.start();
            let (report, _) = turn(&mut conversation, "Read a and b.").await;
            assert_eq!(
                report.answer.as_deref(),
                Some("Both read."),
                "{kind:?} {streaming}"
            );
            assert_eq!(runtime.tool_runs(), 2);

            let session = conversation.session().clone();
            drop((conversation, runtime));
            let reopened =
                Arc::new(Store::open_sqlite(&path, "lango-orchestrator".into()).unwrap());
            let runtime = TestRuntime::new(
                reopened,
                resilient(kind, server.url(), streaming, LONG_IDLE),
            );
            let all = lango_core::EventRange {
                from: 1,
                limit: 1000,
            };
            let log = runtime.store.read(&session, all).await.unwrap();
            let blobs: Vec<&OpaqueData> = log
                .iter()
                .filter_map(|event| match &event.body {
                    EventBody::AgentMessage { opaque, .. } => opaque.as_ref(),
                    _ => None,
                })
                .collect();
            assert_eq!(blobs.len(), 1, "{kind:?} {streaming}");
            assert_eq!(
                blobs[0].data.to_string(),
                data.to_string(),
                "{kind:?} {streaming}"
            );

            let requests = server.requests();
            let back = replayed_step(kind, &requests[2].body);
            assert_eq!(back.to_string(), data.to_string(), "{kind:?} {streaming}");
        }
    }
}
