//! Models over the test server, and requests to send them.

use futures_util::StreamExt;
use lango_core::{
    Call, Function, Message, Model, ModelEvent, ModelFault, ModelReply, ModelRequest, OpaqueData,
};
use lango_models::{OpenAiApi, Provider, ProviderModel, ProviderSettings, ProviderTimeouts};
use lango_net::PlainHttp;
use lango_secrets::{Credential, Masks, SecretValue};
use lango_testkit::model::raw_call;
use lango_testkit::wire_server::{RecordedRequest, ScriptedAnswer, WireServer};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// The wire formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    /// OpenAI's chat completions API.
    OpenAi,
    /// OpenAI's Responses API.
    Responses,
    Anthropic,
    Gemini,
}

impl Wire {
    pub(crate) const ALL: [Self; 4] =
        [Self::OpenAi, Self::Responses, Self::Anthropic, Self::Gemini];

    /// Returns the kind of its opaque data, which is the id of the provider in these tests too.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Responses => "responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    fn api(self) -> Option<OpenAiApi> {
        match self {
            Self::OpenAi => Some(OpenAiApi::Chat),
            Self::Responses => Some(OpenAiApi::Responses),
            Self::Anthropic | Self::Gemini => None,
        }
    }

    fn of_provider(self) -> lango_models::ProviderFamily {
        match self {
            Self::OpenAi | Self::Responses => lango_models::ProviderFamily::OpenAi,
            Self::Anthropic => lango_models::ProviderFamily::Anthropic,
            Self::Gemini => lango_models::ProviderFamily::Gemini,
        }
    }
}

/// Whether to stream replies: both ways.
pub(crate) const BOTH: [bool; 2] = [true, false];

pub(crate) fn settings(kind: Wire, url: &str) -> ProviderSettings {
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
        plain_http: PlainHttp::LocalOnly,
        masks,
        key_source: "environment variable `THE_KEY`".to_owned(),
        stream: true,
        context_tokens: None,
        default_context_tokens: None,
        timeouts: ProviderTimeouts {
            connect: Duration::from_secs(5),
            idle: Duration::from_secs(20),
        },
    }
}

pub(crate) fn model(kind: Wire, url: &str, streaming: bool) -> ProviderModel {
    let settings = ProviderSettings {
        stream: streaming,
        ..settings(kind, url)
    };
    Provider::new(settings).model("m")
}

/// Calls a model. Returns the events before the last, and the last. Asserts that nothing follows it.
pub(crate) async fn call(
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

/// Returns the streamed text of a call, without the progress of its other output.
pub(crate) fn shown(events: &[ModelEvent]) -> String {
    let text = |event: &ModelEvent| match event {
        ModelEvent::Text(text) => text.clone(),
        ModelEvent::Progress { .. } => String::new(),
        other => panic!("{other:?} is no text"),
    };
    events.iter().map(text).collect()
}

/// Reads one answer of the server as a reply.
pub(crate) async fn read(
    kind: Wire,
    answer: impl Into<ScriptedAnswer>,
) -> (Vec<ModelEvent>, Result<ModelReply, ModelFault>) {
    read_for(kind, answer, request()).await
}

pub(crate) async fn read_for(
    kind: Wire,
    answer: impl Into<ScriptedAnswer>,
    request: ModelRequest,
) -> (Vec<ModelEvent>, Result<ModelReply, ModelFault>) {
    let server = WireServer::scripted([answer.into()]).await;
    call(&model(kind, server.url(), true), request).await
}

/// Reads one answer, which must be a valid reply.
pub(crate) async fn reply(kind: Wire, answer: impl Into<ScriptedAnswer>) -> ModelReply {
    read(kind, answer).await.1.unwrap()
}

/// Reads one answer, which must be a fault.
pub(crate) async fn fault(kind: Wire, answer: impl Into<ScriptedAnswer>) -> ModelFault {
    read(kind, answer).await.1.unwrap_err()
}

/// Sends a request and returns what the server received.
pub(crate) async fn sent(kind: Wire, request: ModelRequest, streaming: bool) -> RecordedRequest {
    let server = WireServer::scripted([lango_testkit::model::say("ok")]).await;
    let (_, end) = call(&model(kind, server.url(), streaming), request).await;
    end.unwrap();
    server.requests().remove(0)
}

/// Sends a request and returns the body that the server received.
pub(crate) async fn body(kind: Wire, request: ModelRequest) -> Value {
    sent(kind, request, true).await.body
}

/// Returns a request with the message "hello" and no functions.
pub(crate) fn request() -> ModelRequest {
    ModelRequest {
        instruction: "Be brief.".into(),
        messages: vec![user("hello")],
        functions: Arc::from([]),
        ..ModelRequest::default()
    }
}

pub(crate) fn with_functions(names: &[&str]) -> ModelRequest {
    ModelRequest {
        functions: names.iter().map(|name| function(name)).collect(),
        ..request()
    }
}

pub(crate) fn with_messages(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        messages,
        ..request()
    }
}

pub(crate) fn function(name: &str) -> Function {
    let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
    Function {
        name: name.into(),
        description: format!("Does {name}").into(),
        parameters: schema.into(),
    }
}

pub(crate) fn user(text: &str) -> Message {
    Message::user(text)
}

pub(crate) fn notice(text: &str) -> Message {
    Message::Notice { text: text.into() }
}

/// Returns an assistant's message with calls, each with an id, a name and arguments.
pub(crate) fn assistant(
    text: &str,
    calls: &[(&str, &str, &str)],
    opaque: Option<OpaqueData>,
) -> Message {
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

pub(crate) fn result(call: &str, name: &str, text: &str) -> Message {
    Message::Result {
        call: call.into(),
        name: name.into(),
        text: text.into(),
        failed: false,
        attachments: Vec::new(),
    }
}

pub(crate) fn opaque(kind: Wire, data: Value) -> OpaqueData {
    OpaqueData {
        kind: kind.name().into(),
        model: None,
        data: Arc::new(data),
    }
}

/// Returns the names and arguments of a reply's calls.
pub(crate) fn calls_of(reply: &ModelReply) -> Vec<(&str, &str)> {
    reply
        .calls
        .iter()
        .map(|call| (&*call.name, &*call.arguments))
        .collect()
}

/// Returns the faults of these answers, in order.
pub(crate) async fn faults(kind: Wire, answers: Vec<ScriptedAnswer>) -> Vec<ModelFault> {
    let count = answers.len();
    let server = WireServer::scripted(answers).await;
    let model = model(kind, server.url(), true);
    let mut faults = Vec::new();
    for _ in 0..count {
        faults.push(call(&model, request()).await.1.unwrap_err());
    }
    faults
}
