//! What a provider wants back goes through the log on disk and comes back exactly as it was.

use crate::support::BOTH;
use crate::support::Kind;
use crate::turns::{House, PATIENT, resilient, turn};
use lango_core::{EventBody, ModelReply, Opaque};
use lango_store::Store;
use lango_testkit::model::{delegate_and_finish, raw_call, say};
use lango_testkit::wire_server::WireServer;
use serde_json::{Value, json};
use std::sync::Arc;

/// A step of two calls with signed thoughts, as the provider writes it. Ids are the provider's, or none.
fn signed_step(kind: Kind) -> Value {
    let (one, two) = (
        json!({ "path": "a é \u{1f980}" }),
        json!({ "path": "b", "lines": [1, 2.5, null] }),
    );
    match kind {
        Kind::OpenAi => {
            json!({ "reasoning_details": [{ "type": "reasoning.encrypted", "data": "ZW5j", "index": 0 }] })
        }
        Kind::Responses => json!([
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
        Kind::Anthropic => json!([
            { "type": "thinking", "thinking": "Two files, é.\n", "signature": "c2ln+/==" },
            { "type": "redacted_thinking", "data": "ZW5j" },
            { "type": "text", "text": "I read both." },
            { "type": "tool_use", "id": "toolu_1", "name": "fs_read", "input": one },
            { "type": "tool_use", "id": "toolu_2", "name": "fs_read", "input": two },
        ]),
        Kind::Gemini => json!([
            { "text": "Two files.", "thought": true },
            { "text": "I read both." },
            { "functionCall": { "id": "g1", "name": "fs_read", "args": one }, "thoughtSignature": "c2ln+/==" },
            { "functionCall": { "name": "fs_read", "args": two } },
        ]),
    }
}

fn step(kind: Kind, data: &Value) -> ModelReply {
    ModelReply {
        text: "I read both.".to_owned(),
        calls: vec![
            raw_call("toolu_1", "fs_read", r#"{"path":"a é 🦀"}"#),
            raw_call("toolu_2", "fs_read", r#"{"path":"b","lines":[1,2.5,null]}"#),
        ],
        opaque: Some(Opaque {
            kind: kind.name().into(),
            model: None,
            data: Arc::new(data.clone()),
        }),
        ..say("")
    }
}

/// The part of the second request of the loop in which the step comes back.
fn came_back(kind: Kind, body: &Value) -> Value {
    match kind {
        Kind::OpenAi => json!({ "reasoning_details": body["messages"][2]["reasoning_details"] }),
        Kind::Responses => body["input"].as_array().unwrap()[1..7].into(),
        Kind::Anthropic => body["messages"][1]["content"].clone(),
        Kind::Gemini => body["contents"][1]["parts"].clone(),
    }
}

#[tokio::test]
async fn signed_thoughts_survive_the_log_on_disk_and_come_back_exactly() {
    for kind in Kind::ALL {
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
            let house = House::new(store, resilient(kind, server.url(), streaming, PATIENT));
            let mut conversation = house.start();
            let (report, _) = turn(&mut conversation, "Read a and b.").await;
            assert_eq!(
                report.answer.as_deref(),
                Some("Both read."),
                "{kind:?} {streaming}"
            );
            assert_eq!(house.tool_runs(), 2);

            let session = conversation.session().clone();
            drop((conversation, house));
            let reopened =
                Arc::new(Store::open_sqlite(&path, "lango-orchestrator".into()).unwrap());
            let house = House::new(reopened, resilient(kind, server.url(), streaming, PATIENT));
            let all = lango_core::Page {
                from: 1,
                limit: 1000,
            };
            let log = house.store.read(&session, all).await.unwrap();
            let blobs: Vec<&Opaque> = log
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
            let back = came_back(kind, &requests[2].body);
            assert_eq!(back.to_string(), data.to_string(), "{kind:?} {streaming}");
        }
    }
}
