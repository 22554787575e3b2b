//! A provider's models: one wire format over one address.

use crate::api::{self, OpenAiApi};
use crate::http::{Endpoint, EndpointParts, Headers, ProviderTimeouts};
use crate::table::{ModelFacts, facts_of};
use crate::wire::{ReplyReader, Target, Wire, excerpt};
use crate::{anthropic, gemini, openai, responses};
use futures_util::{StreamExt, stream};
use lango_core::{BoxStream, Model, ModelError, ModelEvent, ModelFault, ModelInfo, ModelRequest};
use lango_net::{EventTooLong, PlainHttp, SseParser};
use lango_secrets::{Credential, Masks};
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

/// The family of a provider, which decides the wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderFamily {
    /// OpenAI, and the many servers that speak one of its APIs.
    OpenAi,
    Anthropic,
    Gemini,
}

impl ProviderFamily {
    pub const ALL: [Self; 3] = [Self::OpenAi, Self::Anthropic, Self::Gemini];

    /// Returns the name used in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }
}

/// The settings of one provider.
#[derive(Clone)]
pub struct ProviderSettings {
    /// The provider part of `provider/model`.
    pub id: String,
    pub kind: ProviderFamily,
    /// Which of OpenAI's APIs to use; `None` chooses by the address.
    pub api: Option<OpenAiApi>,
    pub base_url: String,
    /// The key, if the provider needs one. It is sent only to the origin of `base_url`.
    pub api_key: Option<Credential>,
    /// Whether the key may be sent over plain HTTP.
    pub plain_http: PlainHttp,
    /// Secret values to mask in everything the provider sends.
    pub masks: Masks,
    /// Where lango looked for the key; shown in errors.
    pub key_source: String,
    pub stream: bool,
    /// The configured context window, which overrides the model table.
    pub context_tokens: Option<u64>,
    /// The context window to assume if neither the configuration nor the model table has one.
    pub default_context_tokens: Option<u64>,
    pub timeouts: ProviderTimeouts,
}

/// A provider of models. Clones share its connections.
#[derive(Clone)]
pub struct Provider {
    inner: Arc<Inner>,
}

struct Inner {
    endpoint: Endpoint,
    wire: Box<dyn Wire>,
    stream: bool,
    id: String,
    key_source: String,
    context_tokens: Option<u64>,
    default_context_tokens: Option<u64>,
}

impl Provider {
    /// Creates a provider. It connects on the first call.
    pub fn new(settings: ProviderSettings) -> Self {
        let address = settings.base_url.clone();
        let wire: Box<dyn Wire> = match settings.kind {
            ProviderFamily::OpenAi => openai_wire(&settings),
            ProviderFamily::Anthropic => Box::new(anthropic::Anthropic),
            ProviderFamily::Gemini => Box::new(gemini::Gemini),
        };
        let version = match settings.kind {
            ProviderFamily::OpenAi => api::version(&address),
            ProviderFamily::Anthropic | ProviderFamily::Gemini => wire.version(),
        };
        let base_url = with_version(&address, version);
        let endpoint = Endpoint::new(EndpointParts {
            base_url,
            key: settings.api_key,
            headers: Box::new(move |key| headers(settings.kind, &address, key)),
            plain_http: settings.plain_http,
            masks: settings.masks,
            timeouts: settings.timeouts,
        });
        let inner = Inner {
            endpoint,
            wire,
            stream: settings.stream,
            id: settings.id,
            key_source: settings.key_source,
            context_tokens: settings.context_tokens,
            default_context_tokens: settings.default_context_tokens,
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Returns the model with this id, without checking that the provider has it.
    pub fn model(&self, id: &str) -> ProviderModel {
        let name = format!("{}/{id}", self.inner.id);
        ProviderModel {
            provider: self.clone(),
            facts: facts_of(&self.inner.id, id),
            id: id.to_owned(),
            name,
        }
    }

    /// Fetches the ids of the provider's models. Leaves out ids with control characters or more than 256 bytes.
    pub async fn list(&self) -> Result<Vec<String>, ModelError> {
        let inner = &self.inner;
        let list = inner.endpoint.get(inner.wire.models_path()).await;
        let list = list.map_err(|fault| self.error(&inner.id, fault))?;
        let is_id = |id: &String| id.len() <= 256 && !id.chars().any(char::is_control);
        let ids = inner.wire.model_ids(&list);
        Ok(ids.into_iter().filter(is_id).collect())
    }

    /// Builds the error to show and store, with secrets masked: some providers repeat the key that they refuse.
    fn error(&self, model: &str, mut fault: ModelFault) -> ModelError {
        if let Some(detail) = fault.detail_mut() {
            self.inner.endpoint.masks.mask_string(detail);
        }
        let address = self.inner.endpoint.address();
        let address = match &mut fault {
            ModelFault::BadKey { detail } => {
                let source = &self.inner.key_source;
                *detail = format!("{detail} (the key: {source}; the address: {address})");
                None
            }
            ModelFault::UnknownModel { detail } => {
                *detail = format!("{detail} (the address: {address})");
                None
            }
            // It names the address itself, or no request was sent.
            ModelFault::Unreachable { .. } | ModelFault::NoKey { .. } => None,
            _ => Some(address.into()),
        };
        ModelError {
            model: model.into(),
            fault,
            address,
        }
    }
}

fn headers(kind: ProviderFamily, address: &str, key: Option<&str>) -> Headers {
    match kind {
        ProviderFamily::OpenAi => api::headers(address, key),
        ProviderFamily::Anthropic => anthropic::headers(key),
        ProviderFamily::Gemini => gemini::headers(key),
    }
}

fn openai_wire(settings: &ProviderSettings) -> Box<dyn Wire> {
    let by_address = || OpenAiApi::at(&settings.base_url);
    match settings.api.unwrap_or_else(by_address) {
        OpenAiApi::Chat => Box::new(openai::OpenAi),
        OpenAiApi::Responses => Box::new(responses::Responses::default()),
    }
}

/// Appends the version to an address without a path: people write `http://127.0.0.1:11434` and mean `…/v1`. Keeps the
/// query.
pub(crate) fn with_version(base_url: &str, version: &str) -> String {
    let (address, query) = match base_url.find('?') {
        Some(at) => base_url.split_at(at),
        None => (base_url, ""),
    };
    let address = address.trim_end_matches('/');
    let has_path = address
        .split_once("://")
        .is_some_and(|(_, rest)| rest.contains('/'));
    let version = if has_path { "" } else { version };
    format!("{address}{version}{query}")
}

/// One model of a provider.
pub struct ProviderModel {
    provider: Provider,
    id: String,
    name: String,
    facts: ModelFacts,
}

impl Model for ProviderModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn info(&self) -> ModelInfo {
        let provider = &self.provider.inner;
        ModelInfo {
            price: self.facts.price,
            context_tokens: provider
                .context_tokens
                .or(self.facts.context_tokens)
                .or(provider.default_context_tokens),
        }
    }

    fn call<'a>(&'a self, request: ModelRequest) -> BoxStream<'a, Result<ModelEvent, ModelError>> {
        let call = Call {
            model: self,
            request,
            state: State::Unsent,
        };
        stream::unfold(call, |mut call| async move {
            let item = call.next().await?;
            let item = item.map(|event| call.model.complete(event));
            let item = item.map_err(|fault| call.model.provider.error(&call.model.name, fault));
            if item.is_err() {
                call.state = State::Over;
            }
            Some((item, call))
        })
        .boxed()
    }
}

impl ProviderModel {
    fn target(&self) -> Target<'_> {
        Target {
            model: &self.id,
            name: &self.name,
            host: self.provider.inner.endpoint.host(),
            streaming: self.provider.inner.stream,
            context_tokens: self.info().context_tokens,
            max_output_tokens: self.facts.max_output_tokens,
            // The user knows better about a model that is not in the table, so lango sends what they attached or set.
            sees_images: self.facts.sees_images.unwrap_or(true),
            takes_temperature: self.facts.takes_temperature.unwrap_or(true),
            takes_effort: self.facts.reasons.unwrap_or(true),
            // The instruction contains the schema too, so a model that does not enforce it still sees it.
            takes_schema: self.facts.answers_by_schema.unwrap_or(false),
        }
    }

    /// Completes a reply with what its reader cannot know: its cost, and the model that its opaque data belongs to.
    fn complete(&self, event: ModelEvent) -> ModelEvent {
        match event {
            ModelEvent::Reply(mut reply) => {
                if let Some(opaque) = &mut reply.opaque {
                    opaque.model = Some(self.name.as_str().into());
                }
                // If a server reports no usage, the cost is unknown rather than zero.
                let price = self.facts.price.filter(|_| reply.usage.total() > 0);
                reply.cost_micros = price.map(|price| price.cost(&reply.usage));
                ModelEvent::Reply(reply)
            }
            other => other,
        }
    }
}

/// A call in progress.
struct Call<'a> {
    model: &'a ProviderModel,
    request: ModelRequest,
    state: State,
}

enum State {
    Unsent,
    Streaming(Box<OpenStream>),
    Over,
}

/// How long to wait for usage or more text after the stop reason. Some servers never close the connection.
const LAST_WAIT: Duration = Duration::from_secs(2);

struct OpenStream {
    response: Response,
    events: SseParser,
    reader: Box<dyn ReplyReader>,
    /// Bytes of output without text that were not reported yet.
    unreported_bytes: usize,
}

impl Call<'_> {
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelFault>> {
        loop {
            match std::mem::replace(&mut self.state, State::Over) {
                State::Over => return None,
                State::Unsent => match self.send().await {
                    Ok(Some(reply)) => return Some(Ok(reply)),
                    Ok(None) => {}
                    Err(fault) => return Some(Err(fault)),
                },
                State::Streaming(stream) => return Some(self.read(stream).await),
            }
        }
    }

    /// Sends the request. Returns the reply if it is not streamed; otherwise starts reading the stream.
    async fn send(&mut self) -> Result<Option<ModelEvent>, ModelFault> {
        let inner = &self.model.provider.inner;
        let request = inner.wire.request(&self.model.target(), &self.request);
        let mut reader = inner.wire.reader(&self.request);
        let mut response = match inner.endpoint.post(&request).await {
            Err(fault) if inner.wire.learn_from(&self.model.id, &fault) => {
                let request = inner.wire.request(&self.model.target(), &self.request);
                inner.endpoint.post(&request).await?
            }
            answer => answer?,
        };
        let content_type = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or_default().to_ascii_lowercase();
        let mut beginning_of_body = Vec::new();
        if content_type.starts_with("text/event-stream") {
            beginning_of_body = inner
                .endpoint
                .chunk(&mut response)
                .await?
                .unwrap_or_default();
            if !looks_whole(&beginning_of_body) {
                let mut events = events();
                events.push(&beginning_of_body).map_err(too_long)?;
                self.state = State::Streaming(Box::new(OpenStream {
                    response,
                    events,
                    reader,
                    unreported_bytes: 0,
                }));
                return Ok(None);
            }
        }
        let rest = inner.endpoint.body(response).await?;
        let body = format!("{}{rest}", String::from_utf8_lossy(&beginning_of_body));
        let body = inner.endpoint.masked(body);
        if looks_whole(body.as_bytes()) {
            reader.whole(&body)?;
            return Ok(Some(ModelEvent::Reply(reader.finish()?)));
        }
        // A stream with the wrong content type.
        if ["data:", "event:", ":"].iter().any(|start| {
            body.trim_start_matches('\u{feff}')
                .trim_start()
                .starts_with(start)
        }) {
            return read_frames(&body, reader).map(Some);
        }
        Err(ModelFault::Malformed {
            detail: if body.trim().is_empty() {
                format!("expected a reply, got nothing (`{content_type}`)")
            } else {
                format!("expected a reply, got `{content_type}`: {}", excerpt(&body))
            },
        })
    }

    /// Reads until there is text to show, everything that arrived has been read, or the reply is complete.
    async fn read(&mut self, mut stream: Box<OpenStream>) -> Result<ModelEvent, ModelFault> {
        let endpoint = &self.model.provider.inner.endpoint;
        loop {
            while !stream.reader.is_complete()
                && let Some(data) = stream.events.next_data()
            {
                match stream.reader.frame(&endpoint.masked(data))? {
                    Some(ModelEvent::Progress { bytes }) => stream.unreported_bytes += bytes,
                    Some(event) => {
                        self.state = State::Streaming(stream);
                        return Ok(event);
                    }
                    None => {}
                }
            }
            // Anything after this on the connection is not part of the reply.
            if stream.reader.is_complete() {
                return stream.reader.finish().map(ModelEvent::Reply);
            }
            // One report for all frames that arrived together.
            let bytes = std::mem::take(&mut stream.unreported_bytes);
            if bytes > 0 {
                self.state = State::Streaming(stream);
                return Ok(ModelEvent::Progress { bytes });
            }
            let wait = if stream.reader.has_ended() {
                endpoint.timeouts.idle.min(LAST_WAIT)
            } else {
                endpoint.timeouts.idle
            };
            match endpoint.chunk_within(&mut stream.response, wait).await {
                Ok(Some(bytes)) => stream.events.push(&bytes).map_err(too_long)?,
                // The connection may close or break after the reply: `end` fails only if the reply is incomplete.
                Ok(None) | Err(ModelFault::Incomplete) => return stream.end(endpoint),
                // The same holds for a timeout.
                Err(fault) => return stream.end(endpoint).map_err(|_| fault),
            }
        }
    }
}

impl OpenStream {
    /// Reads the buffered events after the stream has ended, and finishes the reply.
    fn end(mut self, endpoint: &Endpoint) -> Result<ModelEvent, ModelFault> {
        self.events.finish();
        while let Some(data) = self.events.next_data() {
            match self.reader.frame(&endpoint.masked(data)) {
                // The stream may have ended in the middle of a frame.
                Ok(_) | Err(ModelFault::Malformed { .. }) => {}
                Err(fault) => return Err(fault),
            }
        }
        self.reader.finish().map(ModelEvent::Reply)
    }
}

/// Returns whether a body is a JSON document, whatever its content type says.
fn looks_whole(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"{") || body.trim_ascii_start().starts_with(b"[")
}

/// Reads a complete body of server-sent events.
fn read_frames(body: &str, mut reader: Box<dyn ReplyReader>) -> Result<ModelEvent, ModelFault> {
    let mut events = events();
    let mut chunks = body.as_bytes().chunks(64 * 1024);
    loop {
        let chunk = chunks.next();
        match chunk {
            Some(chunk) => events.push(chunk).map_err(too_long)?,
            None => events.finish(),
        }
        while !reader.is_complete()
            && let Some(data) = events.next_data()
        {
            reader.frame(&data)?;
        }
        if chunk.is_none() || reader.is_complete() {
            return reader.finish().map(ModelEvent::Reply);
        }
    }
}

/// Maximum number of bytes per event of a stream.
const EVENT_BYTES: usize = 4 * 1024 * 1024;

fn events() -> SseParser {
    SseParser::new(EVENT_BYTES).with_bare_json()
}

fn too_long(error: EventTooLong) -> ModelFault {
    ModelFault::Malformed {
        detail: error.to_string(),
    }
}
