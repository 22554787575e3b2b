//! The card, and the list of routes.

use super::support::{TestServer, message, read, settings, with_timeout};
use lango_a2a::server::{Access, AgentServer};
use reqwest::{Method, StatusCode};
use serde_json::json;

const PATH: &str = "/.well-known/agent-card.json";

#[tokio::test]
async fn the_card_describes_the_agent() {
    let server = TestServer::start().await;
    // A request for the card needs no version header.
    let response = with_timeout(server.client.get(format!("{}{PATH}", server.base)).send())
        .await
        .unwrap();
    assert_eq!(response.headers()["content-type"], "application/json");
    assert_eq!(
        read(response).await,
        json!({
            "name": "Test agent",
            "description": "For tests",
            "version": "2.1.0",
            "supportedInterfaces": [
                { "url": "http://agent.test", "protocolBinding": "JSONRPC", "protocolVersion": "1.0" },
                { "url": "http://agent.test", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0" },
            ],
            "capabilities": { "streaming": true, "pushNotifications": false, "extendedAgentCard": false },
            "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"],
            "skills": [{
                "id": "talk", "name": "Talk", "description": "Says what it is told", "tags": ["test"],
            }],
            "securitySchemes": { "bearer": { "httpAuthSecurityScheme": { "scheme": "Bearer" } } },
            "securityRequirements": [{ "schemes": { "bearer": { "list": [] } } }],
        })
    );
    let mut open = settings();
    open.access = Access::Open;
    let server = TestServer::with(open).await;
    let response = server.client.get(format!("{}{PATH}", server.base));
    let card = read(response.send().await.unwrap()).await;
    assert_eq!(card["name"], "Test agent");
    assert!(card.get("securitySchemes").is_none());
    assert!(card.get("securityRequirements").is_none());
}

#[tokio::test]
async fn a_cached_card_is_not_sent_again() {
    let server = TestServer::start().await;
    let get = |header: Option<(&'static str, String)>| {
        let mut request = server.client.get(format!("{}{PATH}", server.base));
        if let Some((name, value)) = header {
            request = request.header(name, value);
        }
        async { with_timeout(request.send()).await.unwrap() }
    };
    let first = get(None).await;
    assert!(
        first.headers()["cache-control"]
            .to_str()
            .unwrap()
            .contains("max-age=")
    );
    let tag = first.headers()["etag"].to_str().unwrap().to_owned();
    let time = first.headers()["last-modified"]
        .to_str()
        .unwrap()
        .to_owned();
    assert!(time.ends_with(" GMT"), "{time}");
    for (header, status) in [
        (("if-none-match", tag.clone()), 304),
        (("if-none-match", format!("\"other\", W/{tag}")), 304),
        (("if-none-match", "*".to_owned()), 304),
        (("if-none-match", "\"other\"".to_owned()), 200),
        (("if-modified-since", time), 304),
        (
            (
                "if-modified-since",
                "Sat, 01 Jan 2000 00:00:00 GMT".to_owned(),
            ),
            200,
        ),
        (("if-modified-since", "yesterday".to_owned()), 200),
    ] {
        let response = get(Some(header.clone())).await;
        assert_eq!(response.status().as_u16(), status, "{header:?}");
        assert_eq!(response.headers()["etag"], tag);
        let length = with_timeout(response.bytes()).await.unwrap().len();
        assert_eq!(length == 0, status == 304);
    }
    // Another card has another tag.
    let mut other = settings();
    other.description.push('!');
    let other = TestServer::with(other).await;
    let response = with_timeout(other.client.get(format!("{}{PATH}", other.base)).send())
        .await
        .unwrap();
    assert_ne!(response.headers()["etag"], tag);
}

#[tokio::test]
async fn every_listed_route_is_served_and_only_the_card_is_public() {
    let mut guarded = settings();
    guarded.default_user = None;
    let guarded = TestServer::with(guarded).await;
    let open = TestServer::start().await;
    let waiting = open.send("ask what?").await["id"].clone();
    for route in AgentServer::routes() {
        let method = Method::from_bytes(route.method.as_bytes()).unwrap();
        let path = route
            .path
            .replace("{id}", waiting.as_str().unwrap())
            .replace("{taskId}", "t")
            .replace("{tenant}", "somebody");
        let request = guarded.request(method.clone(), &path);
        let response = with_timeout(request.send()).await.unwrap();
        let is_open = response.status() != StatusCode::UNAUTHORIZED;
        assert_eq!(is_open, route.is_public, "{route:?}");
        let mut request = open.request(method, &path);
        if route.path.ends_with(":send") || route.path.ends_with(":stream") {
            let body = json!({ "message": message("x") }).to_string();
            request = request
                .header("content-type", "application/json")
                .body(body);
        }
        let response = with_timeout(request.send()).await.unwrap();
        let status = response.status().as_u16();
        assert!([200, 400].contains(&status), "{route:?} gave {status}");
    }
    assert_eq!(
        AgentServer::routes()
            .iter()
            .filter(|route| route.is_public)
            .count(),
        1
    );
}

#[tokio::test]
async fn paths_below_a_tenant_reach_the_same_agent() {
    let server = TestServer::start().await;
    let body = json!({ "message": message("one") });
    let (status, answer) = server
        .http(Method::POST, "/acme/message:send", Some(body))
        .await;
    assert_eq!(status, 200);
    let id = answer["task"]["id"].as_str().unwrap();
    let (_, task) = server.get(&format!("/acme/tasks/{id}")).await;
    assert_eq!(task, answer["task"]);
    assert_eq!(server.get(&format!("/tasks/{id}")).await.1, task);
    assert_eq!(server.get("/acme/tasks").await.1["totalSize"], 1);
    let (status, _) = server
        .http(Method::POST, &format!("/acme/tasks/{id}:cancel"), None)
        .await;
    assert_eq!(status, 400);
}
