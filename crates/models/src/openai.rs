//! OpenAI's chat completions API. Many servers speak it, each a little differently; tests cover the known differences.

mod call_id;
mod reasoning;
mod reply;
mod request;
mod stop;
mod think;
mod usage;

use crate::http::Headers;
use crate::wire::{ReplyReader, Target, Wire, WireRequest};
use lango_core::ModelRequest;
use serde_json::Value;
use zeroize::Zeroizing;

pub(crate) struct OpenAi;

pub(crate) const KIND: &str = "openai";

pub(crate) fn headers(key: Option<&str>) -> Headers {
    key.map(|key| ("authorization", Zeroizing::new(format!("Bearer {key}"))))
        .into_iter()
        .collect()
}

/// Returns whether the target is Mistral's own service, which rejects unknown fields.
fn is_mistral(target: &Target<'_>) -> bool {
    target.host.ends_with("mistral.ai") || target.name.starts_with("mistral/")
}

impl Wire for OpenAi {
    fn version(&self) -> &'static str {
        "/v1"
    }

    fn request(&self, target: &Target<'_>, request: &ModelRequest) -> WireRequest {
        WireRequest {
            path: "/chat/completions".to_owned(),
            body: request::body(target, request),
        }
    }

    fn reader(&self, request: &ModelRequest) -> Box<dyn ReplyReader> {
        Box::new(reply::Reader::new(request))
    }

    fn models_path(&self) -> &'static str {
        "/models"
    }

    fn model_ids(&self, list: &Value) -> Vec<String> {
        let ids = list["data"].as_array().into_iter().flatten();
        ids.filter_map(|model| model["id"].as_str().map(str::to_owned))
            .collect()
    }
}
