//! A model that follows a script: a list of replies, or a function of the request. It keeps what it was asked.

use futures_util::StreamExt;
use futures_util::stream;
use lango_core::{
    BoxStream, Call, CallId, Model, ModelError, ModelEvent, ModelFault, ModelReply, ModelRequest,
    ModelTerms, Usage,
};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

type Answer = Box<dyn Fn(&ModelRequest) -> Result<ModelReply, ModelError> + Send + Sync>;

/// A model that does what the test says.
pub struct ScriptedModel {
    answer: Answer,
    asked: Option<Mutex<Vec<ModelRequest>>>,
    piece: usize,
    terms: ModelTerms,
    name: &'static str,
}

impl ScriptedModel {
    /// Gives these replies in order, then fails as a model that cannot be reached.
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

    /// Replies as a function of the request.
    pub fn from_fn(answer: impl Fn(&ModelRequest) -> ModelReply + Send + Sync + 'static) -> Self {
        Self::new(move |request| Ok(answer(request)))
    }

    /// Replies or fails as a function of the request.
    pub fn new(
        answer: impl Fn(&ModelRequest) -> Result<ModelReply, ModelError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            answer: Box::new(answer),
            asked: Some(Mutex::default()),
            piece: usize::MAX,
            terms: ModelTerms::default(),
            name: "test/scripted",
        }
    }

    /// Streams its text in pieces of this many characters.
    pub fn in_pieces_of(mut self, characters: usize) -> Self {
        self.piece = characters.max(1);
        self
    }

    /// Under another name.
    pub fn named(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    /// With these terms.
    pub fn with_terms(mut self, terms: ModelTerms) -> Self {
        self.terms = terms;
        self
    }

    /// Keeps no requests, for measurements.
    pub fn forgetful(mut self) -> Self {
        self.asked = None;
        self
    }

    /// What it was asked, in order.
    pub fn asked(&self) -> Vec<ModelRequest> {
        let asked = self
            .asked
            .as_ref()
            .map(|asked| asked.lock().unwrap_or_else(PoisonError::into_inner).clone());
        asked.unwrap_or_default()
    }
}

impl Model for ScriptedModel {
    fn name(&self) -> &str {
        self.name
    }

    fn terms(&self) -> ModelTerms {
        self.terms
    }

    fn call<'a>(&'a self, request: ModelRequest) -> BoxStream<'a, Result<ModelEvent, ModelError>> {
        let result = (self.answer)(&request);
        if let Some(asked) = &self.asked {
            asked
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
            .chunks(self.piece.min(characters.len().max(1)))
            .map(|piece| Ok(ModelEvent::Text(piece.iter().collect())))
            .collect();
        stream::iter(pieces.into_iter().chain([Ok(ModelEvent::Reply(reply))])).boxed()
    }
}

/// A failure of the scripted model.
pub fn failure(fault: ModelFault) -> ModelError {
    ModelError {
        model: "test/scripted".into(),
        fault,
    }
}

/// A reply of words.
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

/// A reply that makes calls. Their ids are empty, which the engine must mend.
pub fn calls<'a>(calls: impl IntoIterator<Item = (&'a str, Value)>) -> ModelReply {
    let call = |(name, arguments): (&str, Value)| raw_call("", name, &arguments.to_string());
    ModelReply {
        calls: calls.into_iter().map(call).collect(),
        ..say("")
    }
}

/// A reply that makes one call.
pub fn call(name: &str, arguments: Value) -> ModelReply {
    calls([(name, arguments)])
}

/// A call as a model might write it, well or not.
pub fn raw_call(id: &str, name: &str, arguments: &str) -> Call {
    Call {
        id: CallId::from(id),
        name: name.into(),
        arguments: arguments.into(),
    }
}

/// A reply that delegates one task.
pub fn delegate(agent: &str, task: &str) -> ModelReply {
    call("delegate", json!({ "agent": agent, "task": task }))
}

/// A reply that delegates one task whose answer is the person's.
pub fn delegate_and_finish(agent: &str, task: &str) -> ModelReply {
    call(
        "delegate",
        json!({ "agent": agent, "task": task, "finish": true }),
    )
}
