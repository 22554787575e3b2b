//! Connections to providers: one lazy client, time-outs for connecting, for the first word and between words, and the
//! reading of status codes. There is no limit on the whole of a stream: healthy work may take long.

use crate::wire::{WireRequest, beginning};
use lango_core::ModelFault;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode};
use serde_json::Value;
use std::sync::OnceLock;
use std::time::Duration;

/// How long lango waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// For a connection.
    pub connect: Duration,
    /// For the first word, and between words.
    pub idle: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(60),
        }
    }
}

/// A provider's address.
pub(crate) struct Endpoint {
    base_url: String,
    headers: Vec<(&'static str, String)>,
    pub patience: Patience,
    client: OnceLock<Client>,
}

impl Endpoint {
    /// The longest body that is read of a reply that is not streamed.
    const BODY_BYTES: usize = 16 * 1024 * 1024;

    pub fn new(base_url: &str, headers: Vec<(&'static str, String)>, patience: Patience) -> Self {
        let base_url = base_url.trim_end_matches('/').to_owned();
        Self {
            base_url,
            headers,
            patience,
            client: OnceLock::new(),
        }
    }

    /// Sends a request and waits for the head of its answer.
    pub async fn post(&self, request: &WireRequest) -> Result<Response, ModelFault> {
        let url = format!("{}{}", self.base_url, request.path);
        let sending = self
            .client()?
            .post(url)
            .json_body(&request.body)
            .headers(self.header_map()?)
            .send();
        self.answered(sending).await
    }

    /// Reads a JSON document.
    pub async fn get(&self, path: &str) -> Result<Value, ModelFault> {
        let url = format!("{}{path}", self.base_url);
        let sending = self.client()?.get(url).headers(self.header_map()?).send();
        let body = self.body(self.answered(sending).await?).await?;
        crate::wire::parse(&body)
    }

    /// The next bytes of an answer; none at its end.
    pub async fn chunk(&self, response: &mut Response) -> Result<Option<Vec<u8>>, ModelFault> {
        match tokio::time::timeout(self.patience.idle, response.chunk()).await {
            Err(_elapsed) => Err(self.silent()),
            Ok(Err(_)) => Err(ModelFault::CutOff),
            Ok(Ok(chunk)) => Ok(chunk.map(|bytes| bytes.to_vec())),
        }
    }

    /// The rest of an answer as text.
    pub async fn body(&self, mut response: Response) -> Result<String, ModelFault> {
        let mut bytes = Vec::new();
        while let Some(chunk) = self.chunk(&mut response).await? {
            if bytes.len() + chunk.len() > Self::BODY_BYTES {
                return Err(ModelFault::Malformed {
                    detail: format!("more than {} bytes", Self::BODY_BYTES),
                });
            }
            bytes.extend(chunk);
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    async fn answered(
        &self,
        sending: impl Future<Output = reqwest::Result<Response>>,
    ) -> Result<Response, ModelFault> {
        let response = match tokio::time::timeout(self.patience.idle, sending).await {
            Err(_elapsed) => return Err(self.silent()),
            Ok(Err(error)) => {
                return Err(ModelFault::Unreachable {
                    detail: deepest(&error),
                });
            }
            Ok(Ok(response)) => response,
        };
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let retry_after = retry_after(response.headers());
        let body = self.body(response).await.unwrap_or_default();
        Err(fault_of(status, retry_after, &body))
    }

    fn silent(&self) -> ModelFault {
        ModelFault::Silent {
            after_ms: u64::try_from(self.patience.idle.as_millis()).unwrap_or(u64::MAX),
        }
    }

    fn client(&self) -> Result<&Client, ModelFault> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        // Another part of the process may have chosen a provider already; any will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let built = Client::builder()
            .connect_timeout(self.patience.connect)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("lango/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| ModelFault::Unreachable {
                detail: error.to_string(),
            })?;
        Ok(self.client.get_or_init(|| built))
    }

    fn header_map(&self) -> Result<HeaderMap, ModelFault> {
        let mut map = HeaderMap::new();
        for (name, value) in &self.headers {
            let mut value = HeaderValue::from_str(value).map_err(|_| ModelFault::BadKey {
                detail: "the key holds characters that no key has".to_owned(),
            })?;
            value.set_sensitive(true);
            map.insert(HeaderName::from_static(name), value);
        }
        Ok(map)
    }
}

trait JsonBody {
    fn json_body(self, body: &Value) -> Self;
}

impl JsonBody for reqwest::RequestBuilder {
    fn json_body(self, body: &Value) -> Self {
        self.header(CONTENT_TYPE, "application/json")
            .body(body.to_string())
    }
}

/// What a status code means for lango. The provider's own code decides before its words do.
fn fault_of(status: StatusCode, retry_after_ms: Option<u64>, body: &str) -> ModelFault {
    let parsed: Value = serde_json::from_str(body).unwrap_or_default();
    let error = parsed
        .get("error")
        .or_else(|| parsed.pointer("/0/error"))
        .unwrap_or(&parsed);
    let text = |name: &str| {
        error
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let (code, message) = (text("code"), text("message"));
    let message = if message.is_empty() {
        error
            .as_str()
            .map_or_else(|| beginning(body), str::to_owned)
    } else {
        message
    };
    let detail = format!("{} {}", status.as_u16(), beginning(&message));
    let too_long = code == "context_length_exceeded"
        || status == StatusCode::PAYLOAD_TOO_LARGE
        || speaks_of_length(&message);
    match status.as_u16() {
        401 | 403 => ModelFault::BadKey { detail },
        402 => ModelFault::BadKey { detail },
        429 if code == "insufficient_quota" => ModelFault::BadKey { detail },
        429 => ModelFault::RateLimited {
            retry_after_ms,
            detail,
        },
        400 | 413 | 422 if too_long => ModelFault::ContextTooLong { detail },
        400 if code == "model_not_found" => ModelFault::UnknownModel { detail },
        400 if message.contains("API key") => ModelFault::BadKey { detail },
        404 | 405 => ModelFault::UnknownModel { detail },
        408 | 409 | 425 | 500..=599 => ModelFault::Overloaded { detail },
        _ => ModelFault::Refused { detail },
    }
}

/// Only for providers that have no code for it.
fn speaks_of_length(message: &str) -> bool {
    let message = message.to_lowercase();
    [
        "maximum context length",
        "prompt is too long",
        "context window",
        "input token count",
        "exceeds the available context",
        "too many tokens",
    ]
    .iter()
    .any(|words| message.contains(words))
}

fn retry_after(headers: &HeaderMap) -> Option<u64> {
    let text = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok()?.trim().parse::<f64>().ok())
    };
    let ms = text("retry-after-ms")
        .or_else(|| text(RETRY_AFTER.as_str()).map(|seconds| seconds * 1000.0))?;
    (ms >= 0.0).then_some(ms.min(86_400_000.0) as u64)
}

/// The innermost cause says most.
fn deepest(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
