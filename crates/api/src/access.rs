//! Authentication and scopes.
//!
//! A program sends its token as `Authorization: Bearer …`; a browser sends it in the cookie that the sign-in link has
//! set. The middleware looks up the token for every request, so a revoked token is refused immediately. The first
//! argument of a handler says which scope it requires: [`Reader`], [`Runs`] or [`Approver`].

use crate::Api;
use crate::problem::Problem;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::header::{AUTHORIZATION, COOKIE, HOST};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use lango_core::{Scope, Scopes, Text, TokenDigest, TokenKind, UserId, UserInput};
use sha2::{Digest, Sha256};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The sender of a request.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The user that the caller acts as.
    pub user: UserId,
    /// What the caller may do.
    pub scopes: Scopes,
    /// The id of the caller's token.
    pub token: Text,
    /// The name of the caller's token.
    pub name: Text,
    /// Whether the request came from a browser, in which a person typed it.
    pub is_browser: bool,
    /// The digest of the caller's token. Long responses use it to check that the token is still valid.
    pub(crate) digest: TokenDigest,
}

impl Caller {
    /// Returns a message of this caller as the input of a turn. Only messages from a browser count as typed by a
    /// person.
    pub(crate) fn input(&self, text: &str) -> UserInput {
        if self.is_browser {
            UserInput::from(text)
        } else {
            UserInput::from_program(text)
        }
    }
}

/// A caller with the scope `read`.
#[derive(Debug, Clone)]
pub struct Reader(pub Caller);

/// A caller with the scope `run`.
#[derive(Debug, Clone)]
pub struct Runs(pub Caller);

/// A caller with the scope `approve`.
#[derive(Debug, Clone)]
pub struct Approver(pub Caller);

macro_rules! needs_scope {
    ($($caller:ident => $scope:expr),*) => {
        $(impl<S: Send + Sync> FromRequestParts<S> for $caller {
            type Rejection = Problem;

            async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
                with_scope(parts, $scope).map(Self)
            }
        })*
    };
}
needs_scope!(Reader => Scope::Read, Runs => Scope::Run, Approver => Scope::Approve);

fn with_scope(parts: &Parts, scope: Scope) -> Result<Caller, Problem> {
    let caller = parts.extensions.get::<Caller>();
    let caller = caller.ok_or_else(Problem::unauthorized)?;
    if caller.scopes.contains(scope) {
        Ok(caller.clone())
    } else {
        Err(Problem::missing_scope(scope))
    }
}

/// Refuses requests without a valid token, and requests from pages of other sites.
pub(crate) async fn check(State(api): State<Api>, mut request: Request, next: Next) -> Response {
    match caller_of(&api, request.headers()).await {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

async fn caller_of(api: &Api, headers: &HeaderMap) -> Result<Caller, Problem> {
    if is_cross_site(headers) {
        return Err(Problem::cross_site());
    }
    let digest = presented(headers).ok_or_else(Problem::unauthorized)?;
    if api.a2a_token == Some(digest) {
        return Ok(Caller {
            user: api.context.owner(),
            scopes: Scopes::default(),
            token: "".into(),
            name: "the token of A2A".into(),
            is_browser: false,
            digest,
        });
    }
    let token = api.store_token(digest).await?;
    let token = token.ok_or_else(Problem::unauthorized)?;
    Ok(Caller {
        user: token.user,
        scopes: token.scopes,
        token: token.id,
        name: token.name,
        is_browser: token.kind == TokenKind::Browser,
        digest,
    })
}

/// Returns whether the browser reports that another site sent the request. The value `none` means that the user typed
/// the address.
pub(crate) fn is_cross_site(headers: &HeaderMap) -> bool {
    let mut sites = headers.get_all(SEC_FETCH_SITE).iter();
    sites.any(|site| !matches!(site.as_bytes(), b"same-origin" | b"none"))
}

/// Returns the digest of the token that was sent. A header takes precedence over a cookie. Several headers, or several
/// cookies, count as no token.
pub(crate) fn presented(headers: &HeaderMap) -> Option<TokenDigest> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    match (all.next(), all.next()) {
        (Some(value), None) => {
            let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
            let is_bearer = scheme.eq_ignore_ascii_case("bearer");
            is_bearer.then(|| digest_of(token.trim()))
        }
        (Some(_), Some(_)) => None,
        (None, _) => cookie(headers).map(digest_of),
    }
}

/// Returns the value of the sign-in cookie.
fn cookie(headers: &HeaderMap) -> Option<&str> {
    let name = cookie_name(headers);
    let mut values = headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|cookies| cookies.split(';'))
        .filter_map(|cookie| cookie.trim().split_once('='))
        .filter(|(key, _)| *key == name)
        .map(|(_, value)| value);
    match (values.next(), values.next()) {
        (Some(value), None) => Some(value),
        _ => None,
    }
}

/// Returns the name of the sign-in cookie. The name contains the port, because browsers share cookies among all ports
/// of a host.
pub(crate) fn cookie_name(headers: &HeaderMap) -> String {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let port = host
        .and_then(|host| host.rsplit_once(':'))
        .map(|(_, port)| port);
    let port = port.filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    port.map_or("lango".to_owned(), |port| format!("lango_{port}"))
}

/// Returns the digest under which a token is stored.
pub fn digest_of(token: &str) -> TokenDigest {
    Sha256::digest(token).into()
}
