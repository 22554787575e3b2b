//! The embedding model, chosen by `embedding.provider`.

use crate::app::model_selector::ModelSelector;
use lango_config::EmbeddingConfig;
use lango_core::Embedder;
use lango_knowledge::{Model2Vec, OfflineEmbedder};
use lango_models::{
    EmbeddingKind, EmbeddingSettings, ProviderFamily, ProviderSettings, ProviderTimeouts,
    connect_embedder,
};
use lango_store::Store;
use std::sync::Arc;
use std::time::Duration;

/// How long an embedding server may send nothing.
const MAX_IDLE: Duration = Duration::from_secs(10);

/// Returns the configured embedder; `None` if there is none. If the length of a server's vectors is unknown, one text
/// is embedded to find out.
pub(super) async fn embedder(
    config: &EmbeddingConfig,
    providers: &ModelSelector<'_>,
    store: Arc<Store>,
) -> Result<Option<Arc<dyn Embedder>>, String> {
    let model = || {
        let missing = "this embedding.provider needs embedding.model";
        config.model.clone().ok_or_else(|| missing.to_owned())
    };
    let embedder: Arc<dyn Embedder> = match config.provider.as_deref() {
        None | Some("none") => return Ok(None),
        Some("offline") => Arc::new(OfflineEmbedder::with_frequencies(store)),
        Some("model2vec") => {
            let opened = Model2Vec::open(model()?);
            Arc::new(opened.map_err(|error| error.to_string())?)
        }
        Some(id) => {
            let settings = providers.provider_settings(id);
            let settings = settings.map_err(|failure| failure.to_string())?;
            let settings = over_http(settings, model()?, config.dimensions)?;
            let connected = connect_embedder(settings).await;
            connected.map_err(|error| error.to_string())?
        }
    };
    Ok(Some(embedder))
}

fn over_http(
    provider: ProviderSettings,
    model: String,
    dimensions: Option<u64>,
) -> Result<EmbeddingSettings, String> {
    let kind = match (provider.id.as_str(), provider.kind) {
        ("ollama", _) => EmbeddingKind::Ollama,
        (_, ProviderFamily::OpenAi) => EmbeddingKind::OpenAi,
        (_, ProviderFamily::Gemini) => EmbeddingKind::Gemini,
        (id, ProviderFamily::Anthropic) => {
            return Err(format!(
                "`{id}` has no embedding models; choose another provider"
            ));
        }
    };
    let dimensions = dimensions.map(u32::try_from).transpose();
    Ok(EmbeddingSettings {
        id: provider.id,
        kind,
        base_url: provider.base_url,
        api_key: provider.api_key,
        plain_http: provider.plain_http,
        masks: provider.masks,
        key_source: provider.key_source,
        model,
        dimensions: dimensions.map_err(|_| "embedding.dimensions is too large".to_owned())?,
        // The server is contacted at the start, which must not take long.
        timeouts: ProviderTimeouts {
            idle: provider.timeouts.idle.min(MAX_IDLE),
            ..provider.timeouts
        },
    })
}
