//! What makes vectors of texts: chosen by `embedding.provider`.

use crate::config::EmbeddingConfig;
use crate::model_choice::ModelChoice;
use lango_core::Embedder;
use lango_knowledge::{Model2Vec, OfflineEmbedder};
use lango_models::{
    EmbeddingKind, EmbeddingSettings, Kind, Patience, ProviderSettings, connect_embedder,
};
use lango_store::Store;
use std::sync::Arc;
use std::time::Duration;

/// How long a server may be silent.
const LONGEST_SILENCE: Duration = Duration::from_secs(10);

/// The embedder that is configured; none if none is wanted. A server whose vectors have an unknown size is asked for one.
pub async fn embedder(
    config: &EmbeddingConfig,
    providers: &ModelChoice<'_>,
    store: Arc<Store>,
) -> Result<Option<Arc<dyn Embedder>>, String> {
    let model = || {
        let missing = "embedding.model must be set with this embedding.provider";
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
        (_, Kind::OpenAi) => EmbeddingKind::OpenAi,
        (_, Kind::Gemini) => EmbeddingKind::Gemini,
        (id, Kind::Anthropic) => return Err(format!("`{id}` makes no vectors; choose another")),
    };
    let dimensions = dimensions.map(u32::try_from).transpose();
    Ok(EmbeddingSettings {
        id: provider.id,
        kind,
        base_url: provider.base_url,
        api_key: provider.api_key,
        masks: provider.masks,
        key_source: provider.key_source,
        model,
        dimensions: dimensions.map_err(|_| "embedding.dimensions is too large".to_owned())?,
        // It is asked at the start, where nobody wants to wait for long.
        patience: Patience {
            idle: provider.patience.idle.min(LONGEST_SILENCE),
            ..provider.patience
        },
    })
}
