//! Access control: every route refuses requests without a token, with a token that lacks its scope, and from other
//! sites.

use crate::support::{A2A_TOKEN, TestApi};
use axum::body::Body;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, HOST};
use axum::http::{Method, Request};
use lango_testkit::model::ScriptedModel;
use serde_json::Value;

/// The scope that each route needs, besides those that only read.
const SCOPES: [(&str, &str, &str); 9] = [
    ("patch", "/api/sessions/{id}", "run"),
    ("delete", "/api/sessions/{id}", "run"),
    ("post", "/api/sessions/{id}/fork", "run"),
    ("post", "/api/turns", "run"),
    ("post", "/api/sessions/{id}/turns/{turn}/cancel", "run"),
    ("post", "/api/approvals/{id}", "approve"),
    ("delete", "/api/grants/{id}", "approve"),
    ("post", "/v1/chat/completions", "run"),
    ("post", "/v1/responses", "run"),
];

/// Every route of the description, and those of the other protocols.
async fn routes(api: &TestApi) -> Vec<(Method, String, &'static str)> {
    let token = api.token("read").await;
    let description = api.get(&token, "/api/openapi.json").await.ok();
    let paths = description["paths"].as_object().unwrap();
    let mut routes: Vec<(String, String)> = paths
        .iter()
        .flat_map(|(path, methods)| {
            let methods = methods.as_object().unwrap().keys();
            methods.map(move |method| (method.clone(), path.clone()))
        })
        .collect();
    for (method, path) in [
        ("get", "/v1/models"),
        ("post", "/v1/chat/completions"),
        ("post", "/v1/responses"),
        ("post", "/agui"),
    ] {
        routes.push((method.to_owned(), path.to_owned()));
    }
    assert!(routes.len() >= 30, "{}", routes.len());
    let scope_of = |method: &str, path: &str| {
        let listed = SCOPES
            .iter()
            .find(|route| (route.0, route.1) == (method, path));
        match listed {
            Some((_, _, scope)) => scope,
            None if path == "/agui" => "run",
            None => "read",
        }
    };
    let routes = routes.into_iter().map(|(method, path)| {
        let scope = scope_of(&method, &path);
        let method = method.to_uppercase().parse().unwrap();
        (method, path, scope)
    });
    routes.collect()
}

fn request(method: &Method, path: &str) -> axum::http::request::Builder {
    let path = path.replace("{seq}", "1").replace(['{', '}'], "");
    Request::builder()
        .method(method.clone())
        .uri(path)
        .header(HOST, "127.0.0.1:18789")
        .header(CONTENT_TYPE, "application/json")
}

async fn status(api: &TestApi, request: axum::http::request::Builder) -> u16 {
    let response = api.send(request.body(Body::from("{}")).unwrap()).await;
    response.status
}

fn api() -> TestApi {
    TestApi::new(ScriptedModel::replies([]))
}

#[tokio::test]
async fn every_route_refuses_requests_without_a_valid_token() {
    let api = api();
    for (method, path, _) in routes(&api).await {
        let without = status(&api, request(&method, &path)).await;
        assert_eq!(without, 401, "{method} {path}");
        let wrong = request(&method, &path).header(AUTHORIZATION, "Bearer lango_0000");
        assert_eq!(status(&api, wrong).await, 401, "{method} {path}");
        let basic = request(&method, &path).header(AUTHORIZATION, "Basic bGFuZ28=");
        assert_eq!(status(&api, basic).await, 401, "{method} {path}");
    }
}

#[tokio::test]
async fn every_route_refuses_a_token_without_its_scope() {
    let api = api();
    for (method, path, scope) in routes(&api).await {
        let others = ["read", "run", "approve"];
        let others: Vec<&str> = others.into_iter().filter(|other| *other != scope).collect();
        let token = api.token(&others.join(" ")).await;
        let sent = request(&method, &path).header(AUTHORIZATION, format!("Bearer {token}"));
        assert_eq!(
            status(&api, sent).await,
            403,
            "{method} {path} without {scope}"
        );
    }
}

#[tokio::test]
async fn the_token_of_a2a_has_no_scope() {
    let api = api();
    for (method, path, _) in routes(&api).await {
        let sent = request(&method, &path).header(AUTHORIZATION, format!("Bearer {A2A_TOKEN}"));
        assert_eq!(status(&api, sent).await, 403, "{method} {path}");
    }
}

#[tokio::test]
async fn requests_of_other_sites_are_refused_even_with_a_token() {
    let api = api();
    let token = api.token("read run approve").await;
    for (method, path, _) in routes(&api).await {
        for site in ["cross-site", "same-site", "nonsense"] {
            let sent = request(&method, &path)
                .header(AUTHORIZATION, format!("Bearer {token}"))
                .header("sec-fetch-site", site);
            assert_eq!(status(&api, sent).await, 403, "{method} {path} from {site}");
        }
    }
    for site in ["same-origin", "none"] {
        let sent = request(&Method::GET, "/api/me")
            .header(AUTHORIZATION, format!("Bearer {token}"))
            .header("sec-fetch-site", site);
        assert_eq!(status(&api, sent).await, 200, "{site}");
    }
}

#[tokio::test]
async fn a_token_is_accepted_as_the_cookie_of_its_port_alone() {
    let api = api();
    let token = api.token("read").await;
    for (cookie, expected) in [
        (format!("lango_18789={token}"), 200),
        (format!("a=b; lango_18789={token}"), 200),
        (format!("lango_1={token}"), 401),
        (format!("lango={token}"), 401),
        (format!("lango_18789={token}; lango_18789=x"), 401),
        (format!("lango_18789=\"{token}\""), 401),
    ] {
        let sent = request(&Method::GET, "/api/me").header(COOKIE, &cookie);
        assert_eq!(status(&api, sent).await, expected, "{cookie}");
    }
}

#[tokio::test]
async fn a_revoked_token_is_refused_at_once() {
    let api = api();
    let token = api.token("read").await;
    assert_eq!(api.get(&token, "/api/me").await.status, 200);
    let response = api.post(&token, "/api/sign-out", &Value::Null).await;
    assert_eq!(response.status, 204, "{}", response.body);
    assert_eq!(api.get(&token, "/api/me").await.status, 401);
}

#[tokio::test]
async fn paths_below_reserved_segments_never_reach_another_router() {
    let api = api();
    let token = api.token("read run approve").await;
    for path in [
        "/api",
        "/api/",
        "/api/nothing",
        "/v1/nothing",
        "/agui/nothing",
        "/v1/tasks",
    ] {
        assert_eq!(api.get(&token, path).await.status, 404, "{path}");
        let without = Request::get(path).body(Body::empty()).unwrap();
        assert_eq!(api.send(without).await.status, 401, "{path}");
    }
    let wrong_method = api.post(&token, "/api/me", &Value::Null).await;
    assert_eq!(wrong_method.status, 405, "{}", wrong_method.body);
}
