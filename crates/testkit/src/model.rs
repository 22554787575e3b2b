//! A model that follows a script: a list of replies, or a function of the request. It records the requests it received.

use futures_util::StreamExt;
use futures_util::stream;
use lango_core::{
    BoxStream, Call, CallId, Model, ModelError, ModelEvent, ModelFault, ModelInfo, ModelReply,
    ModelRequest, Usage,
};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

type Script = Box<dyn Fn(&ModelRequest) -> Result<ModelReply, ModelError> + Send + Sync>;

/// A model whose replies the test decides.
pub struct ScriptedModel {
    script: Script,
    /// The requests so far; `None` if they are not recorded.
    requests: Option<Mutex<Vec<ModelRequest>>>,
    /// Characters per streamed piece of text.
    chunk_size: usize,
    terms: ModelInfo,
    name: &'static str,
}

impl ScriptedModel {
    /// Creates a model that gives these replies in order and then fails as unreachable.
    pub fn replies(replies: impl IntoIterator<Item = ModelReply>) -> Self {
        let replies: Mutex<VecDeque<_>> = Mutex::new(replies.into_iter().collect());
        Self::new(move |_| {
            let next = replies
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .pop_front();
            next.ok_or_else(|| {
                failure(ModelFault::Unreachable {
                    detail: "the script is over".to_owned(),
                })
            })
        })
    }

    /// Creates a model that computes each reply from the request.
    pub fn from_fn(script: impl Fn(&ModelRequest) -> ModelReply + Send + Sync + 'static) -> Self {
        Self::new(move |request| Ok(script(request)))
    }

    /// Creates a model that computes each reply, or failure, from the request.
    pub fn new(
        script: impl Fn(&ModelRequest) -> Result<ModelReply, ModelError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            script: Box::new(script),
            requests: Some(Mutex::default()),
            chunk_size: usize::MAX,
            terms: ModelInfo::default(),
            name: "test/scripted",
        }
    }

    /// Streams the text in pieces of this many characters instead of in one piece.
    pub fn with_chunk_size(mut self, characters: usize) -> Self {
        self.chunk_size = characters.max(1);
        self
    }

    pub fn with_name(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    pub fn with_terms(mut self, terms: ModelInfo) -> Self {
        self.terms = terms;
        self
    }

    /// Records no requests, so that memory stays flat in benchmarks.
    pub fn without_recording(mut self) -> Self {
        self.requests = None;
        self
    }

    /// Returns the requests it received, in order.
    pub fn requests(&self) -> Vec<ModelRequest> {
        let requests = self.requests.as_ref().map(|requests| {
            requests
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone()
        });
        requests.unwrap_or_default()
    }
}

impl Model for ScriptedModel {
    fn name(&self) -> &str {
        self.name
    }

    fn info(&self) -> ModelInfo {
        self.terms
    }

    fn call<'a>(&'a self, request: ModelRequest) -> BoxStream<'a, Result<ModelEvent, ModelError>> {
        let result = (self.script)(&request);
        if let Some(requests) = &self.requests {
            requests
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(request);
        }
        let reply = match result {
            Ok(reply) => reply,
            Err(error) => return stream::iter([Err(error)]).boxed(),
        };
        let characters: Vec<char> = reply.text.chars().collect();
        let pieces: Vec<_> = characters
            .chunks(self.chunk_size.min(characters.len().max(1)))
            .map(|piece| Ok(ModelEvent::Text(piece.iter().collect())))
            .collect();
        stream::iter(pieces.into_iter().chain([Ok(ModelEvent::Reply(reply))])).boxed()
    }
}

/// A model that yields before each event, so that a concurrent reader of the turn's updates sees every one of them.
pub struct PacedModel(pub Arc<dyn Model>);

impl Model for PacedModel {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn info(&self) -> ModelInfo {
        self.0.info()
    }

    fn call<'a>(&'a self, request: ModelRequest) -> BoxStream<'a, Result<ModelEvent, ModelError>> {
        let events = self.0.call(request);
        let paced = events.then(|event| async {
            tokio::task::yield_now().await;
            event
        });
        paced.boxed()
    }
}

/// Returns an error of the scripted model.
pub fn failure(fault: ModelFault) -> ModelError {
    ModelError {
        model: "test/scripted".into(),
        fault,
        address: None,
    }
}

/// Returns a reply with text and no calls.
pub fn say(text: &str) -> ModelReply {
    ModelReply {
        text: text.to_owned(),
        usage: Usage {
            input_tokens: 10,
            output_tokens: 5,
            ..Usage::default()
        },
        ..ModelReply::default()
    }
}

/// Returns a reply that makes calls. Their ids are empty, so the engine must assign some.
pub fn calls<'a>(calls: impl IntoIterator<Item = (&'a str, Value)>) -> ModelReply {
    let call = |(name, arguments): (&str, Value)| raw_call("", name, &arguments.to_string());
    ModelReply {
        calls: calls.into_iter().map(call).collect(),
        ..say("")
    }
}

/// Returns a reply that makes one call.
pub fn call(name: &str, arguments: Value) -> ModelReply {
    calls([(name, arguments)])
}

/// Returns a call with any id, name and arguments, valid or not.
pub fn raw_call(id: &str, name: &str, arguments: &str) -> Call {
    Call {
        id: CallId::from(id),
        name: name.into(),
        arguments: arguments.into(),
    }
}

/// Returns a reply that delegates one task.
pub fn delegate(agent: &str, task: &str) -> ModelReply {
    call("delegate", json!({ "agent": agent, "task": task }))
}

/// Returns a reply that delegates one task with `finish`: the sub-agent's answer goes to the user.
pub fn delegate_and_finish(agent: &str, task: &str) -> ModelReply {
    call(
        "delegate",
        json!({ "agent": agent, "task": task, "finish": true }),
    )
}
