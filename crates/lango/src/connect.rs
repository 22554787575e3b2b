//! Connects to models and remote agents by name and address.

use crate::Error;
use lango_a2a::client::{RemoteSettings, RemoteTimeouts};
use lango_core::{AgentName, Model, RemoteAgent};
use lango_models::{
    OfflineModel, Provider, ProviderSettings, ProviderTimeouts, ResilientModel, known_providers,
};
use lango_net::PlainHttp;
use lango_secrets::{Credential, Masks, SecretValue};
use std::sync::Arc;

/// The context window to assume for a model that lango does not know.
const CONTEXT_TOKENS: u64 = 32_000;

/// Connects to a model by its name, such as `anthropic/claude-sonnet-5`, with the key in the provider's usual environment
/// variable. Transient faults are retried. Nothing is sent before the first call.
///
/// # Errors
/// The name is not `provider/model`, the provider is unknown, or its key is not set.
pub fn connect_model(name: &str) -> Result<impl Model + 'static, Error> {
    let problem = |problem: String| Error::Model { problem };
    let Some((id, model)) = name.split_once('/').filter(|(_, model)| !model.is_empty()) else {
        return Err(problem(format!(
            "`{name}` is not a model; write `provider/model`, such as `openai/gpt-5`"
        )));
    };
    if name == OfflineModel::NAME {
        return Ok(ResilientModel::new(Arc::new(OfflineModel), Vec::new()));
    }
    let known = known_providers();
    let Some(known) = known.iter().find(|known| known.id == id) else {
        let names: Vec<&str> = known.iter().map(|known| known.id.as_str()).collect();
        return Err(problem(format!(
            "there is no provider `{id}`; the providers are {}",
            names.join(", ")
        )));
    };
    let masks = Masks::default();
    let key = known.keys.iter().find_map(|variable| {
        let value = std::env::var(variable).ok()?;
        let value = SecretValue::new(value.as_bytes());
        (!value.is_empty()).then(|| Credential::fixed(variable, value, &masks))
    });
    if key.is_none() && !known.keys.is_empty() {
        return Err(problem(format!(
            "`{id}` needs a key; set {}",
            known.keys.join(" or ")
        )));
    }
    let provider = Provider::new(ProviderSettings {
        id: known.id.clone(),
        kind: known.kind,
        api: None,
        base_url: known.base_url.clone(),
        api_key: key,
        plain_http: PlainHttp::LocalOnly,
        masks,
        key_source: known.keys.join(" or "),
        stream: true,
        context_tokens: None,
        default_context_tokens: known.context_tokens.or(Some(CONTEXT_TOKENS)),
        timeouts: ProviderTimeouts::default(),
    });
    Ok(ResilientModel::new(
        Arc::new(provider.model(model)),
        Vec::new(),
    ))
}

/// Connects to a remote agent that speaks A2A 1.0: reads its card and returns it for
/// [`Builder::remote_agent`](crate::Builder::remote_agent). `token` is sent only to the origin of `url`.
///
/// # Errors
/// The card cannot be read, or has no interface that lango speaks.
pub async fn connect_remote(
    name: &str,
    url: &str,
    token: Option<&str>,
) -> Result<Arc<dyn RemoteAgent>, Error> {
    let masks = Masks::default();
    let token = token.map(|token| {
        let value = SecretValue::new(token.as_bytes());
        Credential::fixed("token", value, &masks)
    });
    let settings = RemoteSettings {
        name: AgentName::from(name),
        card_url: url.to_owned(),
        token,
        headers: Vec::new(),
        timeout: None,
        masks,
        token_source: "the token that was passed to `connect_remote`".to_owned(),
    };
    match lango_a2a::client::connect(&settings, &RemoteTimeouts::default()).await {
        Ok(agent) => Ok(agent),
        Err(skipped) => Err(Error::RemoteAgent {
            name: name.to_owned(),
            problem: skipped.reason.to_string(),
        }),
    }
}
