//! Fetches a card: builds its URL, follows redirects, and reports what the server sent instead of a card.

use super::card_error::CardError;
use super::connect::ClientContext;
use super::http::{self, Credentials, root_cause};
use super::origin::{self, Route};
use super::sanitize::one_line;
use super::settings::{RemoteSettings, RemoteTimeouts};
use a2a::SVC_PARAM_VERSION;
use lango_net::BodyError;
use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response, Url};
use serde_json::Value;

/// The maximum size of a card, in bytes.
const CARD_BYTES: usize = 256 * 1024;

const MAX_REDIRECTS: usize = 5;

const WELL_KNOWN: &str = "/.well-known/agent-card.json";

/// A card as the server sent it (a JSON object), and its final URL.
pub(crate) struct FetchedCard {
    pub card: Value,
    pub url: Url,
}

/// Returns the URL of the card: the configured URL if it names a document, or else the well-known path below it.
pub(crate) fn card_url(configured: &str) -> Result<Url, CardError> {
    let bad = |detail: &str| CardError::BadUrl {
        url: match configured.parse::<Url>() {
            Ok(url) => origin::display_url(&url),
            Err(_) => one_line(configured, 200),
        },
        detail: detail.to_owned(),
    };
    let mut url: Url = configured
        .trim()
        .parse()
        .map_err(|_| bad("it must start with https:// and a host"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(bad("it must start with https:// and a host"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad(
            "a user name or password in it would be visible in messages; use a token",
        ));
    }
    url.set_fragment(None);
    if url.query().is_none() && !url.path().ends_with(".json") {
        let path = format!("{}{WELL_KNOWN}", url.path().trim_end_matches('/'));
        url.set_path(&path);
    }
    Ok(url)
}

/// Fetches the card. The caller applies the timeout.
pub(crate) async fn fetch(
    settings: &RemoteSettings,
    credentials: &Credentials,
    context: &ClientContext,
    timeouts: &RemoteTimeouts,
) -> Result<FetchedCard, CardError> {
    let configured = card_url(&settings.card_url)?;
    let (mut url, mut route) = (configured.clone(), Route::Configured);
    for _ in 0..=MAX_REDIRECTS {
        let client = context.clients.for_route(&url, &route, timeouts);
        let client = client.map_err(|detail| CardError::NoClient { detail })?;
        let mut response = request(&url, credentials, &client).await?;
        let status = response.status();
        if let Some(next) = redirection(&url, &response)? {
            let admitted = origin::admit(&configured, &url, &next, &context.egress).await;
            route = admitted.map_err(|why| CardError::RedirectRefused {
                location: origin::display_url(&next),
                why,
            })?;
            url = next;
            continue;
        }
        if matches!(status.as_u16(), 401 | 403) {
            return Err(CardError::Unauthorised {
                url: origin::display_url(&url),
                status: status.as_u16(),
                next_step: credentials.next_step(&url),
            });
        }
        if !status.is_success() {
            return Err(CardError::Status {
                url: origin::display_url(&url),
                status: status.as_u16(),
            });
        }
        let mut card = read(&url, &mut response).await?;
        settings.masks.mask_json(&mut card);
        return Ok(FetchedCard { card, url });
    }
    Err(CardError::TooManyRedirects {
        max: MAX_REDIRECTS,
        location: origin::display_url(&url),
    })
}

async fn request(
    url: &Url,
    credentials: &Credentials,
    client: &Client,
) -> Result<Response, CardError> {
    let request = client
        .get(url.clone())
        .header(ACCEPT, "application/json")
        .header(SVC_PARAM_VERSION, a2a::VERSION);
    let headers = credentials.headers_for(url).await;
    let headers = headers.map_err(|error| CardError::BadToken {
        detail: error.to_string(),
    })?;
    request
        .headers(headers)
        .send()
        .await
        .map_err(|error| CardError::Unreachable {
            url: origin::display_url(url),
            detail: root_cause(&error),
        })
}

/// Returns the target of a redirect, or `None` if the response is not one.
fn redirection(from: &Url, response: &Response) -> Result<Option<Url>, CardError> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.headers().get(LOCATION) else {
        return Ok(None);
    };
    let location = String::from_utf8_lossy(location.as_bytes());
    let to = from.join(&location);
    to.map(Some).map_err(|_| CardError::RedirectRefused {
        location: one_line(&location, 200),
        why: "it is not a URL".to_owned(),
    })
}

async fn read(url: &Url, response: &mut Response) -> Result<Value, CardError> {
    let content_type = response.headers().get(CONTENT_TYPE);
    let is_html = content_type.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    let bytes = http::body(response, CARD_BYTES)
        .await
        .map_err(|error| match error {
            BodyError::TooLong { limit } => CardError::TooLarge { max_bytes: limit },
            error => CardError::Interrupted {
                detail: one_line(&error.to_string(), 200),
            },
        })?;
    let not_json = |seen: &str| CardError::NotJson {
        url: origin::display_url(url),
        seen: seen.to_owned(),
    };
    let start = bytes.trim_ascii_start();
    match serde_json::from_slice(&bytes) {
        Ok(card @ Value::Object(_)) => Ok(card),
        Ok(other) => Err(CardError::NotAnObject {
            seen: type_name(&other).to_owned(),
        }),
        Err(_) if start.is_empty() => Err(not_json("nothing")),
        Err(_) if is_html || start.starts_with(b"<") => Err(not_json("a web page")),
        Err(error) if error.is_eof() => Err(CardError::Truncated { bytes: bytes.len() }),
        Err(error) => {
            let position = format!("(line {}, column {})", error.line(), error.column());
            Err(not_json(&format!("something that is not JSON {position}")))
        }
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_well_known_path_is_added_unless_the_url_names_a_document() {
        for (configured, expected) in [
            (
                "https://a.example",
                "https://a.example/.well-known/agent-card.json",
            ),
            (
                "https://a.example/",
                "https://a.example/.well-known/agent-card.json",
            ),
            (
                "https://a.example/x/",
                "https://a.example/x/.well-known/agent-card.json",
            ),
            (
                " https://a.example/card.json ",
                "https://a.example/card.json",
            ),
            (
                "https://a.example/cards?id=7",
                "https://a.example/cards?id=7",
            ),
        ] {
            assert_eq!(card_url(configured).unwrap().as_str(), expected);
        }
    }

    #[test]
    fn an_invalid_url_is_reported_without_its_password() {
        for configured in ["", "a.example", "ftp://a.example/x", "/card.json"] {
            let error = card_url(configured).unwrap_err().to_string();
            assert!(error.contains("must start with https://"), "{error}");
        }
        let error = card_url("https://me:hidden@a.example")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("use a token") && !error.contains("hidden"),
            "{error}"
        );
    }
}
