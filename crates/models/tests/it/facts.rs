//! How a provider's model uses the model table.

use crate::support::{Wire, call, request, settings};
use lango_core::{Model, ModelReply, Usage};
use lango_models::{Provider, ProviderSettings};
use lango_testkit::model::say;
use lango_testkit::wire_server::WireServer;

fn provider(id: &str, kind: Wire, url: &str, configured: Option<u64>) -> Provider {
    Provider::new(ProviderSettings {
        id: id.to_owned(),
        context_tokens: configured,
        default_context_tokens: Some(7000),
        ..settings(kind, url)
    })
}

#[test]
fn the_configured_window_overrides_the_table_and_the_table_the_default() {
    let window = |id: &str, model: &str, configured| {
        let provider = provider(id, Wire::Anthropic, "http://127.0.0.1:9", configured);
        provider.model(model).info().context_tokens
    };
    let known = "claude-sonnet-5-5";
    assert_eq!(window("anthropic", known, Some(9000)), Some(9000));
    assert_eq!(window("anthropic", known, None), Some(1_000_000));
    assert_eq!(window("anthropic", "claude-unheard-of", None), Some(7000));
    assert_eq!(window("mine", known, None), Some(7000), "served elsewhere");
}

#[tokio::test]
async fn a_reply_has_its_providers_price_and_an_unknown_price_is_not_zero() {
    for (id, model, is_priced) in [
        ("groq", "openai/gpt-oss-120b", true),
        ("groq", "unheard-of", false),
        ("mine", "openai/gpt-oss-120b", false),
    ] {
        let server = WireServer::scripted(vec![say("hi")]).await;
        let model = provider(id, Wire::OpenAi, server.url(), None).model(model);
        let reply = call(&model, request()).await.1.unwrap();
        let usage = Usage {
            input_tokens: 10,
            output_tokens: 5,
            ..Usage::default()
        };
        let price = model.info().price;
        assert_eq!(price.is_some(), is_priced, "{}", model.name());
        assert_eq!(reply.cost_micros, price.map(|price| price.cost(&usage)));
        assert_ne!(reply.cost_micros, Some(0));
    }
}

#[tokio::test]
async fn a_reply_without_usage_has_no_known_cost() {
    let silent = ModelReply {
        usage: Usage::default(),
        ..say("hi")
    };
    let server = WireServer::scripted(vec![silent]).await;
    let model = provider("groq", Wire::OpenAi, server.url(), None).model("openai/gpt-oss-120b");
    let reply = call(&model, request()).await.1.unwrap();
    assert_eq!((reply.usage, reply.cost_micros), (Usage::default(), None));
}
