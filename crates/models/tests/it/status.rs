//! Status codes, and answers that are not replies.

use crate::support::Wire;
use crate::support::{call, fault, faults, model, request, settings};
use futures_util::StreamExt;
use lango_core::{Model, ModelError, ModelFault};
use lango_models::{Provider, ProviderSettings};
use lango_secrets::{Credential, Masks, SecretValue};
use lango_testkit::model::say;
use lango_testkit::wire_server::{ClosedPort, Fault, ScriptedAnswer, WireServer};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

fn fault_name(fault: &ModelFault) -> String {
    let text = format!("{fault:?}");
    text.split([' ', '{']).next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn every_status_has_its_fault() {
    let table = [
        (400, "Refused"),
        (401, "BadKey"),
        (402, "NoCredit"),
        (403, "BadKey"),
        (404, "UnknownModel"),
        (405, "UnknownModel"),
        (408, "Overloaded"),
        (409, "Overloaded"),
        (413, "ContextTooLong"),
        (422, "Refused"),
        (429, "RateLimited"),
        (451, "Refused"),
        (500, "Overloaded"),
        (502, "Overloaded"),
        (503, "Overloaded"),
        (504, "Overloaded"),
        (529, "Overloaded"),
    ];
    let bodies = [
        None,
        Some(""),
        Some("<html>oops</html>"),
        Some("[]"),
        Some("{\"error\":\"text\"}"),
    ];
    let rows: Vec<_> = table
        .iter()
        .flat_map(|row| bodies.map(|body| (row.0, row.1, body)))
        .collect();
    for kind in Wire::ALL {
        let answer = |(status, _, body): &(u16, &str, Option<&str>)| {
            let fault = Fault::status(*status, "no");
            body.map_or(fault.clone(), |body| fault.body(body)).into()
        };
        let faults = faults(kind, rows.iter().map(answer).collect()).await;
        for (fault, (status, expected, body)) in faults.iter().zip(&rows) {
            assert_eq!(
                fault_name(fault),
                *expected,
                "{kind:?} {status} {body:?}: {fault:?}"
            );
            assert!(fault.to_string().contains(&status.to_string()), "{fault}");
        }
    }
}

#[tokio::test]
async fn error_codes_of_each_provider_are_classified() {
    for kind in Wire::ALL {
        let table = [
            (Fault::ContextTooLong, "ContextTooLong"),
            (Fault::BadKey, "BadKey"),
            (Fault::UnknownModel, "UnknownModel"),
        ];
        for (answer, expected) in table {
            let fault = fault(kind, answer).await;
            assert_eq!(fault_name(&fault), expected, "{kind:?}: {fault:?}");
        }
    }
}

#[tokio::test]
async fn an_exhausted_quota_is_not_retried() {
    let body = json!({ "error": { "message": "You exceeded your current quota", "type": "insufficient_quota",
                                  "code": "insufficient_quota" } });
    let fault = fault(Wire::OpenAi, Fault::rate_limited("1").body(body)).await;
    assert_eq!(fault_name(&fault), "NoCredit", "{fault:?}");
    assert!(!fault.is_transient() && fault.is_setup_error());
    let text = fault.to_string();
    assert!(
        text.starts_with("the account has no credit left: "),
        "{text}"
    );
}

#[tokio::test]
async fn an_account_without_credit_is_recognized_by_the_message_unless_a_delay_is_given() {
    for (status, message) in [
        (400, "Your credit balance is too low to access the API."),
        (403, "Your team has used all available credits"),
        (429, "Insufficient credits. Add more at https://example.com"),
        (
            429,
            "You exceeded your current quota, please check your plan and billing details.",
        ),
    ] {
        let error = fault(Wire::OpenAi, Fault::status(status, message)).await;
        assert_eq!(fault_name(&error), "NoCredit", "{status} {message}");
        let delayed = Fault::status(status, message).header("retry-after", "20");
        let error = fault(Wire::OpenAi, delayed).await;
        assert_ne!(fault_name(&error), "NoCredit", "{status} {message}");
    }
    let error = fault(
        Wire::OpenAi,
        Fault::status(429, "quota of requests per minute"),
    )
    .await;
    assert_eq!(fault_name(&error), "RateLimited");
}

/// Returns the text of the error for this answer.
async fn error_text(answer: impl Into<ScriptedAnswer>) -> (String, String) {
    let server = WireServer::scripted([answer.into()]).await;
    let model = model(Wire::OpenAi, server.url(), true);
    let mut events = model.call(request());
    loop {
        match events.next().await {
            Some(Err(error)) => return (error.to_string(), server.url().to_owned()),
            Some(Ok(_)) => {}
            None => panic!("no error"),
        }
    }
}

#[tokio::test]
async fn every_error_names_the_address_and_no_error_quotes_a_page() {
    let page = "<!DOCTYPE html><html><head><title>Welcome to nginx</title></head></html>";
    for answer in [
        ScriptedAnswer::from(Fault::status(502, "").body(page)),
        Fault::status(429, "").body(page).into(),
        Fault::status(404, "").body(page).into(),
        Fault::status(400, "").body(page).into(),
        ScriptedAnswer::bytes("text/html", page),
    ] {
        let (text, url) = error_text(answer).await;
        assert!(text.contains(&format!("(the address: {url}/v1)")), "{text}");
        assert!(
            text.contains("a web page titled \"Welcome to nginx\""),
            "{text}"
        );
        assert!(!text.contains('<'), "{text}");
    }
    for answer in [
        ScriptedAnswer::from(Fault::CutAfter(40)),
        Fault::HangUp.into(),
        Fault::EmptyJson.into(),
        Fault::EmptyBody.into(),
        Fault::status(402, "pay").into(),
    ] {
        let (text, url) = error_text(answer.clone()).await;
        assert!(
            text.contains(&format!("(the address: {url}/v1)")),
            "{answer:?}: {text}"
        );
    }
}

#[tokio::test]
async fn a_server_without_tls_is_named_with_the_address_to_try() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    // A web server answers a handshake with an error in plain text.
    let server = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.readable().await.unwrap();
        let answer = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(answer).await.unwrap();
        // Waits until the client has read the answer and hung up.
        let _ = stream.read_to_end(&mut Vec::new()).await;
    };
    let url = format!("https://{address}");
    let model = model(Wire::OpenAi, &url, true);
    let ((_, end), ()) = tokio::join!(call(&model, request()), server);
    let fault = end.unwrap_err();
    assert_eq!(fault_name(&fault), "Unreachable", "{fault:?}");
    let text = fault.to_string();
    let advice = format!("{url}/v1: the server does not speak TLS; try http://{address}/v1");
    assert!(text.ends_with(&advice), "{text}");
}

#[tokio::test]
async fn errors_without_codes_are_classified_by_their_message() {
    for message in [
        "This model's maximum context length is 4096 tokens",
        "the request exceeds the available context size, try increasing it",
        "Input is larger than the context window",
    ] {
        let body = json!({ "error": { "message": message, "code": 400 } });
        let fault = fault(Wire::OpenAi, Fault::status(400, "").body(body)).await;
        assert_eq!(fault_name(&fault), "ContextTooLong", "{message}");
    }
    let body = json!({ "error": { "message": "no such model", "code": "model_not_found" } });
    let fault = fault(Wire::OpenAi, Fault::status(400, "").body(body)).await;
    assert_eq!(fault_name(&fault), "UnknownModel");
}

#[tokio::test]
async fn an_error_with_status_200_is_reported() {
    for (code, expected) in [
        (json!(429), "RateLimited"),
        (json!(402), "NoCredit"),
        (json!("502"), "Overloaded"),
        (json!(null), "Overloaded"),
    ] {
        let body = json!({ "error": { "message": "no", "code": code } });
        for answer in [ScriptedAnswer::json(&body), ScriptedAnswer::frames([&body])] {
            let fault = fault(Wire::OpenAi, answer).await;
            assert_eq!(fault_name(&fault), expected, "{code}: {fault:?}");
        }
    }
}

#[tokio::test]
async fn retry_after_is_read_in_all_forms() {
    let table = [
        (vec![("retry-after", "7")], Some(7000)),
        (vec![("retry-after", "0")], Some(0)),
        (vec![("retry-after", "1.25")], Some(1250)),
        (
            vec![("retry-after-ms", "150"), ("retry-after", "9")],
            Some(150),
        ),
        (
            vec![("retry-after-ms", "soon"), ("retry-after", "9")],
            Some(9000),
        ),
        (
            vec![("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")],
            Some(0),
        ),
        (vec![("retry-after", "-5")], None),
        (vec![("retry-after", "NaN")], None),
        (vec![("retry-after", "inf")], Some(86_400_000)),
        (vec![("retry-after", "1e300")], Some(86_400_000)),
        (vec![], None),
    ];
    for kind in Wire::ALL {
        let answer = |(headers, _): &(Vec<(&str, &str)>, Option<u64>)| {
            let add = |fault: Fault, (name, value): &(&str, &str)| fault.header(name, value);
            headers
                .iter()
                .fold(Fault::status(429, "slow down"), add)
                .into()
        };
        let faults = faults(kind, table.iter().map(answer).collect()).await;
        for (fault, (headers, expected)) in faults.into_iter().zip(&table) {
            match fault {
                ModelFault::RateLimited { retry_after_ms, .. } => {
                    assert_eq!(retry_after_ms, *expected, "{headers:?}");
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn geminis_retry_delay_is_read_from_the_details() {
    let body = json!({ "error": { "code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED", "details": [
        { "@type": "type.googleapis.com/google.rpc.Help" },
        { "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s" },
    ] } });
    let fault = fault(Wire::Gemini, Fault::status(429, "").body(body)).await;
    assert!(
        matches!(
            fault,
            ModelFault::RateLimited {
                retry_after_ms: Some(34_500),
                ..
            }
        ),
        "{fault:?}"
    );
}

#[tokio::test]
async fn answers_that_are_not_replies_are_malformed() {
    for kind in Wire::ALL {
        for spoiled in [
            Fault::Html,
            Fault::EmptyBody,
            Fault::EmptyJson,
            Fault::HangUp,
        ] {
            for streaming in crate::support::BOTH {
                let server = WireServer::scripted([spoiled.clone()]).await;
                let (events, end) = call(&model(kind, server.url(), streaming), request()).await;
                let fault = end.unwrap_err();
                assert!(
                    fault.is_transient() && events.is_empty(),
                    "{kind:?} {spoiled:?}: {fault:?}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_closed_port_is_unreachable() {
    let port = ClosedPort::new();
    for kind in Wire::ALL {
        let (_, end) = call(&model(kind, port.url(), true), request()).await;
        let fault = end.unwrap_err();
        assert_eq!(fault_name(&fault), "Unreachable");
        let text = fault.to_string();
        assert!(
            fault.is_setup_error() && text.contains(port.url()),
            "{text}"
        );
        assert!(text.ends_with("; is the server running?"), "{text}");
        assert_eq!(fault.summary(), "it cannot be reached");
    }
}

#[tokio::test]
async fn the_key_does_not_follow_a_redirect() {
    for kind in Wire::ALL {
        let elsewhere = WireServer::scripted([say("trust me")]).await;
        let to = format!("{}/v1/chat/completions", elsewhere.url());
        let fault = fault(kind, Fault::Redirect(to.clone())).await;
        assert!(
            fault.is_setup_error() && fault.to_string().contains(&to),
            "{fault}"
        );
        assert!(elsewhere.requests().is_empty());
    }
}

#[tokio::test]
async fn a_rejected_key_is_reported_with_its_source_and_not_shown() {
    let server = WireServer::scripted([Fault::BadKey]).await;
    let provider = Provider::new(settings(Wire::Anthropic, server.url()));
    let error: ModelError = provider.list().await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("THE_KEY") && text.contains("anthropic"),
        "{text}"
    );
    assert!(!text.contains("the-key"), "{text}");
}

#[tokio::test]
async fn a_key_with_invalid_characters_is_not_sent() {
    let server = WireServer::scripted([say("ok")]).await;
    let settings = ProviderSettings {
        api_key: Some(Credential::fixed(
            "KEY",
            SecretValue::new("a\nb"),
            &Masks::default(),
        )),
        ..settings(Wire::OpenAi, server.url())
    };
    let (_, end) = call(&Provider::new(settings).model("m"), request()).await;
    assert_eq!(fault_name(&end.unwrap_err()), "NoKey");
    assert!(server.requests().is_empty());
}
