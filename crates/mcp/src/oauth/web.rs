//! HTTP requests to authorization servers: only over confidential connections, with limits on size and time.

use super::LoginError;
use crate::confidential_url::is_confidential_url;
use crate::names::one_line;
use lango_net::{BodyLimits, ClientOptions, read_body, root_cause, service_client};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, RequestBuilder, Url};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::Duration;
use url::form_urlencoded;

/// Maximum size of a response.
const MAX_ANSWER_BYTES: usize = 1 << 20;
/// How long a request may take.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Parses an address. Fails if it is neither https nor on this machine, or if it contains credentials.
pub(super) fn address(text: &str) -> Result<Url, LoginError> {
    let url = Url::parse(text).ok().filter(|url| {
        is_confidential_url(text) && url.username().is_empty() && url.password().is_none()
    });
    url.ok_or_else(|| {
        let text = one_line(text, 200);
        LoginError::unusable(format!(
            "a login cannot use the address `{text}`; it must begin with https://"
        ))
    })
}

/// Fetches a JSON document; `None` if it does not exist or is invalid.
pub(super) async fn get<T: DeserializeOwned>(url: &Url) -> Result<Option<T>, LoginError> {
    let request = client(url)?
        .get(url.clone())
        .header(ACCEPT, "application/json");
    match send(request, url).await? {
        (status, body) if (200..300).contains(&status) => Ok(serde_json::from_value(body).ok()),
        _ => Ok(None),
    }
}

fn client(url: &Url) -> Result<Client, LoginError> {
    service_client(url, ClientOptions::default()).map_err(LoginError::unusable)
}

/// Posts a JSON document. Returns the status and the response.
pub(super) async fn post_json(url: &Url, body: &Value) -> Result<(u16, Value), LoginError> {
    let request = client(url)?
        .post(url.clone())
        .header(ACCEPT, "application/json")
        .header(CONTENT_TYPE, "application/json")
        .body(body.to_string());
    send(request, url).await
}

/// Posts a form, with HTTP basic authentication if `basic` is set. Returns the status and the response.
pub(super) async fn post_form(
    url: &Url,
    fields: &[(&str, &str)],
    basic: Option<(&str, &str)>,
) -> Result<(u16, Value), LoginError> {
    let mut request = client(url)?
        .post(url.clone())
        .header(ACCEPT, "application/json")
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(encoded(fields));
    if let Some((name, secret)) = basic {
        request = request.basic_auth(part(name), Some(part(secret)));
    }
    send(request, url).await
}

async fn send(request: RequestBuilder, url: &Url) -> Result<(u16, Value), LoginError> {
    let host = url.host_str().unwrap_or_default().to_owned();
    let failed =
        |why: String| LoginError::unusable(format!("the request to `{host}` failed: {why}"));
    let asking = async {
        let mut response = request.send().await.map_err(|error| root_cause(&error))?;
        let status = response.status().as_u16();
        let limits = BodyLimits {
            bytes: MAX_ANSWER_BYTES,
            idle: None,
        };
        let body = read_body(&mut response, limits, |_| Ok(())).await;
        let body = body.map_err(|error| error.to_string())?;
        Ok((status, serde_json::from_slice(&body).unwrap_or(Value::Null)))
    };
    match tokio::time::timeout(TIMEOUT, asking).await {
        Ok(answer) => answer.map_err(failed),
        Err(_elapsed) => Err(failed(format!(
            "it did not answer within {} s",
            TIMEOUT.as_secs()
        ))),
    }
}

/// Encodes fields as a form.
fn encoded(fields: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new())
        .extend_pairs(fields)
        .finish()
}

/// Encodes a client id or secret like a form field, as OAuth requires for the header.
fn part(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_encoded_and_an_address_must_be_https_or_local() {
        assert_eq!(encoded(&[("a b", "c&d=ü")]), "a+b=c%26d%3D%C3%BC");
        assert_eq!(part("a:b"), "a%3Ab");
        for good in [
            "https://example.com/x",
            "http://localhost:1/x",
            "http://127.0.0.1",
            "http://[::1]:2",
        ] {
            assert!(address(good).is_ok(), "{good}");
        }
        for bad in [
            "http://example.com",
            "ftp://localhost",
            "https://user:secret@example.com",
            "http://localhost.example.com",
            "x",
            "",
        ] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }
}
