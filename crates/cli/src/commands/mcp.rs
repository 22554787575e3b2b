//! `lango mcp`: adds, lists, tests and removes MCP servers, logs in to them, and accepts their changes.

mod add;
mod trust;

use crate::args::McpCommand;
use crate::exit::Exit;
use crate::screen::{self, Layout, one_line};
use lango::app::App;
use lango::app::Failure;
use lango::app::mcp::status;
use lango_config::redact_value;
use lango_core::text::sanitize;
use lango_mcp::{ServerOverview, ServerProbe, ToolState};
use serde_json::{Value, json};
use trust::Consent;

/// Returns the command or the address of a server, without secrets.
fn redacted_target(server: &ServerOverview) -> String {
    let words: Vec<&str> = server.target.split(' ').collect();
    match redact_value(words.into()) {
        toml::Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(toml::Value::as_str).collect();
            words.join(" ")
        }
        _ => String::new(),
    }
}

/// Runs the command.
pub(super) async fn mcp(config: Vec<String>, command: Option<McpCommand>) -> Result<Exit, Failure> {
    match command.unwrap_or_default() {
        // A broken server must not prevent its removal, so these two do not load the servers first.
        McpCommand::Add(arguments) => add::add(config, arguments).await,
        McpCommand::Remove { id } => add::remove(config, &id),
        McpCommand::List { json } => list(&App::load(config).await?, json),
        McpCommand::Test { id, json } => {
            let app = App::load(config.clone()).await?;
            app.check_workspace()?;
            if let Some(id) = &id {
                check_known(&app, id)?;
            }
            let probes = app.mcp.servers.test(id.as_deref()).await;
            app.close().await;
            let exit = test(&app, &probes, json)?;
            // Only now the owners of tools that were not known before can be determined.
            say_unowned(&App::load(config).await?);
            Ok(exit)
        }
        McpCommand::Login { id, scope } => {
            let app = App::load(config).await?;
            check_known(&app, &id)?;
            let show = |page: &str| {
                screen::say(&format!(
                    "open this in a browser on this machine, and grant access there:\n\n  {page}\n"
                ));
            };
            let login = app.mcp.servers.login(&id, scope.as_deref(), show).await;
            app.close().await;
            login?;
            screen::print(&format!(
                "logged in to `{id}`; `lango mcp test {id}` shows its tools"
            ))?;
            Ok(Exit::Ok)
        }
        McpCommand::Logout { id } => {
            let app = App::load(config).await?;
            check_known(&app, &id)?;
            let text = if app.mcp.servers.logout(&id)? {
                format!(
                    "deleted the stored access to `{id}`; the server may still accept it until it expires"
                )
            } else {
                format!("no login is stored for `{id}`")
            };
            screen::print(&text)?;
            Ok(Exit::Ok)
        }
        McpCommand::Trust { id, yes, hash } => {
            let app = App::load(config).await?;
            check_known(&app, &id)?;
            let consent = match (yes, hash.is_empty()) {
                (true, _) => Consent::All,
                (false, false) => Consent::Hashes(hash),
                (false, true) => Consent::Prompt,
            };
            trust::trust(&app.mcp.servers, &id, consent)
        }
    }
}

/// Fails if there is no server with this name.
fn check_known(app: &App, id: &str) -> Result<(), Failure> {
    let servers = app.mcp.servers.overview();
    if servers.iter().any(|server| server.id == id) {
        return Ok(());
    }
    let ids: Vec<&str> = servers.iter().map(|server| server.id.as_str()).collect();
    let known = if ids.is_empty() {
        "none is configured".to_owned()
    } else {
        format!("configured are {}", ids.join(", "))
    };
    let message = format!("there is no MCP server `{id}`; {known}");
    Err(Failure::usage(message).next("lango mcp list"))
}

fn list(app: &App, as_json: bool) -> Result<Exit, Failure> {
    let servers = app.mcp.servers.overview();
    if as_json {
        let rows: Vec<Value> = servers.iter().map(|server| row(app, server)).collect();
        screen::print(&screen::json(&rows, Layout::Indented)?)?;
        return Ok(Exit::Ok);
    }
    if servers.is_empty() {
        screen::print("no MCP servers; add one with `lango mcp add`")?;
    }
    for server in servers {
        let line = format!(
            "{}  {}  {}  {}",
            server.id,
            server.transport,
            one_line(&redacted_target(server), 100),
            status(server)
        );
        screen::print(&sanitize(&line))?;
        for tool in &server.tools {
            let owner = app.tree.owner_of(tool.name.as_str());
            let owner = owner.map_or("no agent", |agent| agent.name.as_str());
            let line = format!(
                "  {}  {owner}  {}  {}  {}",
                tool.name,
                state_label(tool.state),
                &tool.hash[..12],
                tool.summary
            );
            screen::print(&sanitize(&line))?;
        }
    }
    for warning in app.mcp.servers.warnings() {
        screen::say(&format!("warning: {warning}"));
    }
    say_unowned(app);
    Ok(Exit::Ok)
}

/// Warns about tools that no agent owns.
fn say_unowned(app: &App) {
    if let Some(warning) = app.unowned_tools_warning() {
        screen::say(&format!("warning: {warning}"));
    }
}

fn state_label(state: ToolState) -> &'static str {
    match state {
        ToolState::Pinned => "pinned",
        ToolState::Changed => "CHANGED",
        ToolState::New => "NEW",
    }
}

fn row(app: &App, server: &ServerOverview) -> Value {
    let tools = server.tools.iter().map(|tool| {
        json!({
            "name": tool.name,
            "tool": tool.tool,
            "owner": app.tree.owner_of(tool.name.as_str()).map(|agent| &agent.name),
            "state": tool.state,
            "hash": tool.hash,
            "summary": tool.summary,
        })
    });
    json!({
        "id": server.id,
        "transport": server.transport,
        "target": redacted_target(server),
        "agent": server.agent,
        "server": server.name,
        "pinned": server.is_pinned,
        "status": status(server),
        "tools": tools.collect::<Vec<_>>(),
    })
}

fn test(app: &App, probes: &[ServerProbe], as_json: bool) -> Result<Exit, Failure> {
    if as_json {
        let rows: Vec<Value> = probes.iter().map(probe_row).collect();
        screen::print(&screen::json(&rows, Layout::Indented)?)?;
    } else if probes.is_empty() {
        return list(app, false);
    } else {
        for probe in probes {
            screen::print(&sanitize(&probe_text(probe)))?;
        }
    }
    Ok(if probes.iter().all(|probe| probe.result.is_ok()) {
        Exit::Ok
    } else {
        Exit::Config
    })
}

fn probe_text(probe: &ServerProbe) -> String {
    let seconds = probe.took.as_secs_f64();
    let mut lines = Vec::new();
    match &probe.result {
        Ok(probed) => {
            lines.push(format!(
                "✓ {}  {}  protocol {}  {}  {seconds:.1} s",
                probe.id,
                probed.name,
                probed.protocol,
                screen::count(probed.tools.len() as u64, "tool"),
            ));
            for tool in &probed.tools {
                let wanted = if tool.is_wanted {
                    ""
                } else {
                    "  (not selected)"
                };
                lines.push(format!(
                    "  {}  {}{wanted}  {}",
                    tool.name,
                    state_label(tool.state),
                    tool.summary
                ));
            }
            lines.extend(probed.notes.iter().map(|note| format!("  note: {note}")));
        }
        Err(error) => {
            lines.push(format!("✗ {}  {error}  ({seconds:.1} s)", probe.id));
            let stderr = probe.stderr.lines().map(|line| format!("  | {line}"));
            lines.extend(stderr);
            if probe.stderr.contains("No such file or directory") {
                let hint = "  next: if the file exists, the sandbox hides it from the program; add the server again with --force and --read FOLDER";
                lines.push(hint.to_owned());
            }
        }
    }
    lines.join("\n")
}

fn probe_row(probe: &ServerProbe) -> Value {
    let mut row = json!({
        "id": probe.id,
        "ok": probe.result.is_ok(),
        "ms": u64::try_from(probe.took.as_millis()).unwrap_or(u64::MAX),
        "stderr": probe.stderr,
    });
    match &probe.result {
        Err(error) => row["error"] = json!(error.to_string()),
        Ok(probed) => {
            let tools = probed.tools.iter().map(|tool| {
                json!({ "name": tool.name, "state": tool.state, "wanted": tool.is_wanted, "summary": tool.summary })
            });
            row["protocol"] = json!(probed.protocol);
            row["server"] = json!(probed.name);
            row["notes"] = json!(probed.notes);
            row["tools"] = tools.collect();
        }
    }
    row
}
