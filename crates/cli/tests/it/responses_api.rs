//! OpenAI's Responses API through the real binary: the requests of a session with two turns, and the choice of the API.

use crate::lango::Lango;
use crate::models::{Provider, flags, run};
use lango_core::{ModelReply, OpaqueData};
use lango_testkit::model::{call, delegate_and_finish, say};
use serde_json::{Value, json};
use std::sync::Arc;

/// Returns the same reply with encrypted reasoning before its call. The call must not be sent back without the
/// reasoning.
fn after_reasoning(number: usize, reply: ModelReply) -> ModelReply {
    let call = &reply.calls[0];
    let items = json!([
        { "id": format!("rs_{number}"), "type": "reasoning", "summary": [], "encrypted_content": format!("c2VjcmV0{number}") },
        {
            "id": format!("fc_{number}_r"), "type": "function_call", "status": "completed",
            "call_id": format!("call_{number}"), "name": &*call.name, "arguments": &*call.arguments,
        },
    ]);
    ModelReply {
        opaque: Some(OpaqueData {
            kind: "responses".into(),
            model: None,
            data: Arc::new(items),
        }),
        ..reply
    }
}

fn types(body: &Value) -> Vec<&str> {
    let items = body["input"].as_array().unwrap().iter();
    items.map(|item| item["type"].as_str().unwrap()).collect()
}

#[test]
fn responses_are_not_stored_at_the_provider_and_reasoning_is_sent_back() {
    for stream in ["true", "false"] {
        let provider = Provider::new(vec![
            after_reasoning(1, delegate_and_finish("operator", "list the files")),
            after_reasoning(2, call("fs_list", json!({}))),
            say("There are notes."),
            say("As I said."),
        ]);
        let lango = Lango::new();
        let mut flags = flags("openai", provider.server.url());
        flags.extend(["-c".to_owned(), "providers.mock.api=responses".to_owned()]);
        flags.extend(["-c".to_owned(), format!("providers.mock.stream={stream}")]);
        let first = run(&lango, &flags, &["--json", "what files are here?"]).ok();
        let first = first.json();
        assert_eq!(first["answer"], "There are notes.");
        assert_eq!(
            (&first["model_calls"], &first["tool_calls"]),
            (&json!(3), &json!(1))
        );
        let session = first["session"].as_str().unwrap();
        let second = run(
            &lango,
            &flags,
            &["--json", "--session", session, "say it again"],
        )
        .ok();
        assert_eq!(second.json()["answer"], "As I said.");

        let requests = provider.server.requests();
        assert_eq!(requests.len(), 4);
        for request in &requests {
            assert_eq!(request.path, "/v1/responses");
            assert_eq!(request.body["store"], false);
            assert_eq!(
                request.body["include"],
                json!(["reasoning.encrypted_content"])
            );
            assert_eq!(request.body["stream"], stream == "true");
        }
        let step = &requests[2].body;
        let end = types(step).len() - 3;
        assert_eq!(
            types(step)[end..],
            ["reasoning", "function_call", "function_call_output"]
        );
        assert_eq!(step["input"][end]["encrypted_content"], "c2VjcmV02");
        assert_eq!(step["input"][end + 1]["id"], "fc_2_r");
        assert_eq!(
            step["input"][end + 1]["call_id"],
            step["input"][end + 2]["call_id"]
        );
        assert!(
            !step.to_string().contains("c2VjcmV01"),
            "another agent's thoughts"
        );
        let last = requests[3].body["input"].to_string();
        for text in ["what files are here?", "There are notes.", "say it again"] {
            assert!(last.contains(text), "{text}: {last}");
        }
    }
}

#[test]
fn another_base_url_uses_chat_completions_unless_configured_otherwise() {
    for (api, path) in [
        (None, "/v1/chat/completions"),
        (Some("chat"), "/v1/chat/completions"),
        (Some("responses"), "/v1/responses"),
    ] {
        let provider = Provider::new(vec![say("Hello.")]);
        let mut flags = flags("openai", provider.server.url());
        if let Some(api) = api {
            flags.extend(["-c".to_owned(), format!("providers.mock.api={api}")]);
        }
        run(&Lango::new(), &flags, &["hello"]).ok();
        assert_eq!(provider.server.requests()[0].path, path);
    }
}

#[test]
fn setting_the_api_of_a_provider_that_has_only_one_is_an_error() {
    let mut flags = flags("anthropic", "http://127.0.0.1:1");
    flags.extend(["-c".to_owned(), "providers.mock.api=responses".to_owned()]);
    let ran = run(&Lango::new(), &flags, &["hello"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    for arguments in [
        "providers.mock.api is set",
        "kind `anthropic`",
        "remove providers.mock.api",
    ] {
        assert!(ran.stderr.contains(arguments), "{}", ran.stderr);
    }
    flags.pop();
    flags.push("providers.mock.api=soap".to_owned());
    let ran = run(&Lango::new(), &flags, &["hello"]);
    assert!(
        ran.stderr.contains("`responses` or `chat`"),
        "{}",
        ran.stderr
    );
}
