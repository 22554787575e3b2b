//! OpenAI's Responses API, used without server-side state. Reasoning comes back encrypted; lango stores it in the log
//! and sends it with the next request.

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

/// The wire format, with what it has learned about the provider's models.
#[derive(Default)]
pub(crate) struct Responses {
    /// Models that refuse requests for encrypted reasoning.
    without_encrypted_reasoning: Mutex<BTreeSet<String>>,
}

impl Responses {
    /// Maximum number of models to remember.
    const MODELS: usize = 256;

    /// Returns whether to request the reasoning. Models that do not reason refuse such a request, and lango cannot
    /// always tell which they are: on Azure, users name their deployments freely.
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
        let hints = ["encrypted", "'include", "\"include", "`include"];
        if !hints.iter().any(|hint| detail.contains(hint)) {
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
