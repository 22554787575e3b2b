//! Models over the wire server, and requests to send them.

use futures_util::StreamExt;
use lango_core::{
    Call, Function, Message, Model, ModelEvent, ModelFault, ModelReply, ModelRequest, Opaque,
};
use lango_models::{Api, Patience, Provider, ProviderModel, ProviderSettings};
use lango_secrets::{Credential, Masks, SecretValue};
use lango_testkit::model::raw_call;
use lango_testkit::wire_server::{Answer, Recorded, WireServer};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// The wires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Chat completions of OpenAI's kind.
    OpenAi,
    /// Responses of OpenAI's kind.
    Responses,
    Anthropic,
    Gemini,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::OpenAi, Self::Responses, Self::Anthropic, Self::Gemini];

    /// What a wire calls its opaque parts; here also the id of its provider.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Responses => "responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    fn api(self) -> Option<Api> {
        match self {
            Self::OpenAi => Some(Api::Chat),
            Self::Responses => Some(Api::Responses),
            Self::Anthropic | Self::Gemini => None,
        }
    }

    fn of_provider(self) -> lango_models::Kind {
        match self {
            Self::OpenAi | Self::Responses => lango_models::Kind::OpenAi,
            Self::Anthropic => lango_models::Kind::Anthropic,
            Self::Gemini => lango_models::Kind::Gemini,
        }
    }
}

/// How replies are asked for.
pub const BOTH: [bool; 2] = [true, false];

pub fn settings(kind: Kind, url: &str) -> ProviderSettings {
    let masks = Masks::default();
    ProviderSettings {
        id: kind.name().to_owned(),
        kind: kind.of_provider(),
        api: kind.api(),
        base_url: url.to_owned(),
        api_key: Some(Credential::fixed(
            "THE_KEY",
            SecretValue::new("the-key"),
            &masks,
        )),
        masks,
        key_source: "environment variable `THE_KEY`".to_owned(),
        stream: true,
        context_tokens: None,
        default_context_tokens: None,
        patience: Patience {
            connect: Duration::from_secs(5),
            idle: Duration::from_secs(20),
        },
    }
}

pub fn model(kind: Kind, url: &str, streaming: bool) -> ProviderModel {
    let settings = ProviderSettings {
        stream: streaming,
        ..settings(kind, url)
    };
    Provider::new(settings).model("m")
}

/// What a call gave: the pieces before its end, and its end. Nothing may follow the end.
pub async fn call(
    model: &dyn Model,
    request: ModelRequest,
) -> (Vec<ModelEvent>, Result<ModelReply, ModelFault>) {
    let mut stream = model.call(request);
    let mut events = Vec::new();
    let end = loop {
        match stream.next().await.expect("a call ends with its end") {
            Ok(ModelEvent::Reply(reply)) => break Ok(reply),
            Ok(event) => events.push(event),
            Err(error) => break Err(error.fault),
        }
    };
    assert!(stream.next().await.is_none(), "nothing follows the end");
    (events, end)
}

/// The text that a call showed as it came.
pub fn shown(events: &[ModelEvent]) -> String {
    let text = |event: &ModelEvent| match event {
        ModelEvent::Text(text) => text.clone(),
        other => panic!("{other:?} is no text"),
    };
    events.iter().map(text).collect()
}

/// What becomes of one answer.
pub async fn read(
    kind: Kind,
    answer: impl Into<Answer>,
) -> (Vec<ModelEvent>, Result<ModelReply, ModelFault>) {
    read_for(kind, answer, request()).await
}

pub async fn read_for(
    kind: Kind,
    answer: impl Into<Answer>,
    request: ModelRequest,
) -> (Vec<ModelEvent>, Result<ModelReply, ModelFault>) {
    let server = WireServer::scripted([answer.into()]).await;
    call(&model(kind, server.url(), true), request).await
}

/// The reply to one answer.
pub async fn reply(kind: Kind, answer: impl Into<Answer>) -> ModelReply {
    read(kind, answer).await.1.unwrap()
}

/// The fault behind one answer.
pub async fn fault(kind: Kind, answer: impl Into<Answer>) -> ModelFault {
    read(kind, answer).await.1.unwrap_err()
}

/// What is sent for a request.
pub async fn sent(kind: Kind, request: ModelRequest, streaming: bool) -> Recorded {
    let server = WireServer::scripted([lango_testkit::model::say("ok")]).await;
    let (_, end) = call(&model(kind, server.url(), streaming), request).await;
    end.unwrap();
    server.requests().remove(0)
}

/// The body that is sent for a request.
pub async fn body(kind: Kind, request: ModelRequest) -> Value {
    sent(kind, request, true).await.body
}

/// "hello", with nothing to call.
pub fn request() -> ModelRequest {
    ModelRequest {
        instruction: "Be brief.".into(),
        messages: vec![user("hello")],
        functions: Arc::from([]),
        ..ModelRequest::default()
    }
}

pub fn with_functions(names: &[&str]) -> ModelRequest {
    ModelRequest {
        functions: names.iter().map(|name| function(name)).collect(),
        ..request()
    }
}

pub fn with_messages(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        messages,
        ..request()
    }
}

pub fn function(name: &str) -> Function {
    let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
    Function {
        name: name.into(),
        description: format!("Does {name}").into(),
        parameters: schema.into(),
    }
}

pub fn user(text: &str) -> Message {
    Message::user(text)
}

pub fn notice(text: &str) -> Message {
    Message::Notice { text: text.into() }
}

/// An assistant's message with calls of an id, a name and arguments.
pub fn assistant(text: &str, calls: &[(&str, &str, &str)], opaque: Option<Opaque>) -> Message {
    let calls: Arc<[Call]> = calls
        .iter()
        .map(|(id, name, arguments)| raw_call(id, name, arguments))
        .collect();
    Message::Assistant {
        text: text.into(),
        calls,
        opaque,
    }
}

pub fn result(call: &str, name: &str, text: &str) -> Message {
    Message::Result {
        call: call.into(),
        name: name.into(),
        text: text.into(),
        failed: false,
        attachments: Vec::new(),
    }
}

pub fn opaque(kind: Kind, data: Value) -> Opaque {
    Opaque {
        kind: kind.name().into(),
        model: None,
        data: Arc::new(data),
    }
}

/// Names and arguments of a reply's calls.
pub fn calls_of(reply: &ModelReply) -> Vec<(&str, &str)> {
    reply
        .calls
        .iter()
        .map(|call| (&*call.name, &*call.arguments))
        .collect()
}

/// The faults behind these answers, one after the other.
pub async fn faults(kind: Kind, answers: Vec<Answer>) -> Vec<ModelFault> {
    let count = answers.len();
    let server = WireServer::scripted(answers).await;
    let model = model(kind, server.url(), true);
    let mut faults = Vec::new();
    for _ in 0..count {
        faults.push(call(&model, request()).await.1.unwrap_err());
    }
    faults
}
