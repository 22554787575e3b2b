//! Connections to providers: one lazy client, time-outs for connecting, for the first word and between words, and
//! how long a provider wants us to wait. There is no limit on the whole of a stream: healthy work may take long.

use crate::fault;
use crate::wire::{WireRequest, beginning};
use lango_core::ModelFault;
use lango_secrets::{Credential, Masks, SecretError, is_plain_encoding};
use reqwest::header::{
    CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER,
};
use reqwest::{Client, Response, Url};
use serde_json::Value;
use std::sync::OnceLock;
use std::time::Duration;
use zeroize::Zeroizing;

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

/// The headers of a request.
pub(crate) type Headers = Vec<(&'static str, Zeroizing<String>)>;

/// Builds the headers of a request with the key.
pub(crate) type KeyHeaders = Box<dyn Fn(Option<&str>) -> Headers + Send + Sync>;

/// A provider's address.
pub(crate) struct Endpoint {
    base_url: String,
    key: Option<Credential>,
    headers: KeyHeaders,
    pub masks: Masks,
    pub patience: Patience,
    client: OnceLock<Client>,
}

/// Who is asked, and with which key.
pub(crate) struct EndpointParts {
    pub base_url: String,
    pub key: Option<Credential>,
    pub headers: KeyHeaders,
    pub masks: Masks,
    pub patience: Patience,
}

impl Endpoint {
    /// The longest body that is read of a reply that is not streamed.
    const BODY_BYTES: usize = 16 * 1024 * 1024;

    pub fn new(parts: EndpointParts) -> Self {
        let base_url = parts.base_url.trim_end_matches('/').to_owned();
        let origin = Url::parse(&base_url).ok();
        let key = parts.key.map(|key| match &origin {
            Some(origin) => key.bound_to(origin),
            None => key,
        });
        Self {
            base_url,
            key,
            headers: parts.headers,
            masks: parts.masks,
            patience: parts.patience,
            client: OnceLock::new(),
        }
    }

    /// The host of its address, without the port.
    pub fn host(&self) -> &str {
        let rest = self.base_url.split_once("://").map_or("", |(_, rest)| rest);
        let authority = rest.split('/').next().unwrap_or_default();
        let host = authority
            .rsplit_once('@')
            .map_or(authority, |(_, host)| host);
        host.rsplit_once(':').map_or(host, |(host, _)| host)
    }

    /// Sends a request and waits for the head of its answer.
    pub async fn post(&self, request: &WireRequest) -> Result<Response, ModelFault> {
        let url = self.url(&request.path)?;
        let headers = self.header_map(&url).await?;
        let sending = self
            .client()?
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .body(request.body.text())
            .headers(headers)
            .send();
        self.answered(sending).await
    }

    /// Reads a JSON document.
    pub async fn get(&self, path: &str) -> Result<Value, ModelFault> {
        let url = self.url(path)?;
        let headers = self.header_map(&url).await?;
        let sending = self.client()?.get(url).headers(headers).send();
        let body = self.body(self.answered(sending).await?).await?;
        crate::wire::parse(&body)
    }

    /// The next bytes of an answer; none at its end.
    pub async fn chunk(&self, response: &mut Response) -> Result<Option<Vec<u8>>, ModelFault> {
        self.chunk_within(response, self.patience.idle).await
    }

    /// The next bytes of an answer, if they come within a time; none at its end.
    pub async fn chunk_within(
        &self,
        response: &mut Response,
        wait: Duration,
    ) -> Result<Option<Vec<u8>>, ModelFault> {
        match tokio::time::timeout(wait, response.chunk()).await {
            Err(_elapsed) => Err(silent(wait)),
            Ok(Err(_)) => Err(ModelFault::CutOff),
            Ok(Ok(chunk)) => Ok(chunk.map(|bytes| bytes.to_vec())),
        }
    }

    /// The rest of an answer as text, masked.
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
        Ok(self.masked(String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Masks a text that is JSON in most cases.
    pub fn masked(&self, text: String) -> String {
        self.masks.mask_json_text(&text).unwrap_or(text)
    }

    /// The address of a path. A query of the base URL, such as Azure's `api-version`, goes with every request.
    fn url(&self, path: &str) -> Result<Url, ModelFault> {
        let text = match self.base_url.split_once('?') {
            None => format!("{}{path}", self.base_url),
            Some((base, query)) => {
                let mark = if path.contains('?') { '&' } else { '?' };
                format!("{}{path}{mark}{query}", base.trim_end_matches('/'))
            }
        };
        Url::parse(&text).map_err(|error| ModelFault::Unreachable {
            detail: format!("its address is not valid: {error}"),
        })
    }

    async fn answered(
        &self,
        sending: impl Future<Output = reqwest::Result<Response>>,
    ) -> Result<Response, ModelFault> {
        let response = match tokio::time::timeout(self.patience.idle, sending).await {
            Err(_elapsed) => return Err(silent(self.patience.idle)),
            Ok(Err(error)) => {
                return Err(ModelFault::Unreachable {
                    detail: deepest(&error),
                });
            }
            Ok(Ok(response)) => response,
        };
        let encoding = response.headers().get(CONTENT_ENCODING);
        if !is_plain_encoding(encoding.map(HeaderValue::as_bytes)) {
            return Err(ModelFault::Malformed {
                detail: "its reply is compressed, which was not asked for".to_owned(),
            });
        }
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let retry_after_ms = retry_after(response.headers());
        let location = response.headers().get(LOCATION).cloned();
        let body = self.body(response).await.unwrap_or_default();
        // A key is for one address; it does not follow others' directions.
        if let Some(location) = location.filter(|_| status.is_redirection()) {
            let location = self.masked(String::from_utf8_lossy(location.as_bytes()).into_owned());
            let location = beginning(&location);
            return Err(ModelFault::UnknownModel {
                detail: format!("{} it has moved to `{location}`", status.as_u16()),
            });
        }
        Err(fault::of_status(status.as_u16(), retry_after_ms, &body))
    }

    fn client(&self) -> Result<&Client, ModelFault> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        // Another part of the process may have chosen a provider already; any will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .connect_timeout(self.patience.connect)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("lango/", env!("CARGO_PKG_VERSION")));
        // What is said to this machine stays on it.
        if ["://127.", "://localhost", "://[::1]"]
            .iter()
            .any(|here| self.base_url.contains(here))
        {
            builder = builder.no_proxy();
        }
        let built = builder.build().map_err(|error| ModelFault::Unreachable {
            detail: error.to_string(),
        })?;
        Ok(self.client.get_or_init(|| built))
    }

    /// The headers of a request, with the key as it is now.
    async fn header_map(&self, url: &Url) -> Result<HeaderMap, ModelFault> {
        let no_key = |error: SecretError| ModelFault::NoKey {
            detail: error.to_string(),
        };
        let key = match &self.key {
            Some(key) => Some(key.text_for(url).await.map_err(no_key)?),
            None => None,
        };
        let mut map = HeaderMap::new();
        for (name, value) in (self.headers)(key.as_ref().map(|key| key.as_str())) {
            let mut value = HeaderValue::from_str(&value).map_err(|_| ModelFault::BadKey {
                detail: "the key holds characters that no key has".to_owned(),
            })?;
            value.set_sensitive(true);
            map.insert(HeaderName::from_static(name), value);
        }
        Ok(map)
    }
}

fn silent(patience: Duration) -> ModelFault {
    ModelFault::Silent {
        after_ms: u64::try_from(patience.as_millis()).unwrap_or(u64::MAX),
    }
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
