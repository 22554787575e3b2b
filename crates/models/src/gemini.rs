//! Google's Gemini.

mod reply;
mod request;

use crate::wire::{ReplyReader, Target, Wire, WireRequest};
use lango_core::ModelRequest;
use serde_json::Value;

pub(crate) struct Gemini;

pub(crate) const KIND: &str = "gemini";

pub(crate) fn headers(key: Option<&str>) -> Vec<(&'static str, String)> {
    key.map(|key| ("x-goog-api-key", key.to_owned()))
        .into_iter()
        .collect()
}

impl Wire for Gemini {
    fn version(&self) -> &'static str {
        "/v1beta"
    }

    fn request(&self, target: &Target<'_>, request: &ModelRequest) -> WireRequest {
        let model = target.model.trim_start_matches("models/");
        let method = if target.streaming {
            "streamGenerateContent?alt=sse"
        } else {
            "generateContent"
        };
        WireRequest {
            path: format!("/models/{model}:{method}"),
            body: request::body(target, request),
        }
    }

    fn reader(&self, request: &ModelRequest) -> Box<dyn ReplyReader> {
        Box::new(reply::Reader::new(request))
    }

    fn models_path(&self) -> &'static str {
        "/models?pageSize=1000"
    }

    fn model_ids(&self, list: &Value) -> Vec<String> {
        let models = list["models"].as_array().into_iter().flatten();
        let names = models.filter_map(|model| model["name"].as_str());
        names
            .map(|name| name.trim_start_matches("models/").to_owned())
            .collect()
    }
}
