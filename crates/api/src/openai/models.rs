//! `/v1/models`: the names that requests can use as `model`.

use super::error::{ApiError, Result};
use crate::Api;
use crate::access::Reader;
use crate::json::Path;
use axum::Json;
use axum::extract::State;
use serde::Serialize;

/// The name that stands for all agents together.
pub(super) const LANGO: &str = "lango";

/// A model in a list.
#[derive(Debug, Serialize)]
pub(super) struct ModelItem {
    id: String,
    object: &'static str,
    /// When the server started, in seconds since 1970.
    created: u64,
    owned_by: &'static str,
}

/// The models that are served.
#[derive(Debug, Serialize)]
pub(super) struct ModelList {
    object: &'static str,
    data: Vec<ModelItem>,
}

/// Lists the models: `lango`, and the name of the configured model, which stands for the same agents.
pub(super) async fn list(Reader(_): Reader, State(api): State<Api>) -> Json<ModelList> {
    let data = served(&api).map(|id| item(&api, id)).into();
    Json(ModelList {
        object: "list",
        data,
    })
}

/// Returns a model.
pub(super) async fn show(
    Reader(_): Reader,
    State(api): State<Api>,
    Path(model): Path<String>,
) -> Result<Json<ModelItem>> {
    check(&api, &model)?;
    Ok(Json(item(&api, model)))
}

/// Fails if the model is not served.
pub(super) fn check(api: &Api, model: &str) -> Result<()> {
    let served = served(api);
    if served.iter().any(|served| served == model) {
        Ok(())
    } else {
        Err(ApiError::no_model(model, &served[1]))
    }
}

fn served(api: &Api) -> [String; 2] {
    [LANGO.to_owned(), api.context.program().model]
}

fn item(api: &Api, id: String) -> ModelItem {
    ModelItem {
        id,
        object: "model",
        created: api.started.0 / 1000,
        owned_by: "lango",
    }
}
