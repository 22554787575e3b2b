//! The checks of token, host and origin.

use crate::support::{TOKEN, TestServer, send};
use lango_a2a::server::AgentServer;
use lango_testkit::model::ScriptedModel;

async fn server() -> (tempfile::TempDir, TestServer) {
    let folder = tempfile::tempdir().unwrap();
    let server = TestServer::start(folder.path(), ScriptedModel::replies([]), vec![]).await;
    (folder, server)
}

/// Replaces the parameters of a path with `x`.
fn fill_parameters(path: &str) -> String {
    let mut filled = String::new();
    for (index, piece) in path.split(['{', '}']).enumerate() {
        filled.push_str(if index % 2 == 1 { "x" } else { piece });
    }
    filled
}

#[tokio::test]
async fn every_route_except_the_card_and_the_health_check_requires_the_token() {
    let (_folder, server) = server().await;
    let host = server.address.to_string();
    let routes = AgentServer::routes();
    assert!(routes.len() > 10, "{routes:?}");
    for route in routes {
        let path = fill_parameters(route.path);
        for sent in ["", "Bearer wrong", "Basic eA==", TOKEN, "Bearer"] {
            let headers = [("Host", host.as_str()), ("Authorization", sent)];
            let headers = &headers[..if sent.is_empty() { 1 } else { 2 }];
            let reply = send(server.address, route.method, &path, headers, "{}").await;
            let expected = if route.is_public { 200 } else { 401 };
            assert_eq!(reply.status, expected, "{route:?} with `{sent}`");
            if !route.is_public {
                assert!(
                    reply
                        .head
                        .to_lowercase()
                        .contains("www-authenticate: bearer")
                );
                assert!(reply.body.contains("UNAUTHENTICATED"));
            }
        }
    }
    let health = send(server.address, "GET", "/healthz", &[("Host", &host)], "").await;
    assert_eq!((health.status, health.body.as_str()), (200, "ok\n"));
    let unknown = send(server.address, "GET", "/nowhere", &[("Host", &host)], "").await;
    assert_eq!(unknown.status, 401);
    let token = format!("Bearer {TOKEN}");
    let known = [("Host", host.as_str()), ("Authorization", &token)];
    assert_eq!(
        send(server.address, "GET", "/nowhere", &known, "")
            .await
            .status,
        404
    );
}

#[tokio::test]
async fn an_unknown_host_or_origin_is_refused_on_every_route() {
    let (_folder, server) = server().await;
    let own = server.address.to_string();
    let (token, port) = (format!("Bearer {TOKEN}"), server.address.port());
    let mut paths: Vec<(&str, String)> = AgentServer::routes()
        .iter()
        .map(|route| (route.method, fill_parameters(route.path)))
        .collect();
    paths.push(("GET", "/healthz".to_owned()));
    for (method, path) in paths {
        let with = async |host: &str, origin: Option<&str>| {
            let mut headers = vec![("Host", host), ("Authorization", &token)];
            headers.extend(origin.map(|origin| ("Origin", origin)));
            let reply = send(server.address, method, &path, &headers, "{}").await;
            reply.status
        };
        let evil = format!("evil.example:{port}");
        for host in [
            "evil.example",
            &evil,
            "127.0.0.1.evil.example",
            "127.0.0.1:1@evil.example",
            "evil.example@127.0.0.1",
            "[::1]:1@evil.example",
            "127.0.0.1:99999",
            "127.0.0.1:1:1",
            "127.0.0.1/x",
            "",
            "127.0.0.2",
        ] {
            assert_eq!(with(host, None).await, 403, "{method} {path} at `{host}`");
        }
        let other_port = "http://127.0.0.1:1";
        for origin in [
            "http://evil.example",
            "null",
            other_port,
            "http://localhost",
        ] {
            let status = with(&own, Some(origin)).await;
            assert_eq!(status, 403, "{method} {path} from `{origin}`");
        }
        let same = format!("http://{own}");
        let status = with(&own, Some(&same)).await;
        assert!(status != 403 && status != 401, "{method} {path}: {status}");
        let named = format!("LocalHost:{port}");
        assert_ne!(with(&named, None).await, 403);
    }
}

#[tokio::test]
async fn a_request_without_a_host_or_with_two_is_refused() {
    let (_folder, server) = server().await;
    let own = server.address.to_string();
    let none = send(server.address, "GET", "/healthz", &[], "").await;
    assert!(none.status == 403 || none.status == 400, "{}", none.status);
    let two = [("Host", own.as_str()), ("Host", "evil.example")];
    let two = send(server.address, "GET", "/healthz", &two, "").await;
    assert!(two.status == 403 || two.status == 400, "{}", two.status);
}
