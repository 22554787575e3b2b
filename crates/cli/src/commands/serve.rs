//! `lango serve` and `lango web`: the server for other programs and for browsers. Programs use the A2A protocol or
//! the HTTP API; browsers use the page, which `lango web` also opens.

use crate::args::ServeArguments;
use crate::exit::Exit;
use crate::screen::{self, one_line};
use lango::app::Failure;
use lango::app::server::{Endpoint, PreparedServer, new_link};
use lango::app::signals::{StartSignals, StopSignals};
use lango::app::vault::{key_settings, secret_of};
use lango::app::{App, Persistence};
use lango_a2a::server::RecoveryReport;
use lango_config::Settings;
use lango_engine::InterruptedTurnPolicy;
use lango_models::OfflineModel;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

/// Why the server is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// For programs: no page is opened.
    Serve,
    /// For a user: prints a sign-in link and, if there is a desktop, opens it.
    Web,
    /// For a user: only prints the sign-in link.
    WebWithoutBrowser,
}

/// Runs the command.
pub(super) async fn serve_command(
    config: Vec<String>,
    arguments: ServeArguments,
    purpose: Purpose,
) -> Result<Exit, Failure> {
    let mut start = StartSignals::listen()?;
    let mut app = start
        .guard(App::load_for(config.clone(), Persistence::Everything))
        .await?;
    start.guard(app.connect()).await?;
    let (host, port) = (arguments.host, arguments.port);
    let endpoint = start.guard(Endpoint::of(&app, host, port)).await?;
    let interrupted = if arguments.no_recovery {
        InterruptedTurnPolicy::Ask
    } else {
        InterruptedTurnPolicy::Resume
    };
    let prepared = start
        .guard(PreparedServer::open(app, endpoint, interrupted))
        .await?;
    prepared.choice.warn();
    let vaults = locked_vaults(&prepared.app).await;
    let banner = banner(&prepared, vaults, purpose);
    let owner = prepared.app.user();
    let database = Arc::clone(&prepared.app.storage.database);
    let server = prepared.start(config).await?;
    let mut signals = StopSignals::listen()?;
    screen::say(&banner);
    if purpose != Purpose::Serve {
        let link = new_link(&database, &owner, &server.url).await?;
        let shown = crate::logs::link_to_show(&link);
        screen::say(&format!(
            "page    {shown} (signs in one browser; valid for 10 minutes)"
        ));
        if purpose == Purpose::Web {
            open_browser(&link);
        }
    }
    report_recovered(&server.recovered);
    let grace = arguments.grace.0;
    let handle = server.handle();
    let stop = async {
        signals.next().await;
        screen::say("stopping after running tasks finish; press ctrl-c again to stop now");
        tokio::select! {
            () = handle.stop(grace) => {}
            _ = signals.next() => handle.stop(Duration::ZERO).await,
        }
    };
    server.run(stop).await?;
    screen::say("stopped");
    Ok(Exit::Ok)
}

/// Opens a link in the desktop's browser, if there is a desktop. Failure is ignored, because the link has been
/// printed.
fn open_browser(link: &str) {
    let has_desktop = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    if has_desktop || cfg!(target_os = "macos") {
        let program = if cfg!(target_os = "macos") {
            "open"
        } else {
            "xdg-open"
        };
        let mut command = tokio::process::Command::new(program);
        let command = command.arg(link).stdin(Stdio::null());
        let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    }
}

/// Describes the vaults that are needed but locked: what does not work, and how to unlock them. A running server
/// never asks for a passphrase.
async fn locked_vaults(app: &App) -> Vec<String> {
    let settings = &app.loaded.settings;
    let mut lines = Vec::new();
    for user in app.users() {
        let mut effects = Vec::new();
        if user == app.user() && names_secrets(settings) {
            effects.push("keys and tokens with `secret:NAME` in the configuration are not used");
        }
        if user == settings.server.user {
            effects.push("agents cannot use its secrets");
        }
        if effects.is_empty() {
            continue;
        }
        let effects = effects.join(", and ");
        lines.push(match app.vaults.locked_vault(&user).await {
            Ok(None) => continue,
            Ok(Some(locked)) => {
                let (status, next) = (locked.status(), locked.next_step());
                format!("vault   {status}; {effects} until it is unlocked: {next}")
            }
            Err(failure) => format!("vault   {}: {effects}", failure.message()),
        });
    }
    lines
}

/// Returns whether the configuration names a secret of the vault as a key or token.
fn names_secrets(settings: &Settings) -> bool {
    let named = key_settings(settings);
    named
        .iter()
        .any(|setting| secret_of(setting.value).is_some())
}

/// Prints what became of the tasks of an earlier run.
fn report_recovered(recovered: &RecoveryReport) {
    if recovered.resumed > 0 {
        let tasks = screen::count(recovered.resumed as u64, "task");
        screen::say(&format!("resumed from an earlier run: {tasks}"));
    }
    if recovered.settled > 0 {
        let tasks = screen::count(recovered.settled as u64, "task");
        screen::say(&format!("ended or waiting since an earlier run: {tasks}"));
    }
    if recovered.skipped > 0 {
        let tasks = screen::count(recovered.skipped as u64, "task");
        screen::say(&format!(
            "skipped for now, or running on another replica: {tasks}"
        ));
    }
    if !recovered.damaged.is_empty() {
        let ids = recovered.damaged.join(", ");
        screen::say(&format!("warning tasks that cannot be read: {ids}"));
    }
}

/// Returns the opening text of `lango serve`: address, token, model, agents, locked vaults and warnings.
fn banner(server: &PreparedServer, vaults: Vec<String>, purpose: Purpose) -> String {
    let (app, endpoint, address) = (&server.app, &server.endpoint, server.address);
    let model = server.choice.model.name();
    let url = server.url();
    let mut lines = vec![
        format!(
            "lango {} serves A2A 1.0, its API and its page at {url}",
            env!("CARGO_PKG_VERSION")
        ),
        format!("card    {url}/.well-known/agent-card.json"),
    ];
    if endpoint.public_url.is_some() {
        lines.push(format!("listens on http://{address}"));
    }
    if purpose == Purpose::Serve {
        lines.push(format!(
            "page    {url}/ (`lango tokens link --url {url}` prints a link that signs a browser in)"
        ));
    }
    lines.push(format!(
        "api     {url}/api/openapi.json (`lango tokens create NAME` creates a token for it)"
    ));
    lines.push(match &endpoint.token {
        Some(token) => format!(
            "token   for A2A: {} (send it as `Authorization: Bearer …`)",
            token.location
        ),
        None => "token   none: every program on this machine can call it".to_owned(),
    });
    lines.push(match model {
        OfflineModel::NAME => format!("model   {model} - built-in rules, not an AI model"),
        _ => format!("model   {model}"),
    });
    let agents: Vec<&str> = app
        .tree
        .agents
        .iter()
        .map(|agent| agent.name.as_str())
        .collect();
    lines.push(if agents.is_empty() {
        format!("agent   {}", app.tree.root.name)
    } else {
        format!("agents  {}", agents.join(" · "))
    });
    if endpoint.public_url.is_none() && matches!(endpoint.host.as_str(), "0.0.0.0" | "::") {
        lines.push(format!(
            "warning the agent card says {url}, which other machines cannot reach; set server.publicUrl to an address that they can"
        ));
    }
    let notice = app.sandbox_notice();
    lines.extend(notice.map(|notice| format!("sandbox {notice}")));
    lines.extend(vaults);
    let warnings = app.warnings().into_iter();
    lines.extend(warnings.map(|warning| format!("warning {}", one_line(&warning, 300))));
    lines.push("calls that need approval: `lango approvals` · ctrl-c stops".to_owned());
    lines.join("\n")
}
