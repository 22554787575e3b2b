//! What becomes of status codes and of answers that are none.

use crate::support::Kind;
use crate::support::{call, fault, faults, model, request, settings};
use lango_core::{ModelError, ModelFault};
use lango_models::{Provider, ProviderSettings};
use lango_secrets::{Credential, Masks, SecretValue};
use lango_testkit::model::say;
use lango_testkit::wire_server::{Answer, ClosedPort, Fault, WireServer};
use serde_json::json;

/// The name of a fault.
fn word(fault: &ModelFault) -> String {
    let text = format!("{fault:?}");
    text.split([' ', '{']).next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn every_status_has_its_fault() {
    let table = [
        (400, "Refused"),
        (401, "BadKey"),
        (402, "BadKey"),
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
    for kind in Kind::ALL {
        let answer = |(status, _, body): &(u16, &str, Option<&str>)| {
            let fault = Fault::status(*status, "no");
            body.map_or(fault.clone(), |body| fault.body(body)).into()
        };
        let faults = faults(kind, rows.iter().map(answer).collect()).await;
        for (fault, (status, expected, body)) in faults.iter().zip(&rows) {
            assert_eq!(
                word(fault),
                *expected,
                "{kind:?} {status} {body:?}: {fault:?}"
            );
            assert!(fault.to_string().contains(&status.to_string()), "{fault}");
        }
    }
}

#[tokio::test]
async fn each_providers_own_words_are_understood() {
    for kind in Kind::ALL {
        let table = [
            (Fault::ContextTooLong, "ContextTooLong"),
            (Fault::BadKey, "BadKey"),
            (Fault::UnknownModel, "UnknownModel"),
        ];
        for (answer, expected) in table {
            let fault = fault(kind, answer).await;
            assert_eq!(word(&fault), expected, "{kind:?}: {fault:?}");
        }
    }
}

#[tokio::test]
async fn what_was_paid_for_is_spent_is_no_matter_of_waiting() {
    let body = json!({ "error": { "message": "You exceeded your current quota", "type": "insufficient_quota",
                                  "code": "insufficient_quota" } });
    let fault = fault(Kind::OpenAi, Fault::rate_limited("1").body(body)).await;
    assert_eq!(word(&fault), "BadKey", "{fault:?}");
}

#[tokio::test]
async fn servers_without_codes_are_understood_by_their_words() {
    for message in [
        "This model's maximum context length is 4096 tokens",
        "the request exceeds the available context size, try increasing it",
        "Input is larger than the context window",
    ] {
        let body = json!({ "error": { "message": message, "code": 400 } });
        let fault = fault(Kind::OpenAi, Fault::status(400, "").body(body)).await;
        assert_eq!(word(&fault), "ContextTooLong", "{message}");
    }
    let body = json!({ "error": { "message": "no such model", "code": "model_not_found" } });
    let fault = fault(Kind::OpenAi, Fault::status(400, "").body(body)).await;
    assert_eq!(word(&fault), "UnknownModel");
}

#[tokio::test]
async fn an_error_under_status_200_is_the_error_that_it_says() {
    for (code, expected) in [
        (json!(429), "RateLimited"),
        (json!(402), "BadKey"),
        (json!("502"), "Overloaded"),
        (json!(null), "Overloaded"),
    ] {
        let body = json!({ "error": { "message": "no", "code": code } });
        for answer in [Answer::json(&body), Answer::frames([&body])] {
            let fault = fault(Kind::OpenAi, answer).await;
            assert_eq!(word(&fault), expected, "{code}: {fault:?}");
        }
    }
}

#[tokio::test]
async fn how_long_to_wait_is_read_in_all_its_forms() {
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
        (vec![("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT")], None),
        (vec![("retry-after", "-5")], None),
        (vec![("retry-after", "NaN")], None),
        (vec![("retry-after", "inf")], Some(86_400_000)),
        (vec![("retry-after", "1e300")], Some(86_400_000)),
        (vec![], None),
    ];
    for kind in Kind::ALL {
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
async fn gemini_says_how_long_to_wait_among_the_details() {
    let body = json!({ "error": { "code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED", "details": [
        { "@type": "type.googleapis.com/google.rpc.Help" },
        { "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s" },
    ] } });
    let fault = fault(Kind::Gemini, Fault::status(429, "").body(body)).await;
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
async fn answers_that_are_no_replies_are_not_taken_for_some() {
    for kind in Kind::ALL {
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
                    fault.is_passing() && events.is_empty(),
                    "{kind:?} {spoiled:?}: {fault:?}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_closed_port_cannot_be_reached() {
    let port = ClosedPort::new();
    for kind in Kind::ALL {
        let (_, end) = call(&model(kind, port.url(), true), request()).await;
        assert_eq!(word(&end.unwrap_err()), "Unreachable");
    }
}

#[tokio::test]
async fn a_key_does_not_follow_a_redirect() {
    for kind in Kind::ALL {
        let elsewhere = WireServer::scripted([say("trust me")]).await;
        let to = format!("{}/v1/chat/completions", elsewhere.url());
        let fault = fault(kind, Fault::Redirect(to.clone())).await;
        assert!(
            fault.is_of_the_setup() && fault.to_string().contains(&to),
            "{fault}"
        );
        assert!(elsewhere.requests().is_empty());
    }
}

#[tokio::test]
async fn a_key_that_is_not_accepted_says_where_it_came_from_and_is_not_shown() {
    let server = WireServer::scripted([Fault::BadKey]).await;
    let provider = Provider::new(settings(Kind::Anthropic, server.url()));
    let error: ModelError = provider.list().await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("THE_KEY") && text.contains("anthropic"),
        "{text}"
    );
    assert!(!text.contains("the-key"), "{text}");
}

#[tokio::test]
async fn a_key_that_no_header_can_hold_is_not_sent() {
    let server = WireServer::scripted([say("ok")]).await;
    let settings = ProviderSettings {
        api_key: Some(Credential::fixed(
            "KEY",
            SecretValue::new("a\nb"),
            &Masks::default(),
        )),
        ..settings(Kind::OpenAi, server.url())
    };
    let (_, end) = call(&Provider::new(settings).model("m"), request()).await;
    assert_eq!(word(&end.unwrap_err()), "NoKey");
    assert!(server.requests().is_empty());
}
