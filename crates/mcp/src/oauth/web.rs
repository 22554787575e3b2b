//! Requests to whoever grants access: only where nobody listens, and never without end.

use super::LoginError;
use crate::names::line;
use crate::place::is_private_way;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, RequestBuilder, Url};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::Duration;

/// The longest answer that is read, and how long one may take.
const LONGEST: usize = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(20);

/// An address that may be spoken to: encrypted, or on this machine.
pub(super) fn address(text: &str) -> Result<Url, LoginError> {
    let url = Url::parse(text).ok().filter(|url| {
        is_private_way(text) && url.username().is_empty() && url.password().is_none()
    });
    url.ok_or_else(|| {
        let text = line(text, 200);
        LoginError::unusable(format!(
            "`{text}` is no address that a login may use; it has to begin with https://"
        ))
    })
}

/// Reads a document; nothing where there is none.
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
    crate::http::client(url.as_str()).map_err(|error| LoginError::unusable(error.to_string()))
}

/// Sends a document.
pub(super) async fn post_json(url: &Url, body: &Value) -> Result<(u16, Value), LoginError> {
    let request = client(url)?
        .post(url.clone())
        .header(ACCEPT, "application/json")
        .header(CONTENT_TYPE, "application/json")
        .body(body.to_string());
    send(request, url).await
}

/// Sends a form, with a name and a secret in the header where there are any.
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
    let place = url.host_str().unwrap_or_default().to_owned();
    let failed = |why: String| LoginError::unusable(format!("`{place}` cannot be asked: {why}"));
    let asking = async {
        let mut response = request
            .send()
            .await
            .map_err(|error| lango_core::error_chain(&error))?;
        let status = response.status().as_u16();
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| error.to_string())? {
            if body.len() + chunk.len() > LONGEST {
                return Err("its answer has no end".to_owned());
            }
            body.extend_from_slice(&chunk);
        }
        Ok((status, serde_json::from_slice(&body).unwrap_or(Value::Null)))
    };
    match tokio::time::timeout(PATIENCE, asking).await {
        Ok(answer) => answer.map_err(failed),
        Err(_elapsed) => Err(failed(format!(
            "it did not answer within {} s",
            PATIENCE.as_secs()
        ))),
    }
}

/// Fields as a form.
fn encoded(fields: &[(&str, &str)]) -> String {
    // An address is the library's way to a form.
    let Ok(mut url) = Url::parse("http://form.invalid") else {
        return String::new();
    };
    url.query_pairs_mut().extend_pairs(fields);
    url.query().unwrap_or_default().to_owned()
}

/// A name or a secret as a form would have it, which is how the header wants it.
fn part(text: &str) -> String {
    encoded(&[("", text)])[1..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_encoded_and_an_address_is_encrypted_or_here() {
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
