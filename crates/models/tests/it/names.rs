//! Function names that providers forbid, in requests and replies.

use crate::support::Wire;
use crate::support::{assistant, calls_of, function, model, read_for, request, result, sent, user};
use lango_core::ModelRequest;
use lango_testkit::model::calls;
use lango_testkit::wire_server::{ScriptedAnswer, WireServer};
use serde_json::json;

/// Returns a request with these offered tools and with calls of these tools in its history.
fn request_with(offered: &[&str], called: &[&str]) -> ModelRequest {
    let past: Vec<(String, &str)> = called
        .iter()
        .enumerate()
        .map(|(at, name)| (format!("c{at}"), *name))
        .collect();
    let calls: Vec<(&str, &str, &str)> =
        past.iter().map(|(id, name)| (&**id, *name, "{}")).collect();
    let mut messages = vec![user("x")];
    if !calls.is_empty() {
        messages.push(assistant("", &calls, None));
    }
    messages.extend(past.iter().map(|(id, name)| result(id, name, "ok")));
    ModelRequest {
        messages,
        functions: offered.iter().map(|name| function(name)).collect(),
        ..request()
    }
}

fn is_accepted(name: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.len() <= 64 && name.starts_with(first) && name.chars().all(good)
}

#[tokio::test]
async fn a_name_with_a_dot_and_one_with_an_underscore_stay_distinct() {
    for kind in Wire::ALL {
        for offered in [["a.b", "a_b"], ["a_b", "a.b"]] {
            let request = request_with(&offered, &[]);
            let recorded = sent(kind, request.clone(), true).await;
            let names = recorded.functions();
            assert!(
                names.iter().all(|name| is_accepted(name)) && names[0] != names[1],
                "{names:?}"
            );
            let at = offered.iter().position(|name| *name == "a_b").unwrap();
            assert_eq!(names[at], "a_b", "a name that is allowed is kept");
            let answer =
                ScriptedAnswer::from(calls([(&*names[0], json!({})), (&*names[1], json!({}))]));
            let (_, end) = read_for(kind, answer, request).await;
            let called = end.unwrap();
            assert_eq!(calls_of(&called), [(offered[0], "{}"), (offered[1], "{}")]);
        }
    }
}

#[tokio::test]
async fn names_in_the_history_that_are_not_offered_are_replaced_too() {
    let long = "x".repeat(200);
    let wild = ["functions.exec", "", "9 lives", "-dash", "ü", "a b!", &long];
    for kind in Wire::ALL {
        for offered in [&[][..], &["fs_read"][..]] {
            let body = sent(kind, request_with(offered, &wild), true).await.body;
            let names = names_in(kind, &body);
            assert_eq!(names.len(), wild.len());
            assert!(names.iter().all(|name| is_accepted(name)), "{names:?}");
            let mut apart = names.clone();
            apart.sort();
            apart.dedup();
            assert_eq!(apart.len(), wild.len(), "{names:?}");
        }
    }
}

/// Returns the names of the calls in the assistant's message.
fn names_in(kind: Wire, body: &serde_json::Value) -> Vec<String> {
    if kind == Wire::Responses {
        let items = body["input"].as_array().unwrap().iter();
        let calls = items.filter(|item| item["type"] == "function_call");
        return calls
            .map(|call| call["name"].as_str().unwrap().to_owned())
            .collect();
    }
    let (list, name) = match kind {
        Wire::OpenAi | Wire::Responses => ("/messages/2/tool_calls", "/function/name"),
        Wire::Anthropic => ("/messages/1/content", "/name"),
        Wire::Gemini => ("/contents/1/parts", "/functionCall/name"),
    };
    let list = body.pointer(list).unwrap().as_array().unwrap();
    let name = |call: &serde_json::Value| call.pointer(name).unwrap().as_str().unwrap().to_owned();
    list.iter().map(name).collect()
}

#[tokio::test]
async fn a_past_call_uses_the_same_name_as_its_offered_function() {
    for kind in Wire::ALL {
        let recorded = sent(kind, request_with(&["a.b", "a_b"], &["a.b", "a_b"]), true).await;
        assert_eq!(names_in(kind, &recorded.body), recorded.functions());
    }
    let gemini = sent(
        Wire::Gemini,
        request_with(&["a.b", "a_b"], &["a.b", "a_b"]),
        true,
    )
    .await;
    let results = gemini.body["contents"][2]["parts"]
        .as_array()
        .unwrap()
        .clone();
    let names: Vec<_> = results
        .iter()
        .map(|part| part["functionResponse"]["name"].clone())
        .collect();
    assert_eq!(names, gemini.functions());
}

#[tokio::test]
async fn two_long_names_with_the_same_prefix_stay_distinct() {
    let (one, two) = (
        format!("{}1", "x".repeat(80)),
        format!("{}2", "x".repeat(80)),
    );
    for kind in Wire::ALL {
        let names = sent(kind, request_with(&[&one, &two], &[]), true)
            .await
            .functions();
        assert!(
            names[0] != names[1] && names.iter().all(|name| is_accepted(name)),
            "{names:?}"
        );
    }
}

#[tokio::test]
async fn ids_of_another_provider_are_made_valid_for_anthropic() {
    let mut request = request_with(&["read"], &[]);
    request.messages = vec![
        user("x"),
        assistant("", &[("functions.read:0", "read", "{}")], None),
        result("functions.read:0", "read", "ok"),
    ];
    let body = sent(Wire::Anthropic, request, true).await.body;
    assert_eq!(body["messages"][1]["content"][0]["id"], "functions_read_0");
    assert_eq!(
        body["messages"][2]["content"][0]["tool_use_id"],
        "functions_read_0"
    );
}

#[tokio::test]
async fn long_ids_of_another_provider_are_shortened_for_openai() {
    let id = |end: &str| format!("{}{end}", "x".repeat(60));
    let (one, two) = (id("1"), id("2"));
    let mut request = request_with(&["read"], &[]);
    request.messages = vec![
        user("x"),
        assistant("", &[(&one, "read", "{}"), (&two, "read", "{}")], None),
        result(&one, "read", "ok"),
        result(&two, "read", "ok"),
    ];
    let body = sent(Wire::OpenAi, request, true).await.body;
    let sent = &body["messages"][2]["tool_calls"][1]["id"];
    assert_eq!(
        (sent.as_str().unwrap().len(), sent),
        (40, &body["messages"][4]["tool_call_id"])
    );
}

#[tokio::test]
async fn the_models_of_a_provider_are_listed_by_the_ids_used_in_requests() {
    let lists = [
        (
            Wire::OpenAi,
            "/v1/models",
            json!({ "data": [{ "id": "m1" }, { "id": "m2" }] }),
        ),
        (
            Wire::Responses,
            "/v1/models",
            json!({ "data": [{ "id": "m1" }, { "id": "m2" }] }),
        ),
        (
            Wire::Anthropic,
            "/v1/models?limit=1000",
            json!({ "data": [{ "id": "m1" }, { "id": "m2" }] }),
        ),
        (
            Wire::Gemini,
            "/v1beta/models?pageSize=1000",
            json!({ "models": [{ "name": "models/m1" }, { "name": "models/m2" }] }),
        ),
    ];
    for (kind, path, list) in lists {
        let server = WireServer::scripted([ScriptedAnswer::json(&list)]).await;
        let provider = lango_models::Provider::new(crate::support::settings(kind, server.url()));
        assert_eq!(provider.list().await.unwrap(), ["m1", "m2"]);
        assert_eq!(
            (&*server.requests()[0].method, &*server.requests()[0].path),
            ("GET", path)
        );
    }
    let server = WireServer::scripted([lango_testkit::model::say("ok")]).await;
    let gemini_model = model(Wire::Gemini, server.url(), true);
    assert_eq!(lango_core::Model::name(&gemini_model), "gemini/m");
}
