//! Models that repeat what a stored session's models replied.

use futures_util::{StreamExt as _, stream};
use lango_core::{
    AgentName, BoxStream, Event, EventBody, Model, ModelError, ModelEvent, ModelFault, ModelInfo,
    ModelReply, ModelRequest,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// Returns a model for each agent that a model replied for, with these replies in order.
pub(crate) fn replay_models(events: &[Event]) -> BTreeMap<AgentName, Arc<dyn Model>> {
    let mut replies: BTreeMap<AgentName, VecDeque<ModelReply>> = BTreeMap::new();
    for event in events {
        if let Some(reply) = reply_of(event) {
            let own = replies.entry(event.author.clone()).or_default();
            own.push_back(reply);
        }
    }
    let models = replies.into_iter().map(|(agent, replies)| {
        let model = ReplayModel(Mutex::new(replies));
        (agent, Arc::new(model) as Arc<dyn Model>)
    });
    models.collect()
}

fn reply_of(event: &Event) -> Option<ModelReply> {
    match &event.body {
        EventBody::AgentMessage {
            text,
            calls,
            model: Some(_),
            usage,
            cost_micros,
            opaque,
            stop,
            ..
        } => Some(ModelReply {
            text: text.to_string(),
            calls: calls.clone(),
            usage: *usage,
            cost_micros: *cost_micros,
            stop: stop.clone(),
            opaque: opaque.clone(),
            model: None,
        }),
        _ => None,
    }
}

/// The recorded replies of one agent. A call after the last one fails, so a test notices that the session took another
/// course.
struct ReplayModel(Mutex<VecDeque<ModelReply>>);

impl Model for ReplayModel {
    fn name(&self) -> &str {
        "replay/recorded"
    }

    fn info(&self) -> ModelInfo {
        ModelInfo::default()
    }

    fn call<'a>(&'a self, _request: ModelRequest) -> BoxStream<'a, Result<ModelEvent, ModelError>> {
        let mut replies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let reply = replies.pop_front();
        let event = reply.map(ModelEvent::Reply).ok_or_else(|| ModelError {
            model: self.name().into(),
            fault: ModelFault::Incomplete,
            address: None,
        });
        stream::iter([event]).boxed()
    }
}
