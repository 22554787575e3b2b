//! OpenAI's Responses, used without state: nothing is stored there, and what a model thought comes back encrypted, is kept
//! in the log and goes back with the conversation.

mod output;
mod replay;
mod reply;
mod request;

use crate::wire::{ReplyReader, Target, Wire, WireRequest};
use lango_core::{ModelFault, ModelRequest};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

pub(crate) const KIND: &str = "responses";

/// The wire, and what it learned about the models behind it.
#[derive(Default)]
pub(crate) struct Responses {
    /// Models that refuse to be asked for encrypted reasoning.
    without_encrypted_reasoning: Mutex<BTreeSet<String>>,
}

impl Responses {
    /// The most models that are remembered.
    const MODELS: usize = 256;

    /// Whether to ask for the reasoning. Models that do not reason refuse the whole request for it, and which those are
    /// is not always known: Azure's users name their deployments as they like.
    fn asks_for_reasoning(&self, target: &Target<'_>) -> bool {
        let refusing = self
            .without_encrypted_reasoning
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        target.takes_effort && !refusing.contains(target.model)
    }
}

impl Wire for Responses {
    fn version(&self) -> &'static str {
        "/v1"
    }

    fn request(&self, target: &Target<'_>, request: &ModelRequest) -> WireRequest {
        let mut body = request::body(target, request);
        if self.asks_for_reasoning(target) {
            body.fields["include"] = Value::from(vec!["reasoning.encrypted_content"]);
        }
        WireRequest {
            path: "/responses".to_owned(),
            body,
        }
    }

    fn reader(&self, request: &ModelRequest) -> Box<dyn ReplyReader> {
        Box::new(reply::Reader::new(request))
    }

    fn learn_from(&self, model: &str, fault: &ModelFault) -> bool {
        let ModelFault::Refused { detail } = fault else {
            return false;
        };
        let detail = detail.to_lowercase();
        let words = ["encrypted", "'include", "\"include", "`include"];
        if !words.iter().any(|words| detail.contains(words)) {
            return false;
        }
        let mut refusing = self
            .without_encrypted_reasoning
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        refusing.len() < Self::MODELS && refusing.insert(model.to_owned())
    }

    fn models_path(&self) -> &'static str {
        "/models"
    }

    fn model_ids(&self, list: &Value) -> Vec<String> {
        crate::openai::OpenAi.model_ids(list)
    }
}
