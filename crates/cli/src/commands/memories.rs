//! `lango memory`: lists, searches and forgets the memories of this user.

use super::confirm::{confirm, has_terminal};
use crate::args::MemoryCommand;
use crate::exit::Exit;
use crate::screen::{self, Layout, age, one_line};
use lango::app::{App, Failure};
use lango_core::Clock;
use lango_engine::SystemClock;
use lango_knowledge::{ListedMemory, Memory, MemoryKind, MemorySettings};
use lango_store::archive::WipeOutcome;
use lango_store::{MemoryId, Store};
use std::sync::Arc;

/// Runs the command. It works also while memory is off.
pub(super) async fn memories(
    config: Vec<String>,
    command: Option<MemoryCommand>,
) -> Result<Exit, Failure> {
    let app = App::load(config).await?;
    match command.unwrap_or_default() {
        MemoryCommand::List { json, limit } => {
            let found = match existing(&app).await? {
                Some(memory) => memory.list(&app.user(), limit.saturating_add(1)).await?,
                None => Vec::new(),
            };
            show(&found, limit, json, "no memories yet")?;
        }
        MemoryCommand::Search { text, json, limit } => {
            let text = text.join(" ");
            let found = match existing(&app).await? {
                Some(memory) => {
                    let user = app.user();
                    let found = memory.search(&user, &text, limit.saturating_add(1));
                    found.await?.ok_or_else(|| {
                        Failure::usage(format!("`{text}` contains no word"))
                            .next("lango memory list")
                    })?
                }
                None => Vec::new(),
            };
            show(&found, limit, json, "no memory contains all of these words")?;
        }
        MemoryCommand::Forget { ids, all, yes } => {
            let store = app.existing_store()?;
            let memory = memory_of(&store);
            if all {
                forget_all(&app, &store, &memory, yes).await?;
            } else {
                forget(&app, &store, &memory, &ids, yes).await?;
            }
        }
    }
    Ok(Exit::Ok)
}

/// Returns the memory for reading; `None` if nothing is stored yet.
async fn existing(app: &App) -> Result<Option<Memory>, Failure> {
    let Ok(store) = app.existing_store() else {
        return Ok(None);
    };
    store.open_for_reading().await?;
    Ok(Some(memory_of(&store)))
}

fn memory_of(store: &Arc<Store>) -> Memory {
    let clock = Arc::new(SystemClock);
    Memory::new(Arc::clone(store), None, clock, MemorySettings::default())
}

fn show(found: &[ListedMemory], limit: usize, json: bool, nothing: &str) -> Result<(), Failure> {
    let shown = &found[..found.len().min(limit)];
    if json {
        return Ok(screen::print(&screen::json(&shown, Layout::Indented)?)?);
    }
    if found.is_empty() {
        return Ok(screen::print(nothing)?);
    }
    let now = SystemClock.now();
    for memory in shown {
        let kind = match memory.kind {
            MemoryKind::Saved => "saved",
            MemoryKind::Observation => "observed",
            MemoryKind::Reflection => "reflection",
        };
        let session = memory.session.as_ref();
        let session = session.map_or(String::new(), |session| format!("  ({session})"));
        let tags: String = memory.tags.iter().map(|tag| format!(" #{tag}")).collect();
        screen::print(&format!(
            "{:<8}{:>10}  {kind:<10}  {}{}{session}",
            memory.id,
            age(memory.created, now),
            one_line(&memory.text, 120),
            one_line(&tags, 60)
        ))?;
    }
    if found.len() > limit {
        screen::say("there are more; use --limit to see them");
    }
    Ok(())
}

async fn forget(
    app: &App,
    store: &Store,
    memory: &Memory,
    ids: &[String],
    yes: bool,
) -> Result<(), Failure> {
    let next = "run `lango memory list` to see the ids";
    let parse = |id: &String| -> Result<MemoryId, Failure> {
        let message = format!("`{id}` is not the id of a memory; ids look like o_1, r_2 or m_3");
        id.parse().map_err(|_| Failure::usage(message).next(next))
    };
    let ids: Vec<MemoryId> = ids.iter().map(parse).collect::<Result<_, _>>()?;
    let missing = |id: MemoryId| Failure::usage(format!("you have no memory `{id}`")).next(next);
    for id in &ids {
        if !memory.has(&app.user(), *id).await? {
            return Err(missing(*id));
        }
    }
    if !yes {
        let mut affected = Vec::new();
        for id in &ids {
            affected.extend(memory.with_id(&app.user(), *id).await?);
        }
        let names: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let question = format!("forget {} permanently?", names.join(", "));
        if !confirm_forgetting(&affected, &question).await? {
            return Ok(());
        }
    }
    let mut forgotten = Vec::new();
    for id in ids {
        let deleted = memory.forget_by_id(&app.user(), id).await?.ok_or_else(|| {
            let message = format!("`{id}` was not forgotten, because memory kept changing");
            Failure::failed(message).next("run the command again")
        })?;
        // It may have been part of a memory before it in the list.
        if deleted.is_empty() && !forgotten.contains(&id) {
            return Err(missing(id));
        }
        forgotten.extend(deleted);
    }
    let names: Vec<String> = forgotten.iter().map(ToString::to_string).collect();
    report(store, &format!("forgot {}", names.join(", "))).await
}

async fn forget_all(app: &App, store: &Store, memory: &Memory, yes: bool) -> Result<(), Failure> {
    if !yes {
        let number = memory.list(&app.user(), usize::MAX).await?.len();
        let question = format!("forget everything remembered about you ({number}) permanently?");
        if !confirm_forgetting(&[], &question).await? {
            return Ok(());
        }
    }
    let number = memory.forget_everything(&app.user()).await?;
    let number = match number {
        1 => "1 memory".to_owned(),
        number => format!("{number} memories"),
    };
    report(store, &format!("forgot {number}")).await
}

/// Shows what will be forgotten, and asks. Prints a note if the answer is no.
async fn confirm_forgetting(affected: &[ListedMemory], question: &str) -> Result<bool, Failure> {
    if !has_terminal() {
        let message = "forgetting is permanent, and there is no terminal to ask for confirmation";
        return Err(Failure::usage(message).next("use --yes to forget without asking"));
    }
    for memory in affected {
        let text = one_line(&memory.text, 120);
        screen::say(&format!("  {:<6}{text}", memory.id));
    }
    let is_confirmed = confirm(question).await?;
    if !is_confirmed {
        screen::say("nothing was forgotten");
    }
    Ok(is_confirmed)
}

async fn report(store: &Store, forgotten: &str) -> Result<(), Failure> {
    screen::print(&format!(
        "{forgotten}; the sessions still contain the conversations (`lango sessions delete` deletes them)"
    ))?;
    if matches!(store.wipe_deleted().await?, WipeOutcome::InUse) {
        screen::say(
            "some bytes may be left, because another process is using the database; run `lango store compact` later to wipe them",
        );
    }
    Ok(())
}
