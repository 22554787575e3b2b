//! HTTP to providers: one lazily built client, and timeouts for connecting and for silence. A stream has no total time
//! limit, because a healthy reply may take long.

use crate::fault;
use crate::wire::{WireRequest, excerpt};
use lango_core::ModelFault;
use lango_net::{
    BodyError, BodyLimits, ClientOptions, PlainHttp, Url, is_plain_body, is_this_machine,
    next_chunk, read_body, redacted_url, retry_after, root_cause, service_client,
};
use lango_secrets::{Credential, Masks, SecretError};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Client, Response};
use serde_json::Value;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};
use zeroize::Zeroizing;

/// How long lango waits for a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProviderTimeouts {
    /// To establish a connection.
    pub connect: Duration,
    /// For the response to start, and between two chunks of it.
    pub idle: Duration,
}

impl Default for ProviderTimeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(60),
        }
    }
}

pub(crate) type Headers = Vec<(&'static str, Zeroizing<String>)>;

/// Builds the headers that carry the key.
pub(crate) type KeyHeaders = Box<dyn Fn(Option<&str>) -> Headers + Send + Sync>;

/// The HTTP client for one provider, with its address and key.
pub(crate) struct Endpoint {
    base_url: String,
    key: Option<Credential>,
    headers: KeyHeaders,
    plain_http: PlainHttp,
    pub masks: Masks,
    pub timeouts: ProviderTimeouts,
    client: OnceLock<Client>,
}

/// The parameters of [`Endpoint::new`].
pub(crate) struct EndpointParts {
    pub base_url: String,
    pub key: Option<Credential>,
    pub headers: KeyHeaders,
    pub plain_http: PlainHttp,
    pub masks: Masks,
    pub timeouts: ProviderTimeouts,
}

impl Endpoint {
    /// Maximum size of a reply that is not streamed.
    const BODY_BYTES: usize = 16 * 1024 * 1024;

    pub(crate) fn new(parts: EndpointParts) -> Self {
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
            plain_http: parts.plain_http,
            masks: parts.masks,
            timeouts: parts.timeouts,
            client: OnceLock::new(),
        }
    }

    /// Returns the host of the address, without the port.
    pub(crate) fn host(&self) -> &str {
        let rest = self.base_url.split_once("://").map_or("", |(_, rest)| rest);
        let authority = rest.split('/').next().unwrap_or_default();
        let host = authority
            .rsplit_once('@')
            .map_or(authority, |(_, host)| host);
        host.rsplit_once(':').map_or(host, |(host, _)| host)
    }

    /// Sends a request and waits for the response's headers. A status other than success becomes a fault.
    pub(crate) async fn post(&self, request: &WireRequest) -> Result<Response, ModelFault> {
        let url = self.url(&request.path)?;
        let headers = self.header_map(&url).await?;
        let sending = self
            .client(&url)?
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .body(request.body.text())
            .headers(headers)
            .send();
        self.success(sending).await
    }

    /// Fetches a JSON document.
    pub(crate) async fn get(&self, path: &str) -> Result<Value, ModelFault> {
        let url = self.url(path)?;
        let headers = self.header_map(&url).await?;
        let sending = self.client(&url)?.get(url).headers(headers).send();
        let body = self.body(self.success(sending).await?).await?;
        crate::wire::parse(&body)
    }

    /// Returns the next bytes of a response; `None` at its end.
    pub(crate) async fn chunk(
        &self,
        response: &mut Response,
    ) -> Result<Option<Vec<u8>>, ModelFault> {
        self.chunk_within(response, self.timeouts.idle).await
    }

    /// Returns the next bytes of a response; `None` at its end. Fails with [`ModelFault::TimedOut`] after `wait`.
    pub(crate) async fn chunk_within(
        &self,
        response: &mut Response,
        wait: Duration,
    ) -> Result<Option<Vec<u8>>, ModelFault> {
        next_chunk(response, Some(wait)).await.map_err(body_fault)
    }

    /// Reads the rest of a response as text, with secrets masked.
    pub(crate) async fn body(&self, mut response: Response) -> Result<String, ModelFault> {
        let limits = BodyLimits {
            bytes: Self::BODY_BYTES,
            idle: Some(self.timeouts.idle),
        };
        let bytes = read_body(&mut response, limits, |_| Ok(())).await;
        let bytes = bytes.map_err(body_fault)?;
        Ok(self.masked(String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Masks secrets in a text, which is usually JSON.
    pub(crate) fn masked(&self, text: String) -> String {
        self.masks.mask_json_text(&text).unwrap_or(text)
    }

    /// Returns the URL for a path. A query of the base URL, such as Azure's `api-version`, is part of every request.
    fn url(&self, path: &str) -> Result<Url, ModelFault> {
        let text = match self.base_url.split_once('?') {
            None => format!("{}{path}", self.base_url),
            Some((base, query)) => {
                let mark = if path.contains('?') { '&' } else { '?' };
                format!("{}{path}{mark}{query}", base.trim_end_matches('/'))
            }
        };
        Url::parse(&text).map_err(|error| ModelFault::Unreachable {
            detail: format!("its address is invalid: {error}"),
        })
    }

    /// Waits for a response and turns every status but success into a fault.
    async fn success(
        &self,
        sending: impl Future<Output = reqwest::Result<Response>>,
    ) -> Result<Response, ModelFault> {
        let response = match tokio::time::timeout(self.timeouts.idle, sending).await {
            Err(_elapsed) => return Err(timed_out(self.timeouts.idle)),
            Ok(Err(error)) => {
                return Err(self.send_fault(&error));
            }
            Ok(Ok(response)) => response,
        };
        if !is_plain_body(&response) {
            return Err(body_fault(BodyError::Compressed));
        }
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let wait = retry_after(response.headers(), SystemTime::now());
        let retry_after_ms = wait.map(milliseconds);
        let location = response.headers().get(LOCATION).cloned();
        let body = self.body(response).await.unwrap_or_default();
        // lango never follows a redirect: the key is for this address only.
        if let Some(location) = location.filter(|_| status.is_redirection()) {
            let location = self.masked(String::from_utf8_lossy(location.as_bytes()).into_owned());
            let location = excerpt(&location);
            return Err(ModelFault::UnknownModel {
                detail: format!("{} it has moved to `{location}`", status.as_u16()),
            });
        }
        Err(fault::of_status(status.as_u16(), retry_after_ms, &body))
    }

    /// Returns the fault for a request that got no response.
    fn send_fault(&self, error: &reqwest::Error) -> ModelFault {
        if !error.is_connect() && !error.is_builder() {
            return ModelFault::Incomplete;
        }
        let cause = root_cause(error);
        let address = self.address();
        if error.is_connect() && is_not_tls(&cause) {
            let plain = address.replacen("https://", "http://", 1);
            return ModelFault::Unreachable {
                detail: format!("{address}: the server does not speak TLS; try {plain}"),
            };
        }
        let is_local = Url::parse(&self.base_url).is_ok_and(|url| is_this_machine(&url));
        let question = if is_local {
            "; is the server running?"
        } else {
            ""
        };
        ModelFault::Unreachable {
            detail: format!("{address}: {cause}{question}"),
        }
    }

    /// Returns the address to show, without the parts that may be secret.
    pub(crate) fn address(&self) -> String {
        match Url::parse(&self.base_url) {
            Ok(url) => redacted_url(&url).to_string(),
            Err(_) => "its address".to_owned(),
        }
    }

    fn client(&self, url: &Url) -> Result<&Client, ModelFault> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let options = ClientOptions {
            connect_timeout: self.timeouts.connect,
            ..ClientOptions::default()
        };
        let client = service_client(url, options);
        let client = client.map_err(|detail| ModelFault::Unreachable { detail })?;
        Ok(self.client.get_or_init(|| client))
    }

    /// Builds the headers of a request with the current key.
    async fn header_map(&self, url: &Url) -> Result<HeaderMap, ModelFault> {
        let no_key = |error: SecretError| ModelFault::NoKey {
            detail: error.to_string(),
        };
        let key = match &self.key {
            Some(key) => {
                self.plain_http
                    .check(url)
                    .map_err(|refusal| ModelFault::NoKey {
                        detail: refusal.to_string(),
                    })?;
                Some(key.text_for(url).await.map_err(no_key)?)
            }
            None => None,
        };
        let mut map = HeaderMap::new();
        for (name, value) in (self.headers)(key.as_ref().map(|key| key.as_str())) {
            let mut value = HeaderValue::from_str(&value).map_err(|_| ModelFault::BadKey {
                detail: "the key contains characters that an HTTP header cannot hold".to_owned(),
            })?;
            value.set_sensitive(true);
            map.insert(HeaderName::from_static(name), value);
        }
        Ok(map)
    }
}

/// Returns whether a handshake failed because the server answered with something other than TLS.
fn is_not_tls(cause: &str) -> bool {
    cause.contains("InvalidContentType") || cause.contains("wrong version number")
}

fn timed_out(timeout: Duration) -> ModelFault {
    ModelFault::TimedOut {
        after_ms: milliseconds(timeout),
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn body_fault(error: BodyError) -> ModelFault {
    match error {
        BodyError::TimedOut { after } => timed_out(after),
        BodyError::Interrupted { .. } => ModelFault::Incomplete,
        BodyError::Compressed | BodyError::TooLong { .. } => ModelFault::Malformed {
            detail: error.to_string(),
        },
    }
}
