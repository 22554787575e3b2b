//! A model of a provider: one wire over one address.

use crate::api::{self, Api};
use crate::http::{Endpoint, EndpointParts, Headers, Patience};
use crate::sse::Frames;
use crate::table::{ModelFacts, facts_of};
use crate::wire::{ReplyReader, Target, Wire, beginning};
use crate::{anthropic, gemini, openai, responses};
use futures_util::{StreamExt, stream};
use lango_core::{BoxStream, Model, ModelError, ModelEvent, ModelFault, ModelRequest, ModelTerms};
use lango_secrets::{Credential, Masks};
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

/// The families of providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// OpenAI, and the very many servers that speak one of its APIs.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
    /// Google's Gemini.
    Gemini,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::OpenAi, Self::Anthropic, Self::Gemini];

    /// Its name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }
}

/// How a provider is reached.
#[derive(Clone)]
pub struct ProviderSettings {
    /// Its name in `provider/model`.
    pub id: String,
    /// How it is spoken to.
    pub kind: Kind,
    /// The API to use of OpenAI's kind; none chooses by the address.
    pub api: Option<Api>,
    /// Where it is.
    pub base_url: String,
    /// The key, if it wants one. It is sent to the origin of `base_url` only.
    pub api_key: Option<Credential>,
    /// The values that are masked in what it says.
    pub masks: Masks,
    /// Where the key was looked for, for error texts.
    pub key_source: String,
    /// Whether replies are streamed.
    pub stream: bool,
    /// How many tokens its models take at once, if somebody set it; wins over the table of models.
    pub context_tokens: Option<u64>,
    /// How many tokens its models take at once where neither that nor the table says.
    pub default_context_tokens: Option<u64>,
    /// How long lango waits.
    pub patience: Patience,
}

/// A provider that models can be asked of.
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
    /// Nothing is connected before the first call.
    pub fn new(settings: ProviderSettings) -> Self {
        let address = settings.base_url.clone();
        let wire: Box<dyn Wire> = match settings.kind {
            Kind::OpenAi => openai_wire(&settings),
            Kind::Anthropic => Box::new(anthropic::Anthropic),
            Kind::Gemini => Box::new(gemini::Gemini),
        };
        let version = match settings.kind {
            Kind::OpenAi => api::version(&address),
            Kind::Anthropic | Kind::Gemini => wire.version(),
        };
        let base_url = with_version(&address, version);
        let endpoint = Endpoint::new(EndpointParts {
            base_url,
            key: settings.api_key,
            headers: Box::new(move |key| headers(settings.kind, &address, key)),
            masks: settings.masks,
            patience: settings.patience,
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

    /// One of its models.
    pub fn model(&self, id: &str) -> ProviderModel {
        let name = format!("{}/{id}", self.inner.id);
        ProviderModel {
            provider: self.clone(),
            facts: facts_of(&self.inner.id, id),
            id: id.to_owned(),
            name,
        }
    }

    /// The ids of the models it has.
    pub async fn list(&self) -> Result<Vec<String>, ModelError> {
        let inner = &self.inner;
        let list = inner.endpoint.get(inner.wire.models_path()).await;
        let list = list.map_err(|fault| self.error(&inner.id, fault))?;
        let is_id = |id: &String| id.len() <= 256 && !id.chars().any(char::is_control);
        let ids = inner.wire.model_ids(&list);
        Ok(ids.into_iter().filter(is_id).collect())
    }

    /// The error as it is told and stored. Some providers repeat the key that they refuse; it must go no further.
    fn error(&self, model: &str, mut fault: ModelFault) -> ModelError {
        if let Some(detail) = fault.detail_mut() {
            self.inner.endpoint.masks.mask_string(detail);
        }
        if let ModelFault::BadKey { detail } = &mut fault {
            *detail = format!("{detail} (the key: {})", self.inner.key_source);
        }
        ModelError {
            model: model.into(),
            fault,
        }
    }
}

/// The headers of a request.
fn headers(kind: Kind, address: &str, key: Option<&str>) -> Headers {
    match kind {
        Kind::OpenAi => api::headers(address, key),
        Kind::Anthropic => anthropic::headers(key),
        Kind::Gemini => gemini::headers(key),
    }
}

fn openai_wire(settings: &ProviderSettings) -> Box<dyn Wire> {
    let by_address = || Api::at(&settings.base_url);
    match settings.api.unwrap_or_else(by_address) {
        Api::Chat => Box::new(openai::OpenAi),
        Api::Responses => Box::new(responses::Responses::default()),
    }
}

/// People write `http://127.0.0.1:11434` and mean `…/v1`. A query stays where it is.
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

/// A model of a provider.
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

    fn terms(&self) -> ModelTerms {
        let provider = &self.provider.inner;
        ModelTerms {
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
            context_tokens: self.terms().context_tokens,
            max_output_tokens: self.facts.max_output_tokens,
            // Of a model that nobody knows, the user does: what was attached or set on purpose is sent.
            sees_images: self.facts.sees_images.unwrap_or(true),
            takes_temperature: self.facts.takes_temperature.unwrap_or(true),
            takes_effort: self.facts.reasons.unwrap_or(true),
            // The schema is in the instruction as well, so nothing is lost where it is not enforced.
            takes_schema: self.facts.answers_by_schema.unwrap_or(false),
        }
    }

    /// Completes a reply with what its reader cannot know: its price, and whose opaque parts it holds.
    fn complete(&self, event: ModelEvent) -> ModelEvent {
        match event {
            ModelEvent::Reply(mut reply) => {
                if let Some(opaque) = &mut reply.opaque {
                    opaque.model = Some(self.name.as_str().into());
                }
                // A server that does not count its tokens does not give them away.
                let price = self.facts.price.filter(|_| reply.usage.total() > 0);
                reply.cost_micros = price.map(|price| price.of(&reply.usage));
                ModelEvent::Reply(reply)
            }
            other => other,
        }
    }
}

/// One call under way.
struct Call<'a> {
    model: &'a ProviderModel,
    request: ModelRequest,
    state: State,
}

enum State {
    Unsent,
    Streaming(Box<Reading>),
    Over,
}

/// How long to wait for usage and more text after the reply ended, from servers that leave the connection open.
const LAST_WAIT: Duration = Duration::from_secs(2);

/// A stream that is being read.
struct Reading {
    response: Response,
    frames: Frames,
    reader: Box<dyn ReplyReader>,
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
                State::Streaming(reading) => return Some(self.read(reading).await),
            }
        }
    }

    /// Sends the request. A reply that is not streamed is here at once.
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
                let mut frames = Frames::default();
                frames.push(&beginning_of_body).map_err(|_| too_long())?;
                self.state = State::Streaming(Box::new(Reading {
                    response,
                    frames,
                    reader,
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
        // A stream under another name.
        if ["data:", "event:", ":"].iter().any(|start| {
            body.trim_start_matches('\u{feff}')
                .trim_start()
                .starts_with(start)
        }) {
            return read_frames(&body, reader).map(Some);
        }
        Err(ModelFault::Malformed {
            detail: format!("`{content_type}` in place of a reply: {}", beginning(&body)),
        })
    }

    /// Reads on until there is text to show, or the reply is whole.
    async fn read(&mut self, mut reading: Box<Reading>) -> Result<ModelEvent, ModelFault> {
        let endpoint = &self.model.provider.inner.endpoint;
        loop {
            while !reading.reader.is_whole()
                && let Some(frame) = reading.frames.next()
            {
                if let Some(event) = reading.reader.frame(&endpoint.masked(frame.data))? {
                    self.state = State::Streaming(reading);
                    return Ok(event);
                }
            }
            // Whatever else comes on this connection is no part of the reply.
            if reading.reader.is_whole() {
                return reading.reader.finish().map(ModelEvent::Reply);
            }
            let wait = if reading.reader.has_ended() {
                endpoint.patience.idle.min(LAST_WAIT)
            } else {
                endpoint.patience.idle
            };
            match endpoint.chunk_within(&mut reading.response, wait).await {
                Ok(Some(bytes)) => reading.frames.push(&bytes).map_err(|_| too_long())?,
                // A stream that ends, well or badly, after its reply was whole has said all it had to say.
                Ok(None) | Err(ModelFault::CutOff) => return reading.end(endpoint),
                // So has one that falls silent after it.
                Err(fault) => return reading.end(endpoint).map_err(|_| fault),
            }
        }
    }
}

impl Reading {
    /// Reads what is left when nothing more comes.
    fn end(mut self, endpoint: &Endpoint) -> Result<ModelEvent, ModelFault> {
        self.frames.finish();
        while let Some(frame) = self.frames.next() {
            match self.reader.frame(&endpoint.masked(frame.data)) {
                // A frame that was cut in the middle is no frame.
                Ok(_) | Err(ModelFault::Malformed { .. }) => {}
                Err(fault) => return Err(fault),
            }
        }
        self.reader.finish().map(ModelEvent::Reply)
    }
}

/// Whether a body is a whole reply, whatever its name says.
fn looks_whole(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"{") || body.trim_ascii_start().starts_with(b"[")
}

/// A stream that came in one piece under another name.
fn read_frames(body: &str, mut reader: Box<dyn ReplyReader>) -> Result<ModelEvent, ModelFault> {
    let mut frames = Frames::default();
    frames.push(body.as_bytes()).map_err(|_| too_long())?;
    frames.finish();
    while !reader.is_whole()
        && let Some(frame) = frames.next()
    {
        reader.frame(&frame.data)?;
    }
    reader.finish().map(ModelEvent::Reply)
}

fn too_long() -> ModelFault {
    ModelFault::Malformed {
        detail: format!("a frame of more than {} bytes", Frames::FRAME_BYTES),
    }
}
