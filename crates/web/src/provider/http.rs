//! One request to a search service: no redirects, limits on time and size, counted in the turn's budget, and no error
//! that contains the key.

use super::wire::{Body, WireRequest};
use super::{ProviderKind, SearchProvider};
use lango_net::Budget;
use lango_secrets::{Credential, Masks, is_plain_encoding};
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, RETRY_AFTER,
};
use reqwest::{Client, Response, Url};
use serde_json::Value;
use std::sync::OnceLock;
use std::time::Duration;
use zeroize::Zeroizing;

/// Timeout of a connection.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// Timeout of a request, from the first byte sent to the last byte received.
const REQUEST_TIME: Duration = Duration::from_secs(12);

/// Maximum size of a response in bytes.
const ANSWER_BYTES: usize = 2 << 20;

/// The base URL of a service, and the client for it.
pub(super) struct Endpoint {
    base_url: String,
    key: Option<Credential>,
    masks: Masks,
    client: OnceLock<Client>,
}

impl Endpoint {
    pub fn new(provider: &SearchProvider, masks: Masks) -> Self {
        let origin = Url::parse(&provider.url).ok();
        let key = provider.key.clone().map(|key| match &origin {
            Some(origin) => key.bound_to(origin),
            None => key,
        });
        Self {
            base_url: provider.url.trim_end_matches('/').to_owned(),
            key,
            masks,
            client: OnceLock::new(),
        }
    }

    /// Sends a request and parses the response as JSON.
    pub async fn send(
        &self,
        provider: &SearchProvider,
        request: &WireRequest,
        budget: &Budget,
    ) -> Result<Value, String> {
        let counter = Counter {
            budget,
            url: &self.base_url,
        };
        counter.count_request(request)?;
        let exchange = async {
            let response = self.exchange(provider, request).await?;
            check_status(provider, &response)?;
            read(response, &counter).await
        };
        let body = tokio::time::timeout(REQUEST_TIME, exchange)
            .await
            .unwrap_or_else(|_| Err(format!("no answer within {} s", REQUEST_TIME.as_secs())))?;
        let mut reply =
            serde_json::from_slice(&body).map_err(|_| "the answer is not JSON".to_owned())?;
        // Here, because snippets are cut later, and half of a value would not be found.
        self.masks.mask_json(&mut reply);
        Ok(reply)
    }

    async fn exchange(
        &self,
        provider: &SearchProvider,
        request: &WireRequest,
    ) -> Result<Response, String> {
        let url = format!("{}{}", self.base_url, request.path);
        let mut url = Url::parse(&url).map_err(|_| "its `url` is not an address".to_owned())?;
        let key = match &self.key {
            Some(key) => Some(
                key.text_for(&url)
                    .await
                    .map_err(|error| error.to_string())?,
            ),
            None => None,
        };
        let client = self.client(&url)?;
        let mut builder = match &request.body {
            Body::Query(pairs) => {
                url.query_pairs_mut().extend_pairs(pairs);
                client.get(url)
            }
            Body::Json(body) => client
                .post(url)
                .header(CONTENT_TYPE, "application/json")
                .body(body.to_string()),
        };
        builder = builder.header(ACCEPT, "application/json");
        if let Some(key) = key {
            let (name, value) = match provider.kind {
                ProviderKind::Brave => ("x-subscription-token", key),
                _ => (
                    AUTHORIZATION.as_str(),
                    Zeroizing::new(format!("Bearer {}", *key)),
                ),
            };
            let mut value = HeaderValue::from_str(&value)
                .map_err(|_| "its key has characters that no key has".to_owned())?;
            value.set_sensitive(true);
            builder = builder.header(name, value);
        }
        builder.send().await.map_err(|error| {
            // The text of the error has the address, which has the query; its cause says enough.
            let kind = if error.is_connect() {
                "no connection"
            } else {
                "no answer"
            };
            format!("{kind}: {}", deepest(&error))
        })
    }

    fn client(&self, url: &Url) -> Result<&Client, String> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        // Another part of the process may have chosen a provider already; any will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .connect_timeout(CONNECT_TIME)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("lango/", env!("CARGO_PKG_VERSION")));
        // What is sent to this machine stays on it.
        let host = url.host_str().unwrap_or_default();
        if host == "localhost" || host.starts_with("127.") || host == "[::1]" {
            builder = builder.no_proxy();
        }
        let built = builder.build().map_err(|error| deepest(&error))?;
        Ok(self.client.get_or_init(|| built))
    }
}

fn check_status(provider: &SearchProvider, response: &Response) -> Result<(), String> {
    let encoding = response.headers().get(CONTENT_ENCODING);
    if !is_plain_encoding(encoding.map(HeaderValue::as_bytes)) {
        return Err("the answer is compressed, which was not asked for".to_owned());
    }
    let status = response.status();
    if status.is_success() {
        return Ok(());
    }
    let code = status.as_u16();
    let key = provider.key.as_ref().map(Credential::setting);
    let problem = match (code, provider.kind, key) {
        (300..=399, ..) => "it redirects, which is not followed; set its `url` to where it is",
        (403, ProviderKind::SearXng, _) => {
            "it does not give JSON; add `json` to `search.formats` in its settings"
        }
        (401 | 403, _, Some(variable)) => {
            return Err(format!(
                "{code}: it does not accept the key in `{variable}`"
            ));
        }
        (402 | 432 | 433, ..) => "its plan is used up",
        (429, ..) => {
            let wait = response.headers().get(RETRY_AFTER);
            let wait = wait.and_then(|wait| wait.to_str().ok()?.parse::<u32>().ok());
            return Err(match wait {
                Some(seconds) => format!("429: too many requests; it asks to wait {seconds} s"),
                None => "429: too many requests".to_owned(),
            });
        }
        (500..=599, ..) => "it has a fault",
        _ => "it does not accept the request",
    };
    Err(format!("{code}: {problem}"))
}

/// Counts what a request moves in the budget of a turn.
struct Counter<'a> {
    budget: &'a Budget,
    url: &'a str,
}

impl Counter<'_> {
    fn count_request(&self, request: &WireRequest) -> Result<(), String> {
        let taken = self.budget.take_request(self.url);
        taken.map_err(|refusal| refusal.to_string())?;
        let sent = match &request.body {
            Body::Query(pairs) => pairs
                .iter()
                .map(|(name, value)| name.len() + value.len())
                .sum(),
            Body::Json(body) => body.to_string().len(),
        };
        self.count_bytes(sent)
    }

    fn count_bytes(&self, count: usize) -> Result<(), String> {
        let taken = self.budget.take_bytes(count, self.url);
        taken.map_err(|refusal| refusal.to_string())
    }
}

async fn read(mut response: Response, counter: &Counter<'_>) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    loop {
        let chunk = response.chunk().await.map_err(|error| deepest(&error))?;
        let Some(chunk) = chunk else { return Ok(body) };
        counter.count_bytes(chunk.len())?;
        if body.len() + chunk.len() > ANSWER_BYTES {
            return Err(format!("the answer has more than {ANSWER_BYTES} bytes"));
        }
        body.extend_from_slice(&chunk);
    }
}

/// Returns the innermost cause of an error, which is the most specific one and contains no URL.
fn deepest(error: &reqwest::Error) -> String {
    let mut cause: Option<&dyn std::error::Error> = std::error::Error::source(error);
    while let Some(deeper) = cause.and_then(std::error::Error::source) {
        cause = Some(deeper);
    }
    cause.map_or_else(|| "it ended too early".to_owned(), ToString::to_string)
}
