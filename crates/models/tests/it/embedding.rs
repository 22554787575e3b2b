//! Embeddings over real HTTP: requests and replies in the format of each kind of provider.

use lango_core::{EmbedError, Embedder, EmbeddingPurpose};
use lango_models::{EmbeddingKind, EmbeddingSettings, ProviderTimeouts, connect_embedder};
use lango_net::PlainHttp;
use lango_secrets::{Credential, Masks, SecretValue};
use lango_testkit::wire_server::{RecordedRequest, ScriptedAnswer, WireServer};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

pub(crate) fn settings(kind: EmbeddingKind, url: &str) -> EmbeddingSettings {
    let masks = Masks::default();
    EmbeddingSettings {
        id: format!("my-{}", kind.name()),
        kind,
        base_url: url.to_owned(),
        api_key: Some(Credential::fixed(
            "THE_KEY",
            SecretValue::new("the-secret-key"),
            &masks,
        )),
        plain_http: PlainHttp::LocalOnly,
        masks,
        key_source: "environment variable `THE_KEY`".to_owned(),
        model: "m".to_owned(),
        dimensions: Some(2),
        timeouts: ProviderTimeouts {
            connect: Duration::from_secs(5),
            idle: Duration::from_secs(20),
        },
    }
}

pub(crate) async fn embedder(kind: EmbeddingKind, url: &str) -> Arc<dyn Embedder> {
    connect_embedder(settings(kind, url)).await.unwrap()
}

pub(crate) async fn embed(
    embedder: &dyn Embedder,
    texts: &[&str],
) -> Result<Vec<Vec<f32>>, EmbedError> {
    let texts = texts.iter().map(|text| (*text).to_owned()).collect();
    embedder.embed(texts, EmbeddingPurpose::Document).await
}

/// Returns a reply with these vectors in the format of a kind.
pub(crate) fn reply(kind: EmbeddingKind, vectors: &[Value]) -> Value {
    let numbered = vectors.iter().enumerate();
    match kind {
        EmbeddingKind::OpenAi => {
            let rows = numbered.map(
                |(at, vector)| json!({ "object": "embedding", "index": at, "embedding": vector }),
            );
            json!({ "object": "list", "data": rows.collect::<Vec<_>>(), "model": "m", "usage": { "total_tokens": 1 } })
        }
        EmbeddingKind::Gemini => {
            let rows = vectors.iter().map(|vector| json!({ "values": vector }));
            json!({ "embeddings": rows.collect::<Vec<_>>() })
        }
        EmbeddingKind::Ollama => {
            json!({ "model": "m", "embeddings": vectors, "total_duration": 1 })
        }
    }
}

/// Starts a provider whose vectors identify their text: they consist of its number and its length.
pub(crate) async fn numbering_server(kind: EmbeddingKind) -> WireServer {
    WireServer::start(move |embedding: &RecordedRequest| {
        let texts = embedding.texts_to_embed().unwrap();
        let vector = |text: &String| {
            let number = text
                .split(' ')
                .next()
                .and_then(|word| word.parse::<f32>().ok());
            json!([number.unwrap_or(-1.0), text.len()])
        };
        ScriptedAnswer::json(&reply(kind, &texts.iter().map(vector).collect::<Vec<_>>()))
    })
    .await
}

#[tokio::test]
async fn each_kind_of_provider_gets_its_own_request_format() {
    let sent = |kind| async move {
        let server = numbering_server(kind).await;
        let embedder = embedder(kind, server.url()).await;
        let vectors = embed(&*embedder, &["1 a", "2 bc"]).await.unwrap();
        assert_eq!(vectors, [[1.0, 3.0], [2.0, 4.0]]);
        server.requests().remove(0)
    };
    let openai = sent(EmbeddingKind::OpenAi).await;
    assert_eq!(openai.path, "/v1/embeddings");
    assert_eq!(
        openai.header("authorization"),
        Some("Bearer the-secret-key")
    );
    let body = json!({ "model": "m", "input": ["1 a", "2 bc"], "dimensions": 2, "encoding_format": "float" });
    assert_eq!(openai.body, body);

    let ollama = sent(EmbeddingKind::Ollama).await;
    assert_eq!(ollama.path, "/api/embed");
    let body = json!({ "model": "m", "input": ["1 a", "2 bc"], "dimensions": 2 });
    assert_eq!(ollama.body, body);

    let gemini = sent(EmbeddingKind::Gemini).await;
    assert_eq!(gemini.path, "/v1beta/models/m:batchEmbedContents");
    assert_eq!(gemini.header("x-goog-api-key"), Some("the-secret-key"));
    let one = |text| {
        json!({
            "model": "models/m", "content": { "parts": [{ "text": text }] },
            "taskType": "RETRIEVAL_DOCUMENT", "outputDimensionality": 2,
        })
    };
    assert_eq!(
        gemini.body,
        json!({ "requests": [one("1 a"), one("2 bc")] })
    );
}

#[tokio::test]
async fn gemini_requests_name_the_purpose_of_a_text() {
    let server = numbering_server(EmbeddingKind::Gemini).await;
    let embedder = embedder(EmbeddingKind::Gemini, server.url()).await;
    let embedding = embedder.embed(vec!["1".to_owned()], EmbeddingPurpose::Query);
    embedding.await.unwrap();
    let task = &server.requests()[0].body["requests"][0]["taskType"];
    assert_eq!(task, "RETRIEVAL_QUERY");
}

#[tokio::test]
async fn the_address_of_the_chat_api_is_accepted() {
    for (kind, end, path) in [
        (EmbeddingKind::OpenAi, "/v1/", "/v1/embeddings"),
        (EmbeddingKind::OpenAi, "/openai/v2", "/openai/v2/embeddings"),
        (EmbeddingKind::Ollama, "/v1", "/api/embed"),
        (EmbeddingKind::Ollama, "/api/", "/api/embed"),
        (
            EmbeddingKind::Gemini,
            "/v1",
            "/v1/models/m:batchEmbedContents",
        ),
    ] {
        let server = numbering_server(kind).await;
        let embedder = embedder(kind, &format!("{}{end}", server.url())).await;
        embed(&*embedder, &["1"]).await.unwrap();
        assert_eq!(server.requests()[0].path, path);
    }
}

#[tokio::test]
async fn vectors_are_sorted_by_their_index() {
    let row = |index: usize| json!({ "index": index, "embedding": [index, 0] });
    let body = json!({ "data": [row(2), row(0), row(1)] });
    let server = WireServer::scripted([ScriptedAnswer::json(&body)]).await;
    let embedder = embedder(EmbeddingKind::OpenAi, server.url()).await;
    let vectors = embed(&*embedder, &["a", "b", "c"]).await.unwrap();
    assert_eq!(vectors, [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]]);
}

#[tokio::test]
async fn vectors_without_an_index_keep_their_order() {
    let body = json!({ "data": [{ "embedding": [1, 2] }, { "embedding": [3, 4] }] });
    let server = WireServer::scripted([ScriptedAnswer::json(&body)]).await;
    let embedder = embedder(EmbeddingKind::OpenAi, server.url()).await;
    let vectors = embed(&*embedder, &["a", "b"]).await.unwrap();
    assert_eq!(vectors, [[1.0, 2.0], [3.0, 4.0]]);
}

#[tokio::test]
async fn many_texts_are_sent_in_batches_and_vectors_keep_their_order() {
    for kind in EmbeddingKind::ALL {
        let server = numbering_server(kind).await;
        let embedder = embedder(kind, server.url()).await;
        let texts: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        let embedding = embedder.embed(texts, EmbeddingPurpose::Document);
        let numbers: Vec<f32> = embedding
            .await
            .unwrap()
            .iter()
            .map(|vector| vector[0])
            .collect();
        assert!(numbers.iter().copied().eq((0..100_u8).map(f32::from)));
        let sizes: Vec<usize> = batches(&server);
        assert_eq!(sizes, [32, 32, 32, 4]);
    }
}

#[tokio::test]
async fn long_texts_are_sent_in_smaller_batches() {
    let server = numbering_server(EmbeddingKind::Ollama).await;
    let embedder = embedder(EmbeddingKind::Ollama, server.url()).await;
    let long = format!("1 {}", "x".repeat(100_000));
    let huge = format!("2 {}", "x".repeat(400_000));
    let vectors = embed(&*embedder, &[&long, &long, &long, &huge, "3", "4"]).await;
    let numbers: Vec<f32> = vectors.unwrap().iter().map(|vector| vector[0]).collect();
    assert_eq!(numbers, [1.0, 1.0, 1.0, 2.0, 3.0, 4.0]);
    assert_eq!(batches(&server), [2, 1, 1, 2]);
}

fn batches(server: &WireServer) -> Vec<usize> {
    let texts = |embedding: &RecordedRequest| embedding.texts_to_embed().unwrap().len();
    server.requests().iter().map(texts).collect()
}

#[tokio::test]
async fn an_empty_text_is_not_sent() {
    for kind in EmbeddingKind::ALL {
        let server = numbering_server(kind).await;
        let embedder = embedder(kind, server.url()).await;
        let vectors = embed(&*embedder, &["", "1", " \n", "2"]).await.unwrap();
        assert_eq!(vectors, [[0.0, 0.0], [1.0, 1.0], [0.0, 0.0], [2.0, 1.0]]);
        assert_eq!(embed(&*embedder, &[""]).await.unwrap(), [[0.0, 0.0]]);
        assert!(embed(&*embedder, &[]).await.unwrap().is_empty());
        assert_eq!(batches(&server), [2]);
    }
}

#[tokio::test]
async fn dimensions_are_measured_once_when_connecting() {
    for kind in EmbeddingKind::ALL {
        let server = numbering_server(kind).await;
        let settings = EmbeddingSettings {
            dimensions: None,
            api_key: None,
            ..settings(kind, server.url())
        };
        let embedder = connect_embedder(settings).await.unwrap();
        let maker = embedder.model().clone();
        assert_eq!(&*maker.provider, format!("my-{}", kind.name()));
        assert_eq!((&*maker.model, maker.dimensions), ("m", 2));
        embed(&*embedder, &["1"]).await.unwrap();
        assert_eq!(*embedder.model(), maker);
        let requests = server.requests();
        assert_eq!(requests.len(), 2);
        // Measured dimensions are not part of requests, because not every model accepts the parameter.
        assert!(!requests[1].body.to_string().contains("imension"));
        assert_eq!(requests[1].header("authorization"), None);
    }
}

#[tokio::test]
async fn configured_dimensions_need_no_request_when_connecting() {
    let nowhere = lango_testkit::wire_server::ClosedPort::new();
    let embedder = embedder(EmbeddingKind::OpenAi, nowhere.url()).await;
    assert_eq!(embedder.model().dimensions, 2);
    for absurd in [0, 1_000_000] {
        let settings = EmbeddingSettings {
            dimensions: Some(absurd),
            ..settings(EmbeddingKind::OpenAi, nowhere.url())
        };
        let error = connect_embedder(settings).await.map(|_| ()).unwrap_err();
        assert!(
            error.detail.contains("is not a valid number of dimensions"),
            "{error}"
        );
    }
}
