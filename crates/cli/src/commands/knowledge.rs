//! `lango knowledge`: adds documents to the library, searches, lists and removes them.

use crate::args::KnowledgeCommand;
use crate::exit::Exit;
use crate::screen::{self, Layout, ProgressBar, age, count, one_line};
use lango::app::App;
use lango::app::Failure;
use lango::app::knowledge::Knowledge;
use lango::app::knowledge::{document_json, hit_json};
use lango_core::text::sanitize;
use lango_core::{BoxLease, BusyPolicy, Clock, SessionId, StoreError, Trust};
use lango_engine::SystemClock;
use lango_knowledge::{AddOptions, AddProgress, AddReport, LibraryQuery, LibrarySearchMode};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Runs the command.
pub(super) async fn knowledge(
    config: Vec<String>,
    command: Option<KnowledgeCommand>,
) -> Result<Exit, Failure> {
    let app = App::load(config).await?;
    let Some(known) = &app.knowledge else {
        return Err(Failure::config("there is no library"));
    };
    match command.unwrap_or_default() {
        KnowledgeCommand::Add { paths, trust, json } => {
            check_embedder(known)?;
            let _lease = lease_library(&app).await?;
            add(&app, known, paths, trust, json).await?;
        }
        KnowledgeCommand::Search {
            query,
            json,
            limit,
            mode,
        } => search(&app, known, &query.join(" "), mode.into(), limit, json).await?,
        KnowledgeCommand::List { json, limit } => list(&app, known, limit, json).await?,
        KnowledgeCommand::Forget { name } => {
            let forgotten = known.library.forget(&app.user(), &absolute(&name)).await;
            let forgotten = match forgotten {
                Err(_) => known.library.forget(&app.user(), &name).await?,
                Ok(forgotten) => forgotten,
            };
            screen::print(&format!(
                "forgot {} ({})",
                count(forgotten.documents as u64, "document"),
                count(forgotten.chunks, "chunk")
            ))?;
        }
        KnowledgeCommand::Reindex => {
            check_embedder(known)?;
            let _lease = lease_library(&app).await?;
            let bar = ProgressBar::new();
            let show = |done: usize| bar.show(&format!("{done} chunks"));
            let report = known.library.reindex(&show).await?;
            bar.clear();
            let embedded = count(report.embedded as u64, "chunk");
            screen::print(&format!("recomputed the vectors of {embedded}"))?;
        }
    }
    Ok(Exit::Ok)
}

/// Fails if an embedding model is configured but unavailable: documents added without vectors would have to be
/// indexed again.
fn check_embedder(known: &Knowledge) -> Result<(), Failure> {
    match &known.warning {
        None => Ok(()),
        Some(warning) => Err(Failure::config(warning.clone())
            .next("fix embedding.provider and embedding.model, or use no vectors: -c embedding.provider=none")),
    }
}

/// Acquires the library's lease, so that changes run one at a time. Waits until a change in progress has finished.
async fn lease_library(app: &App) -> Result<BoxLease, Failure> {
    let store = app.sessions().await?.store;
    let library = SessionId::from("library");
    match store.acquire(&library, BusyPolicy::Refuse).await {
        Err(StoreError::Busy { .. }) => {
            screen::say("another process is changing the library; waiting for it");
        }
        lease => return Ok(lease?),
    }
    Ok(store
        .acquire(&library, BusyPolicy::Wait { max_waiters: 100 })
        .await?)
}

async fn add(
    app: &App,
    known: &Knowledge,
    paths: Vec<PathBuf>,
    trust: bool,
    as_json: bool,
) -> Result<(), Failure> {
    let options = AddOptions {
        trust: if trust {
            Trust::Trusted
        } else {
            Trust::Untrusted
        },
        ..AddOptions::default()
    };
    let bar = ProgressBar::new();
    let show = |progress: AddProgress<'_>| {
        let AddProgress {
            done,
            total,
            source,
            ..
        } = progress;
        let share = screen::progress_share(done as u64, total as u64);
        bar.show(&format!("{share}  {}", one_line(source, 50)));
    };
    let report = known
        .library
        .add(&app.user(), &paths, &options, &show)
        .await;
    bar.clear();
    let report = report?;
    if as_json {
        return Ok(screen::print(&screen::json(
            &report_json(&report),
            Layout::Line,
        )?)?);
    }
    screen::print(&format!(
        "{} new, {} changed, {} unchanged, {} removed, {} skipped ({} written)",
        report.added,
        report.updated,
        report.unchanged,
        report.removed,
        report.skipped,
        count(report.chunks as u64, "chunk")
    ))?;
    for skipped in &report.reasons {
        let line = format!("skipped: {}: {}", skipped.source, skipped.reason);
        screen::say(&line);
    }
    Ok(())
}

fn report_json(report: &AddReport) -> Value {
    let reasons: Vec<Value> = report
        .reasons
        .iter()
        .map(|skipped| json!({ "source": skipped.source, "reason": skipped.reason }))
        .collect();
    json!({
        "added": report.added,
        "updated": report.updated,
        "unchanged": report.unchanged,
        "removed": report.removed,
        "skipped": report.skipped,
        "chunks": report.chunks,
        "reasons": reasons,
    })
}

async fn search(
    app: &App,
    known: &Knowledge,
    text: &str,
    mode: LibrarySearchMode,
    limit: usize,
    as_json: bool,
) -> Result<(), Failure> {
    let query = LibraryQuery {
        text: text.to_owned(),
        limit,
        collections: Vec::new(),
        mode,
    };
    if mode == LibrarySearchMode::Vector {
        check_embedder(known)?;
    }
    let mut results = known.library.search(&app.user(), None, &query).await?;
    results.notes.extend(known.warning.clone());
    if as_json {
        let hits: Vec<Value> = results.hits.iter().map(hit_json).collect();
        let all = json!({ "hits": hits, "notes": results.notes });
        return Ok(screen::print(&screen::json(&all, Layout::Indented)?)?);
    }
    for note in &results.notes {
        screen::say(note);
    }
    if results.hits.is_empty() {
        return Ok(screen::print(
            "nothing found; `lango knowledge list` shows what was added",
        )?);
    }
    for hit in &results.hits {
        let mark = match hit.source.trust {
            Trust::Trusted => "",
            Trust::Untrusted => " [untrusted]",
        };
        let line = format!(
            "{:.4}  {}:{}{mark}\n    {}",
            hit.score,
            hit.source.name,
            hit.position,
            one_line(&hit.snippet, 160)
        );
        screen::print(&sanitize(&line))?;
    }
    Ok(())
}

async fn list(app: &App, known: &Knowledge, limit: usize, as_json: bool) -> Result<(), Failure> {
    let documents = known
        .library
        .list(&app.user(), limit.saturating_add(1))
        .await?;
    let shown = &documents[..documents.len().min(limit)];
    if as_json {
        let rows: Vec<Value> = shown.iter().map(document_json).collect();
        return Ok(screen::print(&screen::json(&rows, Layout::Indented)?)?);
    }
    if shown.is_empty() {
        return Ok(screen::print(
            "the library is empty; add documents with `lango knowledge add PATH`",
        )?);
    }
    let now = SystemClock.now();
    for document in shown {
        let line = format!(
            "{:>6}  {:>10}  {:>10}  {}  {}",
            document.id,
            age(document.added, now),
            count(document.chunks, "chunk"),
            document.collection,
            document.source.name
        );
        screen::print(&sanitize(&line))?;
    }
    if documents.len() > limit {
        screen::say("there are more; use --limit to see them");
    }
    Ok(())
}

/// Returns a file's name as stored in the library.
fn absolute(name: &str) -> String {
    let path = std::path::absolute(name).unwrap_or_default();
    let path = path.canonicalize().unwrap_or(path);
    path.to_string_lossy().into_owned()
}
