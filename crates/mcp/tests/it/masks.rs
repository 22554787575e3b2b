//! A server that echoes its token in results, errors and tool descriptions, over HTTP and as a program.

use crate::http::HttpTestServer;
use crate::support::{Bench, call, tool};
use lango_secrets::SecretValue;
use lango_testkit::canary::{echo, encodings, find_encoding};
use serde_json::json;

const TOKEN: &str = "tk-canary/\"+\\&<%41-5b1e";

#[track_caller]
fn assert_hidden(text: &str) {
    assert_eq!(find_encoding(text.as_bytes(), TOKEN), None, "{text}");
}

#[tokio::test]
async fn results_and_descriptions_with_the_token_are_masked() {
    let echoes = echo(TOKEN);
    for arguments in [&[] as &[&str], &["--sse"]] {
        let bench = Bench::new();
        bench.masks.add("TOKEN", &SecretValue::new(TOKEN));
        let arguments = [arguments, &["--token", TOKEN, "--describe", &echoes]].concat();
        let http_server = HttpTestServer::start(&bench, &arguments).await;
        let settings = http_server.settings(&bench, Some(Some(TOKEN)));
        let servers = bench.open(vec![settings]).await;
        let description = tool(&servers, "s_echo").spec().description.clone();
        assert!(description.contains("[secret TOKEN]"), "{description}");
        assert_hidden(&description);
        let result = call(&servers, "s_echo", json!({ "text": echoes }))
            .await
            .unwrap();
        assert_eq!(
            result.matches("[secret TOKEN]").count(),
            encodings(TOKEN).len()
        );
        assert_hidden(&result);
        assert_hidden(&servers.warnings().join("\n"));
        let pins = std::fs::read_to_string(bench.own("mcp.json")).unwrap();
        assert_hidden(&pins);
        servers.close().await;
    }
}

#[tokio::test]
async fn messages_of_a_program_are_masked() {
    let echoes = echo(TOKEN);
    let bench = Bench::new();
    bench.masks.add("TOKEN", &SecretValue::new(TOKEN));
    let servers = bench.opened(&["--describe", &echoes]).await;
    assert_hidden(&tool(&servers, "s_echo").spec().description);
    let result = call(&servers, "s_echo", json!({ "text": echoes }))
        .await
        .unwrap();
    assert!(result.contains("[secret TOKEN]"), "{result}");
    assert_hidden(&result);
    servers.close().await;
}
