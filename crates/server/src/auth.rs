//! The auth middleware. Any web page in a browser can send requests to this machine. Therefore the host must be
//! allowed, the origin must match the host, and the caller must present the token. All checks run before the body is
//! read.

use crate::HEALTH;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use lango_core::UserId;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::net::Ipv6Addr;
use std::sync::Arc;

/// The path of the agent card, which is public.
const CARD: &str = "/.well-known/agent-card.json";

/// The rules for accepting requests.
#[derive(Debug, Clone)]
pub struct Auth {
    /// The digest of the token. Without a token, every request is accepted.
    token: Option<[u8; 32]>,
    hosts: BTreeSet<String>,
    user: UserId,
}

impl Auth {
    /// Creates rules that accept requests with this token, on behalf of `user`.
    pub fn new(token: Option<&str>, user: UserId) -> Self {
        let own = ["127.0.0.1", "localhost", "::1"];
        Self {
            token: token.map(|token| Sha256::digest(token).into()),
            hosts: own.into_iter().map(str::to_owned).collect(),
            user,
        }
    }

    /// Also accepts these host names, in addition to those of the loopback interface.
    pub fn with_hosts(mut self, hosts: impl IntoIterator<Item = String>) -> Self {
        let plain = |host: String| strip_port(&host).to_ascii_lowercase();
        self.hosts.extend(hosts.into_iter().map(plain));
        self
    }

    /// Adds the token check to a router, and adds the user to its requests. The card stays public.
    pub fn require_token(&self, router: Router) -> Router {
        router.layer(from_fn_with_state(Arc::new(self.clone()), check_token))
    }

    /// Adds the host and origin checks and the health check to a router.
    pub fn guard(self, router: Router) -> Router {
        router
            .route(HEALTH, get(|| async { "ok\n" }))
            .layer(from_fn_with_state(Arc::new(self), check_origin))
    }

    fn check_token(&self, request: &Request) -> Result<(), Refusal> {
        match self.token {
            Some(token)
                if request.uri().path() != CARD
                    && presented_token(request.headers()) != Some(token) =>
            {
                Err(Refusal::Token)
            }
            _ => Ok(()),
        }
    }

    fn check_origin(&self, request: &Request) -> Result<(), Refusal> {
        let headers = request.headers();
        let authority = request.uri().authority();
        let authority = authority.map(|authority| authority.as_str());
        let hosts: Vec<&str> = authority.into_iter().chain(host_headers(headers)).collect();
        let is_ours = |host: &&str| host_name(host).is_some_and(|name| self.hosts.contains(&name));
        let Some(host) = hosts.first().filter(|_| hosts.iter().all(is_ours)) else {
            return Err(Refusal::Host);
        };
        if headers
            .get_all(ORIGIN)
            .iter()
            .any(|origin| !is_same_host(origin, host))
        {
            return Err(Refusal::Origin);
        }
        Ok(())
    }
}

/// Why a request is refused.
enum Refusal {
    Host,
    Origin,
    Token,
}

async fn check_origin(State(auth): State<Arc<Auth>>, request: Request, next: Next) -> Response {
    match auth.check_origin(&request) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

async fn check_token(State(auth): State<Arc<Auth>>, mut request: Request, next: Next) -> Response {
    match auth.check_token(&request) {
        Ok(()) => {
            request.extensions_mut().insert(auth.user.clone());
            next.run(request).await
        }
        Err(refusal) => refusal.into_response(),
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (code, status, message) = match self {
            Self::Host => (
                StatusCode::FORBIDDEN,
                "PERMISSION_DENIED",
                "this server does not accept that host name; add it to server.hosts",
            ),
            Self::Origin => (
                StatusCode::FORBIDDEN,
                "PERMISSION_DENIED",
                "this server does not accept requests from pages of other origins",
            ),
            Self::Token => (
                StatusCode::UNAUTHORIZED,
                "UNAUTHENTICATED",
                "send the server's token as `Authorization: Bearer …`",
            ),
        };
        let error =
            json!({ "error": { "code": code.as_u16(), "status": status, "message": message } });
        let mut response = (code, Body::from(error.to_string())).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if matches!(self, Self::Token) {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// Returns the digest of the token in a request. Comparing digests instead of tokens prevents timing attacks.
fn presented_token(headers: &HeaderMap) -> Option<[u8; 32]> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let (value, None) = (all.next()?, all.next()) else {
        return None;
    };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    let is_bearer = scheme.eq_ignore_ascii_case("bearer");
    is_bearer.then(|| Sha256::digest(token.trim()).into())
}

/// Returns the values of the `Host` headers. If there are several, or if the value is not text, returns empty strings
/// instead, so that the request is refused.
fn host_headers(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let number = headers.get_all(HOST).iter().count();
    let all = headers.get_all(HOST).iter();
    all.map(move |host| match number {
        1 => host.to_str().unwrap_or_default(),
        _ => "",
    })
}

/// Returns the host of an authority in lower case. Accepts only a name or an address, with or without a port. In
/// particular, refuses a user before the host: other parsers read `127.0.0.1:1@evil.com` as the host `evil.com`.
fn host_name(authority: &str) -> Option<String> {
    let is_port = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number && text.parse::<u16>().is_ok()
    };
    let (name, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (address, after) = rest.split_once(']')?;
            address.parse::<Ipv6Addr>().ok()?;
            let port = match after {
                "" => None,
                after => Some(after.strip_prefix(':')?),
            };
            (address, port)
        }
        None => {
            let (name, port) = match authority.split_once(':') {
                Some((name, port)) => (name, Some(port)),
                None => (authority, None),
            };
            let is_plain =
                |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
            let is_name = !name.is_empty() && name.bytes().all(is_plain);
            (is_name.then_some(name)?, port)
        }
    };
    port.is_none_or(is_port).then(|| name.to_ascii_lowercase())
}

/// Returns whether an origin has the requested host and port.
fn is_same_host(origin: &HeaderValue, host: &str) -> bool {
    let origin = origin.to_str().unwrap_or_default();
    let authority = origin.split_once("://").map(|(_, authority)| authority);
    authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
}

/// Removes the port and the brackets of an IPv6 address from a configured host.
fn strip_port(host: &str) -> &str {
    if host.parse::<Ipv6Addr>().is_ok() {
        return host;
    }
    match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or("", |(address, _)| address),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_name_or_address_with_an_optional_port_is_accepted_as_host() {
        for (authority, name) in [
            ("127.0.0.1", "127.0.0.1"),
            ("127.0.0.1:18789", "127.0.0.1"),
            ("LocalHost:1", "localhost"),
            ("[::1]", "::1"),
            ("[::1]:65535", "::1"),
            ("a-b.example", "a-b.example"),
        ] {
            assert_eq!(host_name(authority).as_deref(), Some(name), "{authority}");
        }
        for authority in [
            "",
            ":1",
            "127.0.0.1:",
            "127.0.0.1:65536",
            "127.0.0.1:+1",
            "127.0.0.1:1@evil.com",
            "user@127.0.0.1",
            "user:1@127.0.0.1",
            "127.0.0.1:1:2",
            "127.0.0.1 evil.com",
            "127.0.0.1/evil.com",
            "127.0.0.1#evil.com",
            "127.0.0.1\\evil.com",
            "127.0.0.1%2eevil.com",
            "localhost,evil.com",
            "::1",
            "[::1",
            "[::1]evil.com",
            "[::1]:1@evil.com",
            "[127.0.0.1]",
            "[::1%25lo]",
            "http://127.0.0.1",
            "l\u{f6}calhost",
        ] {
            assert_eq!(host_name(authority), None, "{authority}");
        }
    }
}
