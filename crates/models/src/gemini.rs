//! Google's Gemini API.

mod reply;
mod request;
mod settings;

use crate::http::Headers;
use crate::wire::{ReplyReader, Target, Wire, WireRequest};
use lango_core::ModelRequest;
use serde_json::Value;
use zeroize::Zeroizing;

pub(crate) struct Gemini;

pub(crate) const KIND: &str = "gemini";

pub(crate) fn headers(key: Option<&str>) -> Headers {
    key.map(|key| ("x-goog-api-key", Zeroizing::new(key.to_owned())))
        .into_iter()
        .collect()
}

/// Returns the number after `gemini-`; 0 for models with other names.
fn generation(model: &str) -> u32 {
    let model = model.trim_start_matches("models/");
    let number = model.strip_prefix("gemini-").unwrap_or_default();
    let digits = number.split(|c: char| !c.is_ascii_digit()).next();
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
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
