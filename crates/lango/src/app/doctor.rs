//! Checks everything that a turn needs. Leaves nothing behind.

mod folders;
mod model;
mod vault;

use crate::app::App;
use crate::app::agents::skipped_agents;
use crate::app::failure::{Failure, FailureKind};
use crate::app::mcp;
use crate::app::payment::PaymentHealth;
use crate::app::{egress, web};
use lango_config::StoreLocation;
use lango_config::redact;
use lango_core::SessionQuery;
use lango_sandbox::SandboxStrength;
use lango_store::VectorSearch;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The result of one check.
pub struct Finding {
    pub name: &'static str,
    pub status: CheckStatus,
    pub detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckStatus {
    Passed,
    /// The feature is not available, and nothing else needs it.
    Absent,
    Warning,
    Failed,
}

impl CheckStatus {
    fn of(has_passed: bool) -> Self {
        if has_passed {
            Self::Passed
        } else {
            Self::Failed
        }
    }
}

/// Whether a check may call the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelCheck {
    /// Make one short call.
    Call,
    /// Call nothing, so that nothing is spent.
    Skip,
}

/// Runs all checks but the call to the model, and returns their results as JSON.
pub async fn report(config: Vec<String>) -> Value {
    rows(&run_checks(config, ModelCheck::Skip).await.0)
}

/// Returns the results as JSON.
pub fn rows(findings: &[Finding]) -> Value {
    let rows = findings.iter().map(|finding| {
        json!({
            "name": finding.name,
            "ok": finding.status != CheckStatus::Failed,
            "warning": finding.status == CheckStatus::Warning,
            "absent": finding.status == CheckStatus::Absent,
            "detail": finding.detail,
        })
    });
    rows.collect()
}

/// Runs all checks. Returns their results without secrets, and the kind of failure if one of them failed.
pub async fn run_checks(
    config: Vec<String>,
    model_check: ModelCheck,
) -> (Vec<Finding>, FailureKind) {
    let (findings, kind) = match App::load(config).await {
        Ok(app) => (examine(&app, model_check).await, FailureKind::Config),
        Err(failure) => {
            let finding = Finding {
                name: "configuration",
                status: CheckStatus::Failed,
                detail: failure.to_string(),
            };
            (vec![finding], failure.kind)
        }
    };
    let redacted = findings.into_iter().map(|finding| Finding {
        detail: redact(&finding.detail).into_owned(),
        ..finding
    });
    (redacted.collect(), kind)
}

async fn examine(app: &App, model_check: ModelCheck) -> Vec<Finding> {
    let finding = |name, status, detail: String| Finding {
        name,
        status,
        detail,
    };
    let passed = |name, detail| finding(name, CheckStatus::Passed, detail);
    let optional = |name, is_available: bool, detail| {
        let status = if is_available {
            CheckStatus::Passed
        } else {
            CheckStatus::Absent
        };
        finding(name, status, detail)
    };
    let paths = &app.loaded.paths;
    let file = |path: &Path| {
        if path.exists() {
            path.display().to_string()
        } else {
            format!("{} (does not exist, optional)", path.display())
        }
    };
    let project = paths
        .project_file
        .as_deref()
        .map_or("no lango.toml in this project".to_owned(), file);
    let mut findings = vec![
        passed("lango", env!("CARGO_PKG_VERSION").to_owned()),
        passed("user file", file(&paths.user_file)),
        passed("project file", project),
        examine_keys(app),
    ];
    findings.extend(folders::examine(app));
    findings.extend([
        examine_workspace(app),
        examine_sandbox(app).await,
        passed("reach", describe_reach(app)),
        passed("egress", egress::describe(&app.egress)),
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
        model::examine(app, model_check).await,
        passed("agents", describe_agents(app)),
    ]);
    let servers = app.mcp.servers.overview().iter().map(|server| Finding {
        name: "MCP server",
        status: CheckStatus::of(server.problem.is_none()),
        detail: format!("{}: {}", server.id, mcp::status(server)),
    });
    findings.extend(servers);
    findings.extend(
        app.warnings()
            .into_iter()
            .chain(app.wildcard_rule_warnings())
            .map(|detail| finding("warning", CheckStatus::Warning, detail)),
    );
    let store = examine_store(app).await;
    let has_opened = store.status == CheckStatus::Passed;
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

/// Opens and reads the database. If it does not exist yet, only reports its location.
async fn examine_store(app: &App) -> Finding {
    let place = &app.loaded.settings.session.store;
    // A first turn on a full disk leaves an empty file.
    if let StoreLocation::Sqlite(path) = place
        && path
            .metadata()
            .map_or(true, |file| file.is_file() && file.len() == 0)
    {
        let detail = format!("{} (created by the first turn)", path.display());
        return Finding {
            name: "sessions",
            status: CheckStatus::Passed,
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
            status: CheckStatus::Passed,
            detail: match place {
                StoreLocation::Sqlite(path) => path.display().to_string(),
                StoreLocation::Postgres(_) => place.to_string(),
            },
        },
        Err(failure) => Finding {
            name: "sessions",
            status: CheckStatus::Failed,
            detail: failure.to_string(),
        },
    }
}

/// Checks whether agents can pay, by querying the chain.
async fn examine_payments(app: &App) -> Finding {
    let (health, detail) = app.payments.describe().await;
    let status = match health {
        PaymentHealth::Working => CheckStatus::Passed,
        PaymentHealth::Absent => CheckStatus::Absent,
        PaymentHealth::Locked => CheckStatus::Warning,
        PaymentHealth::Broken => CheckStatus::Failed,
    };
    Finding {
        name: "payments",
        status,
        detail,
    }
}

/// Reports how PostgreSQL finds the nearest vectors.
async fn examine_vectors(app: &App) -> Finding {
    let found = match app.existing_store() {
        Ok(store) => store.vector_search().await.map_err(Failure::from),
        Err(failure) => Err(failure),
    };
    let (has_passed, detail) = match found {
        Ok(VectorSearch::Indexed { by }) => (true, by),
        Ok(VectorSearch::Scan { reason: None }) => (true, "plain".to_owned()),
        Ok(VectorSearch::Scan { reason: Some(why) }) => (true, format!("plain ({why})")),
        Err(failure) => (false, failure.to_string()),
    };
    Finding {
        name: "vectors",
        status: CheckStatus::of(has_passed),
        detail,
    }
}

fn examine_workspace(app: &App) -> Finding {
    let path = app.workspace.path();
    let (status, detail) = match app.check_workspace() {
        Err(failure) => (CheckStatus::Failed, failure.to_string()),
        Ok(()) => match folders::probe(path) {
            Ok(()) => (CheckStatus::Passed, path.display().to_string()),
            Err(error) => (
                CheckStatus::Warning,
                format!(
                    "{}: agents cannot write here: {error}\nnext: make it writable, or start lango in another folder",
                    path.display()
                ),
            ),
        },
    };
    Finding {
        name: "workspace",
        status,
        detail,
    }
}

/// Reports the keys that `lango setup` stored outside of the vault, without their values.
fn examine_keys(app: &App) -> Finding {
    let stored = app.credentials.stored();
    let path = stored.path().display();
    let (has_passed, detail) = match stored.check() {
        Err(failure) => (false, failure.to_string()),
        Ok(()) => {
            let providers = stored.providers();
            let detail = match providers.as_slice() {
                [] => format!("{path} (does not exist, optional)"),
                providers => format!("{path}: {}", providers.join(", ")),
            };
            (true, detail)
        }
    };
    Finding {
        name: "keys",
        status: CheckStatus::of(has_passed),
        detail,
    }
}

/// Runs the sandbox's self-test, ignoring any cached result.
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
    let (has_passed, detail) = match &test.strength {
        SandboxStrength::Full => (true, format!("full ({tried} checks run)\n{limits}")),
        SandboxStrength::Degraded { missing } => (
            false,
            format!("degraded, so every command needs approval: {missing}{failed}\n{limits}"),
        ),
        SandboxStrength::None { why } => (
            false,
            format!("none, so commands cannot run: {why}{failed}"),
        ),
    };
    Finding {
        name: "sandbox",
        status: CheckStatus::of(has_passed),
        detail,
    }
}

/// Describes what agents can access besides the workspace.
fn describe_reach(app: &App) -> String {
    let policy = app.workspace.policy();
    let list = |paths: &[PathBuf]| match paths {
        [] => "nothing more".to_owned(),
        paths => {
            let paths = paths.iter().map(|path| {
                if path.exists() {
                    path.display().to_string()
                } else {
                    format!("{} (does not exist)", path.display())
                }
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

fn describe_agents(app: &App) -> String {
    let names: Vec<&str> = app
        .tree
        .agents
        .iter()
        .map(|agent| agent.name.as_str())
        .collect();
    let absent = skipped_agents(&app.tree);
    match (names.is_empty(), absent.is_empty()) {
        (true, _) => format!("only {}", app.tree.root.name),
        (false, true) => names.join(", "),
        (false, false) => format!("{}; unavailable: {}", names.join(", "), absent.join("; ")),
    }
}
