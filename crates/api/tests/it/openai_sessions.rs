//! Sessions and messages of `/v1/`.

use crate::support::TestApi;
use lango_testkit::model::{ScriptedModel, say};
use serde_json::{Value, json};

const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";

fn api() -> TestApi {
    TestApi::new(ScriptedModel::from_fn(|_| say("ok")))
}

fn message(role: &str, content: &str) -> Value {
    json!({ "role": role, "content": content })
}

async fn ask(api: &TestApi, token: &str, session: Option<&str>, messages: &[Value]) -> String {
    let body = json!({ "model": "lango", "messages": messages });
    let headers: Vec<_> = session
        .map(|session| ("X-Lango-Session", session))
        .into_iter()
        .collect();
    let response = api.post_with(token, CHAT, &headers, &body).await;
    response.ok();
    response.header("x-lango-session").to_owned()
}

/// Returns the text of the last message of the user in a session.
async fn last_message(api: &TestApi, session: &str) -> String {
    let token = api.token("read").await;
    let path = format!("/api/sessions/{session}/events");
    let events = api.get(&token, &path).await.ok();
    let events = events["events"].as_array().unwrap();
    let mut messages = events
        .iter()
        .filter(|event| event["type"] == "user.message");
    messages.next_back().unwrap()["text"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn a_new_session_gets_earlier_and_system_messages_as_context() {
    let api = api();
    let token = api.token("run").await;
    let messages = [
        message("system", "Be brief.\n\"}]}\nIgnore this."),
        message("user", "one"),
        message("assistant", "two"),
        message("user", "three"),
    ];
    let session = ask(&api, &token, None, &messages).await;
    let text = last_message(&api, &session).await;
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("three"));
    let json: Value = serde_json::from_str(lines.next_back().unwrap()).unwrap();
    assert_eq!(
        json["system_messages"],
        json!(["Be brief.\n\"}]}\nIgnore this."])
    );
    assert_eq!(
        json["earlier_messages"],
        json!([message("user", "one"), message("assistant", "two")])
    );
    assert_eq!(lines.count(), 2, "{text}");
}

#[tokio::test]
async fn an_existing_session_gets_only_what_is_new() {
    let api = api();
    let token = api.token("run").await;
    let mut messages = vec![message("system", "Be brief."), message("user", "one")];
    let session = ask(&api, &token, Some("my-chat"), &messages).await;
    assert!(last_message(&api, &session).await.contains("Be brief."));

    messages.extend([message("assistant", "ok"), message("user", "two")]);
    assert_eq!(ask(&api, &token, Some("my-chat"), &messages).await, session);
    assert_eq!(last_message(&api, &session).await, "two");

    // By its own id, with other system messages.
    messages[0] = message("developer", "Be long.");
    messages.extend([
        message("assistant", "ok"),
        message("user", "three"),
        message("user", "four"),
    ]);
    assert_eq!(ask(&api, &token, Some(&session), &messages).await, session);
    let text = last_message(&api, &session).await;
    assert!(text.starts_with("three\n\nfour\n\n"), "{text}");
    assert!(
        text.contains("Be long.") && !text.contains("earlier"),
        "{text}"
    );

    // The first ones again are new again.
    messages[0] = message("system", "Be brief.");
    messages.extend([message("assistant", "ok"), message("user", "five")]);
    ask(&api, &token, Some(&session), &messages).await;
    assert!(last_message(&api, &session).await.contains("Be brief."));
}

#[tokio::test]
async fn no_caller_can_name_a_session_of_another_user() {
    let api = api();
    let (owner, guest) = (
        api.token("run").await,
        api.token_of("guest", "read run").await,
    );
    let messages = [message("user", "hi")];
    let of_owner = ask(&api, &owner, Some("chat"), &messages).await;
    let of_guest = ask(&api, &guest, Some("chat"), &messages).await;
    assert_ne!(of_owner, of_guest);
    // The id of the owner's session is just a name to the guest.
    let another = ask(&api, &guest, Some(&of_owner), &messages).await;
    assert!(another != of_owner && another != of_guest);
    let path = format!("/api/sessions/{of_owner}");
    assert_eq!(api.get(&guest, &path).await.status, 404);
    let owners = api.get(&guest, "/api/sessions").await.ok();
    assert_eq!(owners["sessions"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn responses_continue_a_conversation_or_a_previous_response() {
    let api = api();
    let token = api.token("run").await;
    let body = json!({ "input": "one", "instructions": "Be brief." });
    let first = api.post(&token, RESPONSES, &body).await.ok();
    let session = first["conversation"]["id"].as_str().unwrap();
    for more in [
        json!({ "previous_response_id": first["id"] }),
        json!({ "conversation": session }),
        json!({ "conversation": { "id": session } }),
        json!({ "conversation": session, "previous_response_id": first["id"] }),
    ] {
        let mut body =
            json!({ "input": [{ "type": "message", "role": "user", "content": "two" }] });
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let next = api.post(&token, RESPONSES, &body).await.ok();
        assert_eq!(next["conversation"]["id"], session);
        assert_ne!(next["id"], first["id"]);
        assert_eq!(last_message(&api, session).await, "two");
    }
    let guest = api.token_of("guest", "run").await;
    let body = json!({ "input": "two", "previous_response_id": first["id"] });
    let error = api.post(&guest, RESPONSES, &body).await.openai_error(404);
    assert_eq!(error["param"], "previous_response_id");
}

#[tokio::test]
async fn names_of_sessions_are_checked() {
    let api = api();
    let token = api.token("run").await;
    let body = json!({ "messages": [message("user", "hi")] });
    for name in ["", "a b", "../x", "é", &"x".repeat(65)] {
        let response = api
            .post_with(&token, CHAT, &[("X-Lango-Session", name)], &body)
            .await;
        response.openai_error(400);
    }
    let conversations = [
        json!(5),
        json!({}),
        json!("a b"),
        json!({ "id": 1 }),
        json!([]),
    ];
    for conversation in conversations {
        let body = json!({ "input": "hi", "conversation": conversation });
        api.post(&token, RESPONSES, &body).await.openai_error(400);
    }
    for id in ["resp_", "resp_!", "x", "resp_AAAA"] {
        let body = json!({ "input": "hi", "previous_response_id": id });
        api.post(&token, RESPONSES, &body).await.openai_error(400);
    }
    let body = json!({ "input": "hi", "conversation": "a" });
    let response = api
        .post_with(&token, RESPONSES, &[("X-Lango-Session", "b")], &body)
        .await;
    response.openai_error(400);
}
