//! Signing a browser in by a link that works once.

use crate::support::{OWNER, TestApi};
use axum::body::Body;
use axum::http::Request;
use axum::http::header::{COOKIE, HOST, USER_AGENT};
use lango_api::tokens::{LINK_LIFETIME, NewToken, issue};
use lango_core::{Scopes, TokenKind, TokenStore, UserId};
use lango_engine::SystemClock;
use lango_testkit::model::ScriptedModel;
use std::time::Duration;

async fn link(api: &TestApi, lifetime: Duration) -> String {
    let new = NewToken {
        user: UserId::from(OWNER),
        name: "sign-in link".into(),
        kind: TokenKind::Link,
        scopes: Scopes::all(),
        lifetime: Some(lifetime),
    };
    let issued = issue(&*api.store, &SystemClock, new).await.unwrap();
    format!("/sign-in?code={}", issued.secret)
}

fn visit(path: &str) -> axum::http::request::Builder {
    Request::get(path)
        .header(HOST, "127.0.0.1:4000")
        .header(USER_AGENT, "Mozilla/5.0 (X11; Linux x86_64) Chrome/140")
}

fn api() -> TestApi {
    TestApi::new(ScriptedModel::replies([]))
}

#[tokio::test]
async fn a_link_becomes_a_strict_cookie_once() {
    let api = api();
    let link = link(&api, LINK_LIFETIME).await;
    let first = api.send(visit(&link).body(Body::empty()).unwrap()).await;
    assert_eq!(first.status, 200, "{}", first.body);
    let cookie = first.header("set-cookie");
    for part in ["lango_4000=lango_", "HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(part), "{part}: {cookie}");
    }
    assert!(
        !first.body.contains("lango_"),
        "the page does not show the token"
    );
    let sent = cookie.split(';').next().unwrap();
    let me = visit("/api/me")
        .header(COOKIE, sent)
        .body(Body::empty())
        .unwrap();
    let me = api.send(me).await.ok();
    assert_eq!(
        (&me["user"], &me["token"]),
        (&OWNER.into(), &"Chrome on Linux".into())
    );
    let second = api.send(visit(&link).body(Body::empty()).unwrap()).await;
    assert_eq!(second.status, 401);
    assert_eq!(second.header("set-cookie"), "");
    assert_eq!(api.store.tokens().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_link_that_expired_or_was_made_up_signs_nobody_in() {
    let api = api();
    let expired = link(&api, Duration::ZERO).await;
    for path in [
        expired.as_str(),
        "/sign-in?code=lango_00",
        "/sign-in",
        "/sign-in?code=",
    ] {
        let response = api.send(visit(path).body(Body::empty()).unwrap()).await;
        assert_eq!(response.status, 401, "{path}");
        assert_eq!(response.header("set-cookie"), "");
    }
}

#[tokio::test]
async fn a_program_that_checks_links_does_not_use_them_up() {
    let api = api();
    let link = link(&api, LINK_LIFETIME).await;
    let head = visit(&link).method("HEAD").body(Body::empty()).unwrap();
    let fetched = visit(&link).header("sec-purpose", "prefetch");
    for request in [head, fetched.body(Body::empty()).unwrap()] {
        let response = api.send(request).await;
        assert_eq!((response.status, response.header("set-cookie")), (204, ""));
    }
    let visited = api.send(visit(&link).body(Body::empty()).unwrap()).await;
    assert_eq!(visited.status, 200, "{}", visited.body);
}

#[tokio::test]
async fn another_site_cannot_sign_a_browser_in() {
    let api = api();
    let link = link(&api, LINK_LIFETIME).await;
    let sent = visit(&link).header("sec-fetch-site", "cross-site");
    let response = api.send(sent.body(Body::empty()).unwrap()).await;
    assert_eq!(response.status, 403);
    let own = visit(&link).header("sec-fetch-site", "none");
    let own = api.send(own.body(Body::empty()).unwrap()).await;
    assert_eq!(own.status, 200, "the link was not used up");
}
