//! Headers with secret values: where they are sent, and the message when they are refused.

use super::script::{
    ScriptedReply, card, deliver, run_call, send, settings, task, timeouts, token,
};
use super::support::{ReceivedRequest, Server, json as answer, response};
use lango_a2a::client::{Binding, HeaderName, RemoteSettings, connect};

fn with_header(url: &str) -> RemoteSettings {
    let mut settings = settings(url);
    let name = HeaderName::from_static("x-api-key");
    settings.headers = vec![(name, token("k3y-of-the-agent", &settings.masks))];
    settings.token = None;
    settings
}

fn card_of(request: &ReceivedRequest) -> serde_json::Value {
    let url = format!("http://{}", request.header("host").unwrap());
    card(&url, Binding::JsonRpc, false)
}

#[tokio::test]
async fn a_header_is_sent_only_to_the_origin_of_the_configured_url() {
    let done = || {
        deliver(
            Binding::JsonRpc,
            ScriptedReply::Whole(task("COMPLETED", "ok", &[])),
        )
    };
    let other = Server::start(move |request| match request.method.as_str() {
        "GET" => answer(200, &card_of(request)),
        _ => done(),
    })
    .await;
    let location = format!("{}/card.json", other.url);
    let first = Server::start(move |_| response(302, &[("location", &location)], "")).await;
    let moved = connect(&with_header(&first.url), &timeouts())
        .await
        .unwrap();
    assert_eq!(run_call(&moved, send("hi")).await.1.unwrap().text, "ok");
    assert_eq!(
        first.requests()[0].header("x-api-key"),
        Some("k3y-of-the-agent")
    );
    let requests = other.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests.iter().all(|one| one.header("x-api-key").is_none()));

    let configured = connect(&with_header(&other.url), &timeouts())
        .await
        .unwrap();
    assert_eq!(
        run_call(&configured, send("hi")).await.1.unwrap().text,
        "ok"
    );
    let requests = other.requests();
    assert!(
        requests[2..]
            .iter()
            .all(|one| one.header("x-api-key").is_some())
    );
}

#[tokio::test]
async fn a_header_is_not_sent_unencrypted_to_another_machine() {
    let skipped = connect(&with_header("http://agents.invalid"), &timeouts()).await;
    let error = skipped.err().unwrap().to_string();
    assert!(error.contains("is not sent over http://"), "{error}");
    assert!(error.contains("`x-api-key` of `headersEnv`"), "{error}");
}

#[tokio::test]
async fn a_refusal_names_the_headers_and_an_echo_of_their_value_is_masked() {
    let server = Server::start(|request| match request.method.as_str() {
        "GET" => answer(200, &card_of(request)),
        _ => response(401, &[], "no such key: k3y-of-the-agent"),
    })
    .await;
    let agent = connect(&with_header(&server.url), &timeouts())
        .await
        .unwrap();
    let error = run_call(&agent, send("x")).await.1.unwrap_err().detail;
    assert!(
        error.contains("does not accept the headers of `headersEnv`"),
        "{error}"
    );
    assert!(!error.contains("k3y-of"), "{error}");
}
