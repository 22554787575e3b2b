//! Sends one request to a search service. It follows no redirects, limits time and size, charges the turn's budget, and
//! keeps the key out of errors.

use super::wire::{Body, WireRequest};
use super::{ProviderKind, SearchProvider};
use lango_net::{
    BodyLimits, Budget, ClientOptions, PlainHttp, read_body, retry_after, root_cause,
    service_client,
};
use lango_secrets::{Credential, Masks};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, Response, Url};
use serde_json::Value;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};
use zeroize::Zeroizing;

/// Timeout for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout of a request, from the first byte sent to the last byte received.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(12);

/// Maximum size of a response in bytes.
const MAX_RESPONSE_BYTES: usize = 2 << 20;

/// The base URL of a service, and the client for it.
pub(super) struct Endpoint {
    base_url: String,
    key: Option<Credential>,
    masks: Masks,
    client: OnceLock<Client>,
}

impl Endpoint {
    pub(super) fn new(provider: &SearchProvider, masks: Masks) -> Self {
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
    pub(super) async fn send(
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
        let body = tokio::time::timeout(REQUEST_TIMEOUT, exchange)
            .await
            .unwrap_or_else(|_| {
                Err(format!(
                    "no response within {} s",
                    REQUEST_TIMEOUT.as_secs()
                ))
            })?;
        let mut reply =
            serde_json::from_slice(&body).map_err(|_| "the response is not JSON".to_owned())?;
        // Values are masked before snippets are cut, because half of a value would not be recognized.
        self.masks.mask_json(&mut reply);
        Ok(reply)
    }

    async fn exchange(
        &self,
        provider: &SearchProvider,
        request: &WireRequest,
    ) -> Result<Response, String> {
        let url = format!("{}{}", self.base_url, request.path);
        let mut url =
            Url::parse(&url).map_err(|_| "its `url` is not a valid address".to_owned())?;
        let key = match &self.key {
            Some(key) => {
                let plain_http = PlainHttp::LocalOnly.check(&url);
                plain_http.map_err(|refusal| refusal.to_string())?;
                let text = key.text_for(&url).await;
                Some(text.map_err(|error| error.to_string())?)
            }
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
                .map_err(|_| "its key contains invalid characters".to_owned())?;
            value.set_sensitive(true);
            builder = builder.header(name, value);
        }
        builder.send().await.map_err(|error| {
            // The error's text contains the URL with the query, so only its cause is shown.
            let kind = if error.is_connect() {
                "no connection"
            } else {
                "no response"
            };
            format!("{kind}: {}", root_cause(&error))
        })
    }

    fn client(&self, url: &Url) -> Result<&Client, String> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let options = ClientOptions {
            connect_timeout: CONNECT_TIMEOUT,
            ..ClientOptions::default()
        };
        let built = service_client(url, options)?;
        Ok(self.client.get_or_init(|| built))
    }
}

fn check_status(provider: &SearchProvider, response: &Response) -> Result<(), String> {
    let status = response.status();
    if status.is_success() {
        return Ok(());
    }
    let code = status.as_u16();
    let key = provider.key.as_ref().map(Credential::setting);
    let problem = match (code, provider.kind, key) {
        (300..=399, ..) => {
            "it redirects, which lango does not follow; set its `url` to the new address"
        }
        (403, ProviderKind::SearXng, _) => {
            "it does not return JSON; add `json` to `search.formats` in its settings"
        }
        (401 | 403, _, Some(variable)) => {
            return Err(format!(
                "{code}: it does not accept the key in `{variable}`"
            ));
        }
        (402 | 432 | 433, ..) => "the quota of your plan is used up",
        (429, ..) => {
            let wait = retry_after(response.headers(), SystemTime::now());
            return Err(match wait {
                Some(wait) => format!(
                    "429: too many requests; it asks to wait {} s",
                    wait.as_secs()
                ),
                None => "429: too many requests".to_owned(),
            });
        }
        (500..=599, ..) => "the service has an internal error",
        _ => "the service rejected the request",
    };
    Err(format!("{code}: {problem}"))
}

/// Charges a request and its bytes to the budget of a turn.
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
    let limits = BodyLimits {
        bytes: MAX_RESPONSE_BYTES,
        idle: None,
    };
    let body = read_body(&mut response, limits, |count| counter.count_bytes(count)).await;
    body.map_err(|error| error.to_string())
}
