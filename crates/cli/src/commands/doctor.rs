//! `lango doctor`: looks at everything a turn needs, and changes nothing.

mod vault;

use super::mcp;
use crate::app::App;
use crate::config::StoreLocation;
use crate::exit::{Exit, Failure};
use crate::markdown::sanitize;
use crate::payment::PaymentHealth;
use crate::redact::redact;
use crate::screen::{self, Layout};
use crate::{egress, web};
use lango_core::SessionQuery;
use lango_models::Offline;
use lango_sandbox::Strength;
use lango_store::VectorSearch;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// One thing that was looked at.
struct Finding {
    name: &'static str,
    mark: Mark,
    detail: String,
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Well,
    /// It is not here, and nothing else needs it.
    Absent,
    Warning,
    Faulty,
}

impl Mark {
    fn of(is_well: bool) -> Self {
        if is_well { Self::Well } else { Self::Faulty }
    }

    fn sign(self) -> char {
        match self {
            Self::Well => '✓',
            Self::Absent => '–',
            Self::Warning => '!',
            Self::Faulty => '✗',
        }
    }
}

/// Runs the command.
pub async fn doctor(config: Vec<String>, as_json: bool) -> Result<Exit, Failure> {
    let (findings, exit) = all(config).await;
    for finding in findings.iter().filter(|_| !as_json) {
        let sign = finding.mark.sign();
        // What follows on further lines stands below the first.
        let detail = finding.detail.replace('\n', "\n                 ");
        let line = format!("{sign} {:<14} {detail}", finding.name);
        screen::print(&sanitize(&line))?;
    }
    if as_json {
        screen::print(&screen::json(&rows(&findings), Layout::Indented)?)?;
    }
    let is_faulty = |finding: &Finding| finding.mark == Mark::Faulty;
    Ok(if findings.iter().any(is_faulty) {
        exit
    } else {
        Exit::Ok
    })
}

/// Runs all checks and returns their results as JSON.
pub async fn report(config: Vec<String>) -> Value {
    rows(&all(config).await.0)
}

fn rows(findings: &[Finding]) -> Value {
    let rows = findings.iter().map(|finding| {
        json!({
            "name": finding.name,
            "ok": finding.mark != Mark::Faulty,
            "warning": finding.mark == Mark::Warning,
            "absent": finding.mark == Mark::Absent,
            "detail": finding.detail,
        })
    });
    rows.collect()
}

/// Runs all checks. Returns their results without secrets, and the exit code if one of them failed.
async fn all(config: Vec<String>) -> (Vec<Finding>, Exit) {
    let (findings, exit) = match App::load(config).await {
        Ok(app) => (examine(&app).await, Exit::Config),
        Err(failure) => {
            let finding = Finding {
                name: "configuration",
                mark: Mark::Faulty,
                detail: failure.to_string(),
            };
            (vec![finding], failure.exit)
        }
    };
    let redacted = findings.into_iter().map(|finding| Finding {
        detail: redact(&finding.detail).into_owned(),
        ..finding
    });
    (redacted.collect(), exit)
}

async fn examine(app: &App) -> Vec<Finding> {
    let finding = |name, mark, detail: String| Finding { name, mark, detail };
    let well = |name, detail| finding(name, Mark::Well, detail);
    let optional = |name, is_here: bool, detail| {
        let mark = if is_here { Mark::Well } else { Mark::Absent };
        finding(name, mark, detail)
    };
    let paths = &app.loaded.paths;
    let file = |path: &Path| match path.exists() {
        true => path.display().to_string(),
        false => format!("{} (none, not needed)", path.display()),
    };
    let project = paths
        .project_file
        .as_deref()
        .map_or("no lango.toml here".to_owned(), file);
    let mut findings = vec![
        well("lango", env!("CARGO_PKG_VERSION").to_owned()),
        well("user file", file(&paths.user_file)),
        well("project file", project),
        examine_workspace(app),
        examine_sandbox(app).await,
        well("reach", describe_reach(app)),
        well("egress", egress::describe(&app.egress)),
        optional(
            "browser",
            app.browser.is_ready(),
            app.browser.describe(&app.launcher).await,
        ),
        optional(
            "web search",
            web::is_set_up(&app.loaded.settings.search),
            web::describe(&app.loaded.settings.search),
        ),
        examine_model(app).await,
        well("agents", describe_agents(app)),
    ];
    let servers = app.mcp.servers.overview().iter().map(|server| Finding {
        name: "MCP server",
        mark: Mark::of(server.problem.is_none()),
        detail: format!("{}: {}", server.id, mcp::status(server)),
    });
    findings.extend(servers);
    findings.extend(
        app.warnings()
            .into_iter()
            .chain(app.loose_rules())
            .map(|detail| finding("warning", Mark::Warning, detail)),
    );
    let store = examine_store(app).await;
    let has_opened = store.mark == Mark::Well;
    findings.push(store);
    if has_opened {
        findings.extend(vault::examine(app).await);
        findings.push(examine_payments(app).await);
    }
    if has_opened
        && matches!(
            app.loaded.settings.session.store,
            StoreLocation::Postgres(_)
        )
    {
        findings.push(examine_vectors(app).await);
    }
    findings
}

/// A database that is there is opened and read; one that is not yet is only named.
async fn examine_store(app: &App) -> Finding {
    let place = &app.loaded.settings.session.store;
    // An empty file is what a first turn leaves that found no room.
    if let StoreLocation::Sqlite(path) = place
        && path
            .metadata()
            .map_or(true, |file| file.is_file() && file.len() == 0)
    {
        let detail = format!("{} (made with the first turn)", path.display());
        return Finding {
            name: "sessions",
            mark: Mark::Well,
            detail,
        };
    }
    let listed = match app.sessions().await {
        Ok(sessions) => sessions
            .catalog
            .list(&app.user(), SessionQuery::recent(1))
            .await
            .map_err(Failure::from),
        Err(failure) => Err(failure),
    };
    match listed {
        Ok(_) => Finding {
            name: "sessions",
            mark: Mark::Well,
            detail: match place {
                StoreLocation::Sqlite(path) => path.display().to_string(),
                StoreLocation::Postgres(_) => place.to_string(),
            },
        },
        Err(failure) => Finding {
            name: "sessions",
            mark: Mark::Faulty,
            detail: failure.to_string(),
        },
    }
}

/// Whether agents can pay, by asking the chain.
async fn examine_payments(app: &App) -> Finding {
    let (health, detail) = app.payments.describe().await;
    let mark = match health {
        PaymentHealth::Well => Mark::Well,
        PaymentHealth::Absent => Mark::Absent,
        PaymentHealth::Locked => Mark::Warning,
        PaymentHealth::Faulty => Mark::Faulty,
    };
    Finding {
        name: "payments",
        mark,
        detail,
    }
}

/// How a server finds the nearest vectors.
async fn examine_vectors(app: &App) -> Finding {
    let found = match app.existing_store() {
        Ok(store) => store.vector_search().await.map_err(Failure::from),
        Err(failure) => Err(failure),
    };
    let (is_well, detail) = match found {
        Ok(VectorSearch::Indexed { by }) => (true, by),
        Ok(VectorSearch::Plain { why: None }) => (true, "plain".to_owned()),
        Ok(VectorSearch::Plain { why: Some(why) }) => (true, format!("plain ({why})")),
        Err(failure) => (false, failure.to_string()),
    };
    Finding {
        name: "vectors",
        mark: Mark::of(is_well),
        detail,
    }
}

fn examine_workspace(app: &App) -> Finding {
    let (is_well, detail) = match app.check_workspace() {
        Ok(()) => (true, app.workspace.path().display().to_string()),
        Err(failure) => (false, failure.to_string()),
    };
    Finding {
        name: "workspace",
        mark: Mark::of(is_well),
        detail,
    }
}

/// Tries the sandbox for real, whatever was remembered.
async fn examine_sandbox(app: &App) -> Finding {
    let test = app.launcher.self_test().await;
    let limits = format!(
        "limits: processes by {}; memory by {}; disk by {}",
        test.limits.processes, test.limits.memory, test.limits.disk
    );
    let failed = test.checks.iter().filter(|check| !check.passed);
    let failed: String = failed
        .map(|check| format!("\n✗ {}: {}", check.name, check.detail))
        .collect();
    let tried = test.checks.len();
    let (is_well, detail) = match &test.strength {
        Strength::Full => (true, format!("full ({tried} checks tried)\n{limits}")),
        Strength::Degraded { missing } => (
            false,
            format!("degraded, so every command is asked for: {missing}{failed}\n{limits}"),
        ),
        Strength::None { why } => (
            false,
            format!("none, so commands cannot run: {why}{failed}"),
        ),
    };
    Finding {
        name: "sandbox",
        mark: Mark::of(is_well),
        detail,
    }
}

/// What agents can touch besides the workspace.
fn describe_reach(app: &App) -> String {
    let policy = app.workspace.policy();
    let list = |paths: &[PathBuf]| match paths {
        [] => "nothing more".to_owned(),
        paths => {
            let paths = paths.iter().map(|path| match path.exists() {
                true => path.display().to_string(),
                false => format!("{} (not there)", path.display()),
            });
            paths.collect::<Vec<_>>().join(", ")
        }
    };
    let network = egress::describe_access(&app.loaded.settings.tools.exec.network);
    format!(
        "read: {}; write: {}; network: {network}",
        list(&policy.read),
        list(&policy.write)
    )
}

async fn examine_model(app: &App) -> Finding {
    let (is_well, detail) = match app.choose_model().await {
        Ok(choice) if choice.model.name() == Offline::NAME => (
            true,
            format!("{} (built-in rules, not an AI model)", Offline::NAME),
        ),
        Ok(choice) => (true, format!("{} ({})", choice.model.name(), choice.reason)),
        Err(failure) => (false, failure.to_string()),
    };
    Finding {
        name: "model",
        mark: Mark::of(is_well),
        detail,
    }
}

fn describe_agents(app: &App) -> String {
    let names: Vec<&str> = app
        .tree
        .agents
        .iter()
        .map(|agent| agent.name.as_str())
        .collect();
    let absent = screen::absences(&app.tree);
    match (names.is_empty(), absent.is_empty()) {
        (true, _) => format!("{} alone", app.tree.root.name),
        (false, true) => names.join(", "),
        (false, false) => format!("{}; not here: {}", names.join(", "), absent.join("; ")),
    }
}
