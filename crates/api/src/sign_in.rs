//! Signs a browser in: exchanges a single-use link for a cookie.

use crate::Api;
use crate::access::{cookie_name, digest_of, is_cross_site, presented};
use crate::page::POLICY;
use crate::problem::Problem;
use crate::tokens::{BROWSER_LIFETIME, IssuedToken, NewToken};
use axum::Router;
use axum::extract::{Query, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, SET_COOKIE, USER_AGENT,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use lango_core::{Scopes, TokenKind, TokenStore, UserId};
use serde::Deserialize;

/// The path of sign-in links.
pub(crate) const SIGN_IN: &str = "/sign-in";

pub(crate) fn router(api: Api) -> Router {
    Router::new().route(SIGN_IN, get(sign_in)).with_state(api)
}

/// Returns the sign-in link of a server for the secret of a link token.
pub fn link(server: &str, secret: &str) -> String {
    format!("{}{SIGN_IN}?code={secret}", server.trim_end_matches('/'))
}

const SEC_PURPOSE: HeaderName = HeaderName::from_static("sec-purpose");

#[derive(Deserialize)]
struct Code {
    #[serde(default)]
    code: String,
}

async fn sign_in(
    State(api): State<Api>,
    method: Method,
    Query(Code { code }): Query<Code>,
    headers: HeaderMap,
) -> Response {
    // Programs that check or load links in advance must not use them up.
    if method == Method::HEAD || headers.contains_key(SEC_PURPOSE) {
        return (StatusCode::NO_CONTENT, [(CACHE_CONTROL, "no-store")]).into_response();
    }
    // A page of another site must not sign the user in as somebody else. A link in a mail or a chat also counts as
    // another site, so the user is asked to open the link directly.
    if is_cross_site(&headers) {
        return (
            StatusCode::FORBIDDEN,
            document("Copy the link into the address bar of the browser; links of other sites cannot sign you in.", ""),
        )
            .into_response();
    }
    match redeem(&api, &code, &headers).await {
        Ok(Some(issued)) => {
            let cookie = cookie(&api, &headers, &issued.secret);
            let page = document("Signed in.", NEXT);
            (StatusCode::OK, [(SET_COOKIE, cookie)], page).into_response()
        }
        Ok(None) if is_signed_in(&api, &headers).await => {
            let page = document("Signed in already.", NEXT);
            (StatusCode::OK, page).into_response()
        }
        Ok(None) => {
            let text = "This link was used before or has expired. Run `lango tokens link` on the machine of the server and open the new link.";
            (StatusCode::UNAUTHORIZED, document(text, "")).into_response()
        }
        Err(problem) => problem.into_response(),
    }
}

/// Loads the page from this document, so that the browser sends the cookie, which is restricted to the same site.
const NEXT: &str = r#"<meta http-equiv="refresh" content="0;url=/">"#;

/// Returns whether the browser has a valid cookie, for example when a used link is reloaded.
async fn is_signed_in(api: &Api, headers: &HeaderMap) -> bool {
    let Some(digest) = presented(headers) else {
        return false;
    };
    matches!(api.store_token(digest).await, Ok(Some(_)))
}

async fn redeem(
    api: &Api,
    code: &str,
    headers: &HeaderMap,
) -> Result<Option<IssuedToken>, Problem> {
    let new = NewToken {
        // The store sets user and scopes of the link.
        user: UserId::from("link"),
        scopes: Scopes::default(),
        name: browser_name(headers).into(),
        kind: TokenKind::Browser,
        lifetime: Some(BROWSER_LIFETIME),
    };
    let issued = IssuedToken::new(new, api.clock.now())?;
    let digest = issued.digest();
    let redeemed = api
        .store
        .redeem_link(digest_of(code), issued.token, digest)
        .await?;
    Ok(redeemed.map(|token| IssuedToken {
        token,
        secret: issued.secret,
    }))
}

fn cookie(api: &Api, headers: &HeaderMap, secret: &str) -> String {
    let name = cookie_name(headers);
    let age = BROWSER_LIFETIME.as_secs();
    let secure = if api.is_https { "; Secure" } else { "" };
    format!("{name}={secret}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}")
}

/// Returns a name for the browser in the list of tokens, such as `Firefox on Linux`.
fn browser_name(headers: &HeaderMap) -> String {
    let agent = headers
        .get(USER_AGENT)
        .and_then(|agent| agent.to_str().ok());
    let agent = agent.unwrap_or_default();
    let first = |names: &[&'static str]| names.iter().copied().find(|name| agent.contains(name));
    let browser = first(&["Firefox", "Edg", "Chrome", "Safari"]).unwrap_or("browser");
    let system = first(&["Android", "iPhone", "iPad", "Windows", "Mac OS", "Linux"]);
    match system {
        Some(system) => format!("{browser} on {system}"),
        None => browser.to_owned(),
    }
}

fn document(text: &str, head: &str) -> Response {
    let page = format!(
        r#"<!doctype html><html lang="en"><head><meta charset="utf-8"><title>lango</title><meta name="viewport" content="width=device-width">{head}</head><body><main><h1>lango</h1><p>{text}</p><p><a href="/">Open the page</a></p></main></body></html>"#
    );
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
    ];
    (headers, page).into_response()
}
