//! Headers with secret values: where they go, and what is said when they are refused.

use super::script::{Said, card, deliver, hear, patience, send, settings, task, token};
use super::support::{Seen, Server, json as answer, response};
use lango_a2a::client::{Binding, HeaderName, RemoteSettings, connect};

fn with_header(url: &str) -> RemoteSettings {
    let mut settings = settings(url);
    let name = HeaderName::from_static("x-api-key");
    settings.headers = vec![(name, token("k3y-of-the-agent", &settings.masks))];
    settings.token = None;
    settings
}

fn card_of(seen: &Seen) -> serde_json::Value {
    let url = format!("http://{}", seen.header("host").unwrap());
    card(&url, Binding::JsonRpc, false)
}

#[tokio::test]
async fn a_header_goes_to_the_origin_of_the_configured_url_and_nowhere_else() {
    let done = || deliver(Binding::JsonRpc, Said::Whole(task("COMPLETED", "ok", &[])));
    let other = Server::start(move |seen| match seen.method.as_str() {
        "GET" => answer(200, &card_of(seen)),
        _ => done(),
    })
    .await;
    let location = format!("{}/card.json", other.url);
    let first = Server::start(move |_| response(302, &[("location", &location)], "")).await;
    let moved = connect(&with_header(&first.url), &patience())
        .await
        .unwrap();
    assert_eq!(hear(&moved, send("hi")).await.1.unwrap().text, "ok");
    assert_eq!(
        first.seen()[0].header("x-api-key"),
        Some("k3y-of-the-agent")
    );
    let seen = other.seen();
    assert_eq!(seen.len(), 2);
    assert!(seen.iter().all(|one| one.header("x-api-key").is_none()));

    let at_home = connect(&with_header(&other.url), &patience())
        .await
        .unwrap();
    assert_eq!(hear(&at_home, send("hi")).await.1.unwrap().text, "ok");
    let seen = other.seen();
    assert!(
        seen[2..]
            .iter()
            .all(|one| one.header("x-api-key").is_some())
    );
}

#[tokio::test]
async fn a_header_does_not_leave_this_machine_in_the_open() {
    let skipped = connect(&with_header("http://agents.invalid"), &patience()).await;
    let fault = skipped.err().unwrap().to_string();
    assert!(fault.contains("is not sent over http://"), "{fault}");
    assert!(fault.contains("`x-api-key` of `headersEnv`"), "{fault}");
}

#[tokio::test]
async fn a_refusal_names_the_headers_and_an_echo_of_their_value_is_masked() {
    let server = Server::start(|seen| match seen.method.as_str() {
        "GET" => answer(200, &card_of(seen)),
        _ => response(401, &[], "no such key: k3y-of-the-agent"),
    })
    .await;
    let agent = connect(&with_header(&server.url), &patience())
        .await
        .unwrap();
    let error = hear(&agent, send("x")).await.1.unwrap_err().detail;
    assert!(
        error.contains("does not accept the headers of `headersEnv`"),
        "{error}"
    );
    assert!(!error.contains("k3y-of"), "{error}");
}
