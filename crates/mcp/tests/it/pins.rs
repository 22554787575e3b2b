//! Pinned tool definitions, and what happens when a server changes them.

use crate::support::{Bench, call, tool};
use lango_mcp::{PinError, Servers, StartMode, ToolState};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

const NEW: &str = "Gives the text back, and reads your keys.";

fn state_of(servers: &Servers, name: &str) -> ToolState {
    let tools = servers.overview().iter().flat_map(|server| &server.tools);
    let found = tools.into_iter().find(|tool| tool.name == name);
    found.unwrap().state
}

/// Returns how often the server was started.
fn starts(bench: &Bench) -> usize {
    bench
        .methods()
        .iter()
        .filter(|method| *method == "initialize")
        .count()
}

#[tokio::test]
async fn with_pins_a_server_is_started_only_by_the_first_call() {
    let bench = Bench::new();
    bench.opened(&[]).await.close().await;
    assert_eq!(starts(&bench), 1);
    let file = bench.own("mcp.json");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let servers = bench.opened(&[]).await;
    assert_eq!(servers.tools().len(), 20);
    assert_eq!(starts(&bench), 1);
    assert!(
        call(&servers, "s_echo", json!({ "text": "now" }))
            .await
            .unwrap()
            .contains("now")
    );
    assert_eq!(starts(&bench), 2);
    assert!(
        call(&servers, "s_echo", json!({ "text": "again" }))
            .await
            .is_ok()
    );
    assert_eq!(starts(&bench), 2);
    servers.close().await;
}

#[tokio::test]
async fn other_settings_mean_another_server_but_a_new_token_does_not() {
    let bench = Bench::new();
    let with_env = |value: &str, is_passed_on: bool| {
        let mut settings = bench.server(&[]);
        if let lango_mcp::ServerTarget::Program(program) = &mut settings.target {
            program.env.push(lango_mcp::EnvVariable {
                name: "KEY".to_owned(),
                is_passed_on,
                value: Some(lango_mcp::HiddenText::new(value)),
            });
        }
        settings
    };
    for (settings, expected) in [
        (with_env("one", true), 1),
        (with_env("two", true), 1),
        (with_env("two", false), 2),
        (with_env("three", false), 3),
        (bench.server(&["--pages"]), 4),
        (bench.server(&["--pages"]), 4),
    ] {
        bench.open(vec![settings]).await.close().await;
        assert_eq!(starts(&bench), expected);
    }
}

#[tokio::test]
async fn servers_without_pins_are_not_started_in_pins_only_mode() {
    let bench = Bench::new();
    let servers = Servers::open(bench.setup(vec![bench.server(&[])]), StartMode::PinsOnly).await;
    assert!(servers.tools().is_empty() && servers.warnings().is_empty());
    assert!(!servers.overview()[0].is_pinned);
    assert_eq!(starts(&bench), 0);
}

#[tokio::test]
async fn a_changed_tool_is_refused_then_offered_as_changed_until_it_is_trusted() {
    let bench = Bench::new();
    let settings = || bench.server(&["--describe-file", "told"]);
    bench.open(vec![settings()]).await.close().await;

    std::fs::write(bench.inside("told"), NEW).unwrap();
    let servers = bench.open(vec![settings()]).await;
    assert_eq!(state_of(&servers, "s_echo"), ToolState::Pinned);
    let error = call(&servers, "s_echo", json!({ "text": "x" }))
        .await
        .unwrap_err()
        .message;
    assert!(
        error.contains("changed its tool `echo` since it was pinned, so it was not called"),
        "{error}"
    );
    assert!(error.contains("lango mcp trust s"), "{error}");
    assert!(
        call(&servers, "s_add", json!({ "a": 1, "b": 1 }))
            .await
            .is_ok(),
        "the others are as they were"
    );
    let called: Vec<Value> = bench
        .log()
        .into_iter()
        .filter(|message| message["method"] == "tools/call")
        .collect();
    assert!(
        called
            .iter()
            .all(|message| message["params"]["name"] == "add"),
        "{called:?}"
    );
    servers.close().await;

    let servers = bench.open(vec![settings()]).await;
    assert_eq!(state_of(&servers, "s_echo"), ToolState::Changed);
    assert_eq!(state_of(&servers, "s_add"), ToolState::Pinned);
    assert_eq!(*tool(&servers, "s_echo").spec().description, *NEW);
    assert!(
        call(&servers, "s_echo", json!({ "text": "asked for" }))
            .await
            .is_ok()
    );
    let pending = servers.pending("s").unwrap();
    assert_eq!(pending.len(), 1);
    assert_eq!(pending[0].tool, "echo");
    assert_eq!(
        pending[0].before.as_ref().unwrap().description,
        "Gives the text back."
    );
    assert_eq!(pending[0].now.description, NEW);
    assert_eq!(servers.trust("s", &pending).unwrap(), ["echo"]);
    assert!(servers.pending("s").unwrap().is_empty());
    servers.close().await;

    let servers = bench.open(vec![settings()]).await;
    assert_eq!(state_of(&servers, "s_echo"), ToolState::Pinned);
    assert!(matches!(
        servers.trust("nobody", &pending),
        Err(PinError::NoSuchServer { .. })
    ));
}

#[tokio::test]
async fn a_tool_that_changes_back_is_pinned_again() {
    let bench = Bench::new();
    let settings = || bench.server(&["--describe-file", "told"]);
    bench.open(vec![settings()]).await.close().await;
    std::fs::write(bench.inside("told"), NEW).unwrap();
    let servers = bench.open(vec![settings()]).await;
    assert_eq!(
        servers.test(None).await[0]
            .result
            .as_ref()
            .unwrap()
            .tools
            .iter()
            .filter(|tool| tool.state == ToolState::Changed)
            .count(),
        1
    );
    servers.close().await;
    std::fs::remove_file(bench.inside("told")).unwrap();
    let servers = bench.open(vec![settings()]).await;
    assert_eq!(state_of(&servers, "s_echo"), ToolState::Changed);
    servers.test(Some("s")).await;
    servers.close().await;
    let servers = bench.open(vec![settings()]).await;
    assert_eq!(state_of(&servers, "s_echo"), ToolState::Pinned);
}

#[tokio::test]
async fn a_change_after_the_user_looked_is_not_accepted_and_accepted_changes_stay_accepted() {
    let bench = Bench::new();
    let settings = || bench.server(&["--describe-file", "told"]);
    bench.open(vec![settings()]).await.close().await;
    std::fs::write(bench.inside("told"), NEW).unwrap();
    let serving = bench.open(vec![settings()]).await;
    serving.test(None).await;
    let seen = serving.pending("s").unwrap();
    std::fs::write(bench.inside("told"), "Something else again.").unwrap();
    serving.test(None).await;
    let accepting = bench.open(vec![settings()]).await;
    assert!(accepting.trust("s", &seen).unwrap().is_empty());
    let seen = accepting.pending("s").unwrap();
    assert_eq!(seen[0].now.description, "Something else again.");

    // A process that read the pins earlier sees what was accepted in the meantime.
    assert_eq!(accepting.trust("s", &seen).unwrap(), ["echo"]);
    serving.test(None).await;
    assert!(accepting.pending("s").unwrap().is_empty());
    serving.close().await;
    let servers = bench.open(vec![settings()]).await;
    assert_eq!(state_of(&servers, "s_echo"), ToolState::Pinned);
}

#[tokio::test]
async fn an_announced_change_takes_effect_on_the_next_call() {
    let bench = Bench::new();
    let servers = bench.opened(&[]).await;
    assert!(
        call(&servers, "s_echo", json!({ "text": "x" }))
            .await
            .is_ok()
    );
    assert!(call(&servers, "s_change", json!({})).await.is_ok());
    let error = call(&servers, "s_echo", json!({ "text": "x" }))
        .await
        .unwrap_err()
        .message;
    assert!(
        error.contains("changed its tool `echo` since it was pinned"),
        "{error}"
    );
    servers.close().await;
}

#[tokio::test]
async fn an_added_tool_is_new_and_a_removed_one_is_no_longer_offered() {
    let bench = Bench::new();
    let mut settings = bench.server(&[]);
    bench.open(vec![settings.clone()]).await.close().await;
    // The settings are the same, but the program is another.
    let program = std::fs::read_to_string(bench.inside("server.py")).unwrap();
    let later = program.replace(
        "default=[], help=\"an additional tool\"",
        "default=[\"later\"], help=\"an additional tool\"",
    );
    assert_ne!(program, later);
    std::fs::write(bench.inside("server.py"), &later).unwrap();
    let servers = bench.open(vec![settings.clone()]).await;
    servers.test(None).await;
    servers.close().await;
    let servers = bench.open(vec![settings.clone()]).await;
    assert_eq!(state_of(&servers, "s_later"), ToolState::New);
    servers.close().await;
    std::fs::write(bench.inside("server.py"), &program).unwrap();
    settings.tools = Some(vec!["later".to_owned()]);
    let servers = bench.open(vec![settings]).await;
    let error = call(&servers, "s_later", json!({}))
        .await
        .unwrap_err()
        .message;
    assert_eq!(error, "the MCP server `s` no longer has the tool `later`");
    servers.close().await;
    let servers = bench.opened(&[]).await;
    assert!(
        servers
            .tools()
            .iter()
            .all(|tool| tool.spec().name != "s_later")
    );
}

#[tokio::test]
async fn invalid_or_modified_pins_are_reported_and_replaced() {
    let bench = Bench::new();
    bench.opened(&[]).await.close().await;
    let text = std::fs::read_to_string(bench.own("mcp.json")).unwrap();
    for (number, broken) in [
        "{",
        &text.replace("Gives the text back.", "Obey."),
        &text.replace("\"version\": 1", "\"version\": 9"),
    ]
    .into_iter()
    .enumerate()
    {
        std::fs::write(bench.own("mcp.json"), broken).unwrap();
        let servers = bench.opened(&[]).await;
        let warnings = servers.warnings().join("\n");
        assert!(warnings.contains("cannot be read"), "{warnings}");
        assert_eq!(starts(&bench), number + 2);
        assert_eq!(servers.tools().len(), 20);
        servers.close().await;
        assert!(bench.opened(&[]).await.warnings().is_empty());
    }
}
