//! Replies without vectors, or with the wrong ones.

use crate::embedding::{embed, embedder, reply, settings};
use lango_core::EmbedError;
use lango_models::{EmbeddingKind, EmbeddingSettings, ProviderTimeouts, connect_embedder};
use lango_testkit::wire_server::{ClosedPort, Fault, ScriptedAnswer, WireServer};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Embeds two texts with these answers. Returns the error and the number of requests.
async fn error(kind: EmbeddingKind, answers: Vec<ScriptedAnswer>) -> (EmbedError, usize) {
    let server = WireServer::scripted(answers).await;
    let embedder = embedder(kind, server.url()).await;
    let error = embed(&*embedder, &["a", "b"]).await.unwrap_err();
    assert!(error.to_string().len() < 600, "an error text stays short");
    assert!(!error.detail.contains("the-secret"), "{error}");
    (error, server.requests().len())
}

/// Returns the error for a reply that is wrong for good, so that it is not requested again.
async fn wrong(kind: EmbeddingKind, body: &Value) -> String {
    let (error, requests) = error(kind, vec![ScriptedAnswer::json(body)]).await;
    assert!(!error.is_transient, "{error}");
    assert_eq!(requests, 1);
    error.to_string()
}

#[tokio::test]
async fn the_wrong_number_or_length_of_vectors_is_an_error() {
    for kind in EmbeddingKind::ALL {
        let name = kind.name();
        let of = |vectors: &[Value]| reply(kind, vectors);
        assert_eq!(
            wrong(kind, &of(&[json!([1, 2])])).await,
            format!("my-{name} gave no vectors: its reply has 1 vectors for 2 texts")
        );
        let three = wrong(kind, &of(&[json!([1, 2]), json!([1, 2]), json!([1, 2])])).await;
        assert!(three.contains("has 3 vectors"), "{three}");
        let longer = wrong(kind, &of(&[json!([1, 2]), json!([1, 2, 3])])).await;
        assert!(
            longer.contains("a vector of `m` has 3 dimensions, not 2"),
            "{longer}"
        );
        let empty = wrong(kind, &of(&[json!([]), json!([])])).await;
        assert!(empty.contains("has 0 dimensions, not 2"), "{empty}");
        let large = wrong(kind, &of(&[json!([1, 1e39]), json!([1, 2])])).await;
        assert!(large.contains("number"), "{large}");
    }
}

#[tokio::test]
async fn values_that_are_not_numbers_are_an_error() {
    for kind in EmbeddingKind::ALL {
        for odd in [
            json!("NaN"),
            json!(null),
            json!([1]),
            json!({}),
            json!(true),
        ] {
            let body = reply(kind, &[json!([1, 2]), json!([1, odd])]);
            let text = wrong(kind, &body).await;
            assert!(text.contains("its reply contains no vectors: "), "{text}");
        }
        for odd in [json!("AAAA"), json!(null), json!(3)] {
            let text = wrong(kind, &reply(kind, &[odd.clone(), odd])).await;
            assert!(text.contains("its reply contains no vectors: "), "{text}");
        }
        for odd in [
            json!([]),
            json!({}),
            json!(7),
            json!({ "data": {}, "embeddings": 1 }),
        ] {
            wrong(kind, &odd).await;
        }
        let long = json!("x".repeat(3_000_000));
        wrong(kind, &reply(kind, &[long.clone(), long])).await;
    }
}

#[tokio::test]
async fn a_duplicate_or_too_large_index_is_an_error() {
    for indices in [[0, 0], [0, 2], [1, 1], [5, usize::MAX]] {
        let rows = indices.map(|index| json!({ "index": index, "embedding": [1, 2] }));
        let text = wrong(EmbeddingKind::OpenAi, &json!({ "data": rows })).await;
        assert!(text.contains("is a duplicate or too high"), "{text}");
    }
    let rows = json!([{ "index": -1, "embedding": [1, 2] }, { "index": 0.5, "embedding": [1, 2] }]);
    wrong(EmbeddingKind::OpenAi, &json!({ "data": rows })).await;
}

#[tokio::test]
async fn a_transient_fault_is_retried() {
    let faults = [
        Fault::rate_limited("0"),
        Fault::status(503, "overloaded").header("retry-after", "0"),
        Fault::HangUp,
        Fault::CutAfter(10),
        Fault::Garbage,
        Fault::EmptyBody,
        Fault::Html,
        Fault::ErrorInside,
    ];
    let cases = EmbeddingKind::ALL
        .into_iter()
        .flat_map(|kind| faults.iter().map(move |fault| assert_retried(kind, fault)));
    futures_util::future::join_all(cases).await;
}

async fn assert_retried(kind: EmbeddingKind, fault: &Fault) {
    let good = ScriptedAnswer::json(&reply(kind, &[json!([1, 2]), json!([3, 4])]));
    let server = WireServer::scripted([good.clone().with(fault.clone()), good]).await;
    let embedder = embedder(kind, server.url()).await;
    let vectors = embed(&*embedder, &["a", "b"]).await;
    let vectors = vectors.unwrap_or_else(|error| panic!("{kind:?} {fault:?}: {error}"));
    assert_eq!(vectors, [[1.0, 2.0], [3.0, 4.0]]);
}

#[tokio::test]
async fn retry_after_is_honoured_unless_it_is_too_long() {
    let good = || ScriptedAnswer::json(&reply(EmbeddingKind::OpenAi, &[json!([1, 2])]));
    let server = WireServer::scripted([Fault::rate_limited("1").into(), good()]).await;
    let embedder = embedder(EmbeddingKind::OpenAi, server.url()).await;
    embed(&*embedder, &["a"]).await.unwrap();
    let requests = server.requests();
    assert!(requests[1].at - requests[0].at >= Duration::from_secs(1));

    let started = Instant::now();
    let limited = vec![Fault::rate_limited("3600").into(), good()];
    let (error, requests) = error(EmbeddingKind::OpenAi, limited).await;
    assert!(error.is_transient && requests == 1, "{error}");
    assert!(error.detail.contains("wait 3600 s"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn a_request_is_tried_at_most_three_times() {
    let faults = vec![Fault::status(500, "broken").into(); 5];
    let (error, requests) = error(EmbeddingKind::Ollama, faults).await;
    assert!(error.is_transient, "{error}");
    assert_eq!(requests, 3);
}

#[tokio::test]
async fn a_permanent_fault_is_reported_without_a_retry() {
    for kind in EmbeddingKind::ALL {
        let of = |fault: Fault| error(kind, vec![fault.into()]);
        let (key, requests) = of(Fault::BadKey).await;
        assert_eq!((key.is_transient, requests), (false, 1));
        let source = "(the key: environment variable `THE_KEY`)";
        assert!(key.detail.ends_with(source), "{key}");
        let (model, requests) = of(Fault::UnknownModel).await;
        assert_eq!((model.is_transient, requests), (false, 1));
        assert!(model.detail.contains("no such model"), "{model}");
        let (long, requests) = of(Fault::ContextTooLong).await;
        assert_eq!((long.is_transient, requests), (false, 1));
        assert!(
            long.detail.starts_with("a text is too long for `m`: "),
            "{long}"
        );
        let (moved, _) = of(Fault::Redirect("http://127.0.0.1:1/".to_owned())).await;
        assert!(moved.detail.contains("has moved"), "{moved}");
    }
}

#[tokio::test]
async fn a_key_that_a_provider_repeats_is_masked_even_if_it_is_truncated() {
    for kind in EmbeddingKind::ALL {
        let messages = [
            "the key the-secret-key is wrong".to_owned(),
            format!("{}the-secret-key", "x".repeat(180)),
            format!("{}the-secret-key", "x".repeat(190)),
        ];
        for messages in messages {
            let answer = Fault::status(401, "").body(&messages).into();
            let (told, _) = error(kind, vec![answer]).await;
            assert!(told.detail.contains("[secret TH"), "{told}");
            assert!(!told.detail.contains("the-se"), "{told}");
            // Also with status 200 in place of a vector.
            let answer = ScriptedAnswer::json(&reply(kind, &[json!(messages), json!([1, 2])]));
            error(kind, vec![answer]).await;
        }
    }
}

#[tokio::test]
async fn an_endless_reply_is_rejected() {
    let mut body = b"{\"embeddings\": [[1".to_vec();
    body.resize(17 * 1024 * 1024, b'0');
    let huge = ScriptedAnswer::bytes("application/json", body);
    let (error, _) = error(EmbeddingKind::Ollama, vec![huge; 3]).await;
    assert!(error.detail.contains("more than 16777216 bytes"), "{error}");
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let server =
        WireServer::scripted(vec![ScriptedAnswer::bytes("application/json", deep); 3]).await;
    let embedder = embedder(EmbeddingKind::Gemini, server.url()).await;
    embed(&*embedder, &["a"]).await.unwrap_err();
}

#[tokio::test]
async fn a_silent_provider_times_out() {
    let silences = [
        Fault::SilentBeforeHead,
        Fault::SilentBeforeBody,
        Fault::SilentAfter(5),
    ];
    futures_util::future::join_all(silences.map(assert_times_out)).await;
}

async fn assert_times_out(silence: Fault) {
    let answer = ScriptedAnswer::json(&json!({ "embeddings": [] })).with(silence);
    let server = WireServer::start(move |_| answer.clone()).await;
    let settings = EmbeddingSettings {
        timeouts: ProviderTimeouts {
            idle: Duration::from_millis(100),
            ..ProviderTimeouts::default()
        },
        ..settings(EmbeddingKind::Ollama, server.url())
    };
    let embedder = connect_embedder(settings).await.unwrap();
    let result = embed(&*embedder, &["a"]);
    let result = tokio::time::timeout(Duration::from_secs(20), result).await;
    let error = result.expect("silence is ended").unwrap_err();
    assert!(error.is_transient, "{error}");
    assert!(error.detail.contains("sent nothing for"), "{error}");
}

#[tokio::test]
async fn connecting_to_an_unreachable_provider_without_dimensions_fails() {
    let nowhere = ClosedPort::new();
    let settings = EmbeddingSettings {
        dimensions: None,
        ..settings(EmbeddingKind::Ollama, nowhere.url())
    };
    let error = connect_embedder(settings).await.map(|_| ()).unwrap_err();
    assert!(error.is_transient, "{error}");
    assert!(error.detail.contains("cannot be reached"), "{error}");
}

#[tokio::test]
async fn impossible_dimensions_are_an_error() {
    for vector in [json!([]), json!(vec![0; 70_000])] {
        let answer = ScriptedAnswer::json(&reply(EmbeddingKind::Gemini, &[vector]));
        let server = WireServer::scripted([answer]).await;
        let settings = EmbeddingSettings {
            dimensions: None,
            ..settings(EmbeddingKind::Gemini, server.url())
        };
        let error = connect_embedder(settings).await.map(|_| ()).unwrap_err();
        assert!(error.detail.starts_with("its vectors have "), "{error}");
    }
}
