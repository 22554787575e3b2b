//! What becomes of replies that hold no vectors, or others than were asked for.

use crate::embedding::{embed, embedder, reply, settings};
use lango_core::EmbedError;
use lango_models::{EmbeddingKind, EmbeddingSettings, Patience, connect_embedder};
use lango_testkit::wire_server::{Answer, ClosedPort, Fault, WireServer};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The error behind these answers to two texts, and how often they were asked for.
async fn error(kind: EmbeddingKind, answers: Vec<Answer>) -> (EmbedError, usize) {
    let server = WireServer::scripted(answers).await;
    let embedder = embedder(kind, server.url()).await;
    let error = embed(&*embedder, &["a", "b"]).await.unwrap_err();
    assert!(error.to_string().len() < 600, "an error text stays short");
    assert!(!error.detail.contains("the-secret"), "{error}");
    (error, server.requests().len())
}

/// The error behind a reply that will not get better, so nobody asks again.
async fn wrong(kind: EmbeddingKind, body: &Value) -> String {
    let (error, asked) = error(kind, vec![Answer::json(body)]).await;
    assert!(!error.is_passing, "{error}");
    assert_eq!(asked, 1);
    error.to_string()
}

#[tokio::test]
async fn other_vectors_than_were_asked_for_are_refused() {
    for kind in EmbeddingKind::ALL {
        let name = kind.name();
        let of = |vectors: &[Value]| reply(kind, vectors);
        assert_eq!(
            wrong(kind, &of(&[json!([1, 2])])).await,
            format!("my-{name} gave no vectors: its reply has 1 vectors, and 2 texts were sent")
        );
        let three = wrong(kind, &of(&[json!([1, 2]), json!([1, 2]), json!([1, 2])])).await;
        assert!(three.contains("has 3 vectors"), "{three}");
        let longer = wrong(kind, &of(&[json!([1, 2]), json!([1, 2, 3])])).await;
        assert!(
            longer.contains("a vector of `m` has 3 numbers, not 2"),
            "{longer}"
        );
        let empty = wrong(kind, &of(&[json!([]), json!([])])).await;
        assert!(empty.contains("has 0 numbers, not 2"), "{empty}");
        let large = wrong(kind, &of(&[json!([1, 1e39]), json!([1, 2])])).await;
        assert!(large.contains("number"), "{large}");
    }
}

#[tokio::test]
async fn what_is_no_number_is_refused() {
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
            assert!(text.contains("its reply holds no vectors: "), "{text}");
        }
        for odd in [json!("AAAA"), json!(null), json!(3)] {
            let text = wrong(kind, &reply(kind, &[odd.clone(), odd])).await;
            assert!(text.contains("its reply holds no vectors: "), "{text}");
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
async fn an_index_that_is_there_twice_or_too_large_is_refused() {
    for indices in [[0, 0], [0, 2], [1, 1], [5, usize::MAX]] {
        let rows = indices.map(|index| json!({ "index": index, "embedding": [1, 2] }));
        let text = wrong(EmbeddingKind::OpenAi, &json!({ "data": rows })).await;
        assert!(text.contains("twice or too many"), "{text}");
    }
    let rows = json!([{ "index": -1, "embedding": [1, 2] }, { "index": 0.5, "embedding": [1, 2] }]);
    wrong(EmbeddingKind::OpenAi, &json!({ "data": rows })).await;
}

#[tokio::test]
async fn a_fault_that_may_pass_is_waited_out() {
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
        .flat_map(|kind| faults.iter().map(move |fault| is_waited_out(kind, fault)));
    futures_util::future::join_all(cases).await;
}

async fn is_waited_out(kind: EmbeddingKind, fault: &Fault) {
    let good = Answer::json(&reply(kind, &[json!([1, 2]), json!([3, 4])]));
    let server = WireServer::scripted([good.clone().with(fault.clone()), good]).await;
    let embedder = embedder(kind, server.url()).await;
    let vectors = embed(&*embedder, &["a", "b"]).await;
    let vectors = vectors.unwrap_or_else(|error| panic!("{kind:?} {fault:?}: {error}"));
    assert_eq!(vectors, [[1.0, 2.0], [3.0, 4.0]]);
}

#[tokio::test]
async fn retry_after_is_obeyed_and_a_long_one_given_up() {
    let good = || Answer::json(&reply(EmbeddingKind::OpenAi, &[json!([1, 2])]));
    let server = WireServer::scripted([Fault::rate_limited("1").into(), good()]).await;
    let embedder = embedder(EmbeddingKind::OpenAi, server.url()).await;
    embed(&*embedder, &["a"]).await.unwrap();
    let requests = server.requests();
    assert!(requests[1].at - requests[0].at >= Duration::from_secs(1));

    let begun = Instant::now();
    let limited = vec![Fault::rate_limited("3600").into(), good()];
    let (error, asked) = error(EmbeddingKind::OpenAi, limited).await;
    assert!(error.is_passing && asked == 1, "{error}");
    assert!(error.detail.contains("wait 3600 s"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn three_tries_are_enough() {
    let faults = vec![Fault::status(500, "broken").into(); 5];
    let (error, asked) = error(EmbeddingKind::Ollama, faults).await;
    assert!(error.is_passing, "{error}");
    assert_eq!(asked, 3);
}

#[tokio::test]
async fn a_fault_that_will_not_pass_is_told_at_once() {
    for kind in EmbeddingKind::ALL {
        let of = |fault: Fault| error(kind, vec![fault.into()]);
        let (key, asked) = of(Fault::BadKey).await;
        assert_eq!((key.is_passing, asked), (false, 1));
        let source = "(the key: environment variable `THE_KEY`)";
        assert!(key.detail.ends_with(source), "{key}");
        let (model, asked) = of(Fault::UnknownModel).await;
        assert_eq!((model.is_passing, asked), (false, 1));
        assert!(model.detail.contains("no such model"), "{model}");
        let (long, asked) = of(Fault::ContextTooLong).await;
        assert_eq!((long.is_passing, asked), (false, 1));
        assert!(
            long.detail.starts_with("a text is too long for `m`: "),
            "{long}"
        );
        let (moved, _) = of(Fault::Redirect("http://127.0.0.1:1/".to_owned())).await;
        assert!(moved.detail.contains("has moved"), "{moved}");
    }
}

#[tokio::test]
async fn a_key_that_is_repeated_goes_no_further_even_if_it_is_cut() {
    for kind in EmbeddingKind::ALL {
        let said = [
            "the key the-secret-key is wrong".to_owned(),
            format!("{}the-secret-key", "x".repeat(180)),
            format!("{}the-secret-key", "x".repeat(190)),
        ];
        for said in said {
            let answer = Fault::status(401, "").body(&said).into();
            let (told, _) = error(kind, vec![answer]).await;
            assert!(told.detail.contains("[secret TH"), "{told}");
            assert!(!told.detail.contains("the-se"), "{told}");
            // Under status 200 and in place of a vector, too.
            let answer = Answer::json(&reply(kind, &[json!(said), json!([1, 2])]));
            error(kind, vec![answer]).await;
        }
    }
}

#[tokio::test]
async fn a_reply_without_end_is_given_up() {
    let mut body = b"{\"embeddings\": [[1".to_vec();
    body.resize(17 * 1024 * 1024, b'0');
    let huge = Answer::bytes("application/json", body);
    let (error, _) = error(EmbeddingKind::Ollama, vec![huge; 3]).await;
    assert!(error.detail.contains("more than 16777216 bytes"), "{error}");
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let server = WireServer::scripted(vec![Answer::bytes("application/json", deep); 3]).await;
    let embedder = embedder(EmbeddingKind::Gemini, server.url()).await;
    embed(&*embedder, &["a"]).await.unwrap_err();
}

#[tokio::test]
async fn silence_is_ended() {
    let silences = [
        Fault::SilentBeforeHead,
        Fault::SilentBeforeBody,
        Fault::SilentAfter(5),
    ];
    futures_util::future::join_all(silences.map(is_ended)).await;
}

async fn is_ended(silence: Fault) {
    let answer = Answer::json(&json!({ "embeddings": [] })).with(silence);
    let server = WireServer::start(move |_| answer.clone()).await;
    let settings = EmbeddingSettings {
        patience: Patience {
            idle: Duration::from_millis(100),
            ..Patience::default()
        },
        ..settings(EmbeddingKind::Ollama, server.url())
    };
    let embedder = connect_embedder(settings).await.unwrap();
    let asked = embed(&*embedder, &["a"]);
    let asked = tokio::time::timeout(Duration::from_secs(20), asked).await;
    let error = asked.expect("silence is ended").unwrap_err();
    assert!(error.is_passing, "{error}");
    assert!(error.detail.contains("silent"), "{error}");
}

#[tokio::test]
async fn who_is_not_there_and_cannot_say_how_long_a_vector_is_is_an_error() {
    let nowhere = ClosedPort::new();
    let settings = EmbeddingSettings {
        dimensions: None,
        ..settings(EmbeddingKind::Ollama, nowhere.url())
    };
    let error = connect_embedder(settings).await.map(|_| ()).unwrap_err();
    assert!(error.is_passing, "{error}");
    assert!(error.detail.contains("cannot be reached"), "{error}");
}

#[tokio::test]
async fn dimensions_that_cannot_be_are_not_learned() {
    for vector in [json!([]), json!(vec![0; 70_000])] {
        let answer = Answer::json(&reply(EmbeddingKind::Gemini, &[vector]));
        let server = WireServer::scripted([answer]).await;
        let settings = EmbeddingSettings {
            dimensions: None,
            ..settings(EmbeddingKind::Gemini, server.url())
        };
        let error = connect_embedder(settings).await.map(|_| ()).unwrap_err();
        assert!(error.detail.starts_with("its vectors have "), "{error}");
    }
}
