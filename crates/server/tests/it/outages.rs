//! An outage of the database, as callers and operators see it.

use super::support::{TestServer, message, send};
use lango_store::{PostgresOptions, Store};
use lango_testkit::model::{ScriptedModel, say};
use lango_testkit::postgres::Cluster;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

#[tokio::test]
async fn the_server_answers_503_while_the_database_is_down() {
    let mut cluster = Cluster::start(&[]);
    let options = PostgresOptions {
        lease: Duration::from_secs(2),
        ..PostgresOptions::default()
    };
    let store = Store::postgres_with(&cluster.address(), "lango-orchestrator".into(), options);
    let model = ScriptedModel::from_fn(|_| say("hello"));
    let server = TestServer::over(Arc::new(store.unwrap()), model, vec![]).await;
    let sent = server.rpc("SendMessage", message("m-1", "hi")).await;
    assert_eq!(
        sent["result"]["task"]["status"]["state"],
        "TASK_STATE_COMPLETED"
    );
    assert_eq!(ready(&server).await, 200);

    cluster.stop_immediately();
    assert_eq!(ready(&server).await, 503);
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message("m-2", "hi") });
    for (path, body) in [("/", &body), ("/message:send", &message("m-2", "hi"))] {
        let refused = server.post(path, body).await;
        assert_eq!(refused.status, 503, "{}", refused.body);
        let head = refused.head.to_ascii_lowercase();
        assert!(head.contains("retry-after: 1"), "{head}");
        assert!(
            refused.body.contains("STORE_UNAVAILABLE"),
            "{}",
            refused.body
        );
        assert!(!refused.body.contains("5432"), "{}", refused.body);
    }
    let host = server.address.to_string();
    let alive = send(server.address, "GET", "/healthz", &[("Host", &host)], "").await;
    assert_eq!(alive.status, 200, "the process is alive");

    cluster.start_again();
    assert_eq!(ready(&server).await, 200);
    let sent = server.rpc("SendMessage", message("m-2", "hi")).await;
    assert_eq!(
        sent["result"]["task"]["status"]["state"],
        "TASK_STATE_COMPLETED"
    );
    server.stop().await;
}

async fn ready(server: &TestServer) -> u16 {
    let host = server.address.to_string();
    let reply = send(server.address, "GET", "/readyz", &[("Host", &host)], "").await;
    reply.status
}
