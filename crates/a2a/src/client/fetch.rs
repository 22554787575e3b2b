//! Getting a card: where it is, which redirects are followed, and what may come instead of one.

use super::connect::Means;
use super::fault::CardFault;
use super::http::{self, BodyFault, Token, deepest};
use super::origin::{self, Route};
use super::settings::{Patience, RemoteSettings};
use super::words::one_line;
use a2a::SVC_PARAM_VERSION;
use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response, Url};
use serde_json::Value;

/// The longest card, in bytes.
const CARD_BYTES: usize = 256 * 1024;

/// The most redirects that are followed.
const REDIRECTS: usize = 5;

const WELL_KNOWN: &str = "/.well-known/agent-card.json";

/// A card as it came, which is an object, and from where.
pub(crate) struct Fetched {
    pub card: Value,
    pub url: Url,
}

/// The URL of the card: the configured one if it names a document, else the well-known place below it.
pub(crate) fn card_url(configured: &str) -> Result<Url, CardFault> {
    let bad = |detail: &str| CardFault::BadUrl {
        url: match configured.parse::<Url>() {
            Ok(url) => origin::shown(&url),
            Err(_) => one_line(configured, 200),
        },
        detail: detail.to_owned(),
    };
    let mut url: Url = configured
        .trim()
        .parse()
        .map_err(|_| bad("it should begin with https:// and a host"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(bad("it should begin with https:// and a host"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad("a name or password in it would be shown; use a token"));
    }
    url.set_fragment(None);
    if url.query().is_none() && !url.path().ends_with(".json") {
        let path = format!("{}{WELL_KNOWN}", url.path().trim_end_matches('/'));
        url.set_path(&path);
    }
    Ok(url)
}

/// Fetches the card, with no time-out of its own.
pub(crate) async fn fetch(
    settings: &RemoteSettings,
    token: &Token,
    means: &Means,
    patience: &Patience,
) -> Result<Fetched, CardFault> {
    let configured = card_url(&settings.card_url)?;
    let (mut url, mut route) = (configured.clone(), Route::Configured);
    for _ in 0..=REDIRECTS {
        let client = means.clients.for_route(&url, &route, patience);
        let client = client.map_err(|detail| CardFault::NoClient { detail })?;
        let mut response = ask(&url, token, &client).await?;
        let status = response.status();
        if let Some(next) = redirection(&url, &response)? {
            let admitted = origin::admit(&configured, &url, &next, &means.egress).await;
            route = admitted.map_err(|why| CardFault::RedirectRefused {
                location: origin::shown(&next),
                why,
            })?;
            url = next;
            continue;
        }
        if matches!(status.as_u16(), 401 | 403) {
            return Err(CardFault::Unauthorised {
                url: origin::shown(&url),
                status: status.as_u16(),
                next_step: token.next_step(&url),
            });
        }
        if !status.is_success() {
            return Err(CardFault::Status {
                url: origin::shown(&url),
                status: status.as_u16(),
            });
        }
        let mut card = read(&url, &mut response).await?;
        settings.masks.mask_json(&mut card);
        return Ok(Fetched { card, url });
    }
    Err(CardFault::TooManyRedirects {
        most: REDIRECTS,
        location: origin::shown(&url),
    })
}

async fn ask(url: &Url, token: &Token, client: &Client) -> Result<Response, CardFault> {
    let request = client
        .get(url.clone())
        .header(ACCEPT, "application/json")
        .header(SVC_PARAM_VERSION, a2a::VERSION);
    let headers = token.headers_for(url).await;
    let headers = headers.map_err(|error| CardFault::BadToken {
        detail: error.to_string(),
    })?;
    request
        .headers(headers)
        .send()
        .await
        .map_err(|error| CardFault::Unreachable {
            url: origin::shown(url),
            detail: deepest(&error),
        })
}

/// Where a redirect leads, if this is one.
fn redirection(from: &Url, response: &Response) -> Result<Option<Url>, CardFault> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.headers().get(LOCATION) else {
        return Ok(None);
    };
    let location = String::from_utf8_lossy(location.as_bytes());
    let to = from.join(&location);
    to.map(Some).map_err(|_| CardFault::RedirectRefused {
        location: one_line(&location, 200),
        why: "it is not a URL".to_owned(),
    })
}

async fn read(url: &Url, response: &mut Response) -> Result<Value, CardFault> {
    let content_type = response.headers().get(CONTENT_TYPE);
    let is_html = content_type.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    let bytes = http::body(response, CARD_BYTES)
        .await
        .map_err(|fault| match fault {
            BodyFault::TooLong => CardFault::TooLarge {
                most_bytes: CARD_BYTES,
            },
            BodyFault::CutOff(detail) => CardFault::CutOff { detail },
        })?;
    let not_json = |seen: &str| CardFault::NotJson {
        url: origin::shown(url),
        seen: seen.to_owned(),
    };
    let start = bytes.trim_ascii_start();
    match serde_json::from_slice(&bytes) {
        Ok(card @ Value::Object(_)) => Ok(card),
        Ok(other) => Err(CardFault::NotAnObject {
            seen: kind_of(&other).to_owned(),
        }),
        Err(_) if start.is_empty() => Err(not_json("nothing")),
        Err(_) if is_html || start.starts_with(b"<") => Err(not_json("a web page")),
        Err(error) if error.is_eof() => Err(CardFault::Truncated { bytes: bytes.len() }),
        Err(error) => {
            let place = format!("(line {}, column {})", error.line(), error.column());
            Err(not_json(&format!("something that is not JSON {place}")))
        }
    }
}

fn kind_of(value: &Value) -> &'static str {
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
    fn a_base_gets_the_well_known_place_and_a_document_stays() {
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
    fn what_is_no_url_is_said_and_no_password_is_shown() {
        for configured in ["", "a.example", "ftp://a.example/x", "/card.json"] {
            let fault = card_url(configured).unwrap_err().to_string();
            assert!(fault.contains("should begin with https://"), "{fault}");
        }
        let fault = card_url("https://me:hidden@a.example")
            .unwrap_err()
            .to_string();
        assert!(
            fault.contains("use a token") && !fault.contains("hidden"),
            "{fault}"
        );
    }
}
