//! Anthropic's Messages API.

mod reply;
mod request;
mod settings;

use crate::http::Headers;
use crate::wire::{ReplyReader, Target, Wire, WireRequest};
use lango_core::ModelRequest;
use serde_json::Value;
use zeroize::Zeroizing;

pub(crate) struct Anthropic;

pub(crate) const KIND: &str = "anthropic";

pub(crate) fn headers(key: Option<&str>) -> Headers {
    let version = ("anthropic-version", Zeroizing::new("2023-06-01".to_owned()));
    key.map(|key| ("x-api-key", Zeroizing::new(key.to_owned())))
        .into_iter()
        .chain([version])
        .collect()
}

impl Wire for Anthropic {
    fn version(&self) -> &'static str {
        "/v1"
    }

    fn request(&self, target: &Target<'_>, request: &ModelRequest) -> WireRequest {
        WireRequest {
            path: "/messages".to_owned(),
            body: request::body(target, request),
        }
    }

    fn reader(&self, request: &ModelRequest) -> Box<dyn ReplyReader> {
        Box::new(reply::Reader::new(request))
    }

    fn models_path(&self) -> &'static str {
        "/models?limit=1000"
    }

    fn model_ids(&self, list: &Value) -> Vec<String> {
        let ids = list["data"].as_array().into_iter().flatten();
        ids.filter_map(|model| model["id"].as_str().map(str::to_owned))
            .collect()
    }
}
