//! The tools of memory. Whose memory it is they take from whoever calls, never from their arguments.

use super::entry::Entry;
use super::forget::What;
use super::observer::OBSERVATION_BYTES;
use super::reflector::When;
use super::search::Query;
use super::{MOST_STEPS, Memory, Progress, owner};
use lango_core::{
    Caller, Declaration, Effect, Risk, Source, StoreError, Subject, Text, Tool, ToolError,
    ToolOutput, Trust,
};
use lango_store::{
    Generation, MemoryId, MemoryOwner, NewRecollection, NewSavedMemory, RecollectionOrder,
    SaveOutcome,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// How many entries a tool shows if it is not told, and at most.
const SHOWN: usize = 10;
const MOST_SHOWN: usize = 50;

/// How many bytes the line of an entry has at most.
const LINE_BYTES: usize = 800;

/// How many memories a user can save.
const MOST_SAVED: u64 = 1000;

/// How many tags a memory can have, and how many bytes each.
const MOST_TAGS: usize = 8;
const TAG_BYTES: usize = 40;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {
    /// How many to show, the newest first; 10 if left out, 50 at most.
    limit: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Save {
    /// What to remember, in one or two sentences that can be understood on their own.
    text: String,
    /// Words under which it can be found.
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Recall {
    /// The words to look for; what has most of them comes first.
    query: String,
    /// How many to show; 10 if left out, 50 at most.
    limit: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ToForget {
    /// One thing to forget, such as `m_3`.
    id: Option<String>,
    /// Instead of an id: forget everything that holds all of these words.
    query: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Note {
    /// What was observed, in a sentence.
    text: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// The tools over a memory.
pub fn memory_tools(memory: Memory) -> Vec<Arc<dyn Tool>> {
    let read = |name, description| declaration(name, description, Effect::Pure, Risk::Safe);
    let write = |name, description| declaration(name, description, Effect::Idempotent, Risk::Safe);
    vec![
        tool(
            &memory,
            read(
                "memory_list_observations",
                "Lists what was observed in this session, the newest first.",
            ),
            list_observations,
        ),
        tool(
            &memory,
            read(
                "memory_list_reflections",
                "Lists the reflections on this session, which condense its observations, the newest first.",
            ),
            list_reflections,
        ),
        tool(
            &memory,
            write(
                "memory_save",
                "Saves something about the user for all their sessions, such as a preference or a fact they want remembered.",
            ),
            save,
        ),
        tool(
            &memory,
            read(
                "memory_recall",
                "Searches what the user saved in any session, and the observations and reflections of this one.",
            ),
            recall,
        ),
        tool(
            &memory,
            declaration(
                "memory_forget",
                "Deletes from memory, by id or by words, with every reflection made of it. The log of the conversation keeps what was said.",
                Effect::Effect,
                Risk::Moderate,
            ),
            forget,
        ),
        tool(
            &memory,
            write(
                "observe_note",
                "Adds an observation to this session's memory now.",
            ),
            observe_note,
        ),
        tool(
            &memory,
            write(
                "reflect_now",
                "Condenses this session's observations into reflections now.",
            ),
            |memory, caller, Nothing {}| reflect_now(memory, caller),
        ),
    ]
}

fn declaration(
    name: &'static str,
    description: &'static str,
    effect: Effect,
    risk: Risk,
) -> Declaration {
    Declaration {
        name,
        description,
        effect,
        risk,
        subject: Subject::Arguments,
    }
}

fn tool<A, F, R>(memory: &Memory, declaration: Declaration, code: F) -> Arc<dyn Tool>
where
    A: JsonSchema + DeserializeOwned + 'static,
    F: Fn(Memory, Caller, A) -> R + Send + Sync + 'static,
    R: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
{
    let memory = memory.clone();
    declaration.with_code(move |caller, arguments| code(memory.clone(), caller, arguments))
}

async fn list_observations(
    memory: Memory,
    caller: Caller,
    list: List,
) -> Result<ToolOutput, ToolError> {
    let entries = newest(&memory, &own(&caller), Generation::Observation).await?;
    Ok(shown(
        entries,
        list.limit,
        "nothing was observed in this session yet",
    ))
}

async fn list_reflections(
    memory: Memory,
    caller: Caller,
    list: List,
) -> Result<ToolOutput, ToolError> {
    let mut entries = newest(&memory, &own(&caller), Generation::First).await?;
    entries.extend(newest(&memory, &own(&caller), Generation::Second).await?);
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.id));
    Ok(shown(
        entries,
        list.limit,
        "there is no reflection on this session yet",
    ))
}

async fn newest(
    memory: &Memory,
    owner: &MemoryOwner,
    generation: Generation,
) -> Result<Vec<Entry>, ToolError> {
    let rows = memory
        .rows()
        .recollections(owner, generation, RecollectionOrder::Newest, MOST_SHOWN + 1)
        .await
        .map_err(failed)?;
    Ok(rows.into_iter().map(Entry::from).collect())
}

async fn save(memory: Memory, caller: Caller, save: Save) -> Result<ToolOutput, ToolError> {
    let text = checked(&save.text)?;
    let tags = save.tags.iter().map(|tag| tag.trim().to_lowercase());
    let mut tags: Vec<String> = tags.filter(|tag| !tag.is_empty()).collect();
    tags.sort();
    tags.dedup();
    if tags.len() > MOST_TAGS || tags.iter().any(|tag| tag.len() > TAG_BYTES) {
        return Err(ToolError::trusted(format!(
            "a memory has {MOST_TAGS} tags of {TAG_BYTES} bytes at most; leave some out"
        )));
    }
    // Refuses a session of another user.
    memory
        .rows()
        .watermark(&own(&caller))
        .await
        .map_err(failed)?;
    let new = NewSavedMemory {
        text,
        tags,
        source: source(&caller),
        created: memory.parts.clock.now(),
    };
    let saved = memory
        .rows()
        .save_memory(&caller.user, new, MOST_SAVED)
        .await;
    match saved.map_err(failed)? {
        SaveOutcome::New(id) => Ok(ToolOutput::trusted(format!("Saved as `{id}`."))),
        SaveOutcome::Updated(id) => Ok(ToolOutput::trusted(format!(
            "This is saved as `{id}` already; its tags are these now."
        ))),
        SaveOutcome::Full => Err(ToolError::trusted(format!(
            "{MOST_SAVED} memories are saved, which is the most; forget some first"
        ))),
    }
}

async fn recall(memory: Memory, caller: Caller, recall: Recall) -> Result<ToolOutput, ToolError> {
    let query = query(&recall.query)?;
    let found = memory.recall(&own(&caller), &query).await;
    Ok(shown(
        found.map_err(failed)?,
        recall.limit,
        "nothing that is remembered has one of these words",
    ))
}

async fn forget(memory: Memory, caller: Caller, forget: ToForget) -> Result<ToolOutput, ToolError> {
    let what = match (&forget.id, &forget.query) {
        (Some(id), None) => What::One(id.parse().map_err(|_| {
            ToolError::trusted(format!(
                "`{id}` is no id of memory; such ids are `o_1`, `r_2`, `m_3`"
            ))
        })?),
        (None, Some(words)) => What::All(query(words)?),
        _ => return Err(ToolError::trusted("give either `id` or `query`")),
    };
    let gone = memory.forget(&own(&caller), &caller.turn, &what).await;
    match gone.map_err(failed)? {
        None => Err(ToolError::trusted(
            "memory was changed by others all the time; nothing was forgotten; try again",
        )),
        Some(gone) if gone.is_empty() => {
            Ok(ToolOutput::trusted("Nothing that is remembered fits."))
        }
        Some(gone) => Ok(ToolOutput::trusted(format!(
            "Forgot {}: {}. The log of the conversation keeps what was said.",
            gone.len(),
            names(&gone)
        ))),
    }
}

async fn observe_note(memory: Memory, caller: Caller, note: Note) -> Result<ToolOutput, ToolError> {
    let owner = own(&caller);
    let turn = memory.rows().current_turn(&owner, &caller.turn).await;
    let watermark = memory.rows().watermark(&owner).await.map_err(failed)?;
    let turn = turn.map_err(failed)?.unwrap_or(watermark.observed);
    let note = NewRecollection {
        turns: (turn, turn),
        text: checked(&note.text)?,
        source: source(&caller),
        created: memory.parts.clock.now(),
    };
    let id = memory.rows().add_note(&owner, note).await.map_err(failed)?;
    Ok(ToolOutput::trusted(format!("Noted as `{id}`.")))
}

async fn reflect_now(memory: Memory, caller: Caller) -> Result<ToolOutput, ToolError> {
    let when = When::Now(memory.parts.settings.observation_token_threshold);
    let mut made = 0;
    for _ in 0..MOST_STEPS {
        let progress = memory
            .condense(&own(&caller), Generation::Observation, when)
            .await;
        match progress.map_err(failed)? {
            Progress::Reflected(_) => made += 1,
            Progress::Failed(detail) => {
                return Err(ToolError::new(format!(
                    "{detail}; {made} reflections were made; it is tried again by itself"
                )));
            }
            Progress::NotDue => break,
            Progress::Dropped | Progress::Observed { .. } => {}
        }
    }
    Ok(ToolOutput::trusted(match made {
        0 => "All observations of this session are reflected on already.".to_owned(),
        1 => "Made 1 reflection.".to_owned(),
        _ => format!("Made {made} reflections."),
    }))
}

fn own(caller: &Caller) -> MemoryOwner {
    owner(&caller.user, &caller.session)
}

/// The source of a text that the calling agent wrote: it has the label of the agent's context.
fn source(caller: &Caller) -> Source {
    Source {
        name: Text::from(format!("note of {}", caller.agent)),
        trust: caller.trust,
    }
}

fn checked(text: &str) -> Result<String, ToolError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(ToolError::trusted(
            "the text is empty; say what to remember",
        ));
    }
    if text.len() > OBSERVATION_BYTES {
        return Err(ToolError::trusted(format!(
            "the text has {} bytes, {OBSERVATION_BYTES} are the most; keep what matters",
            text.len()
        )));
    }
    Ok(text.to_owned())
}

fn query(text: &str) -> Result<Query, ToolError> {
    Query::new(text)
        .ok_or_else(|| ToolError::trusted("there is no word in the query; say what to look for"))
}

/// Renders entries, with the lowest label among those shown.
fn shown(entries: Vec<Entry>, limit: Option<usize>, if_none: &str) -> ToolOutput {
    let limit = limit.unwrap_or(SHOWN).clamp(1, MOST_SHOWN);
    let more = entries.len() > limit;
    let labels = entries.iter().take(limit).map(|entry| entry.source.trust);
    let trust = labels.fold(Trust::Trusted, Trust::and);
    let lines = entries.into_iter().take(limit).map(|mut entry| {
        let line = entry.clone().line_within(LINE_BYTES);
        line.unwrap_or_else(|| {
            entry.text = "…".to_owned();
            entry.line()
        })
    });
    let mut text: String = lines.collect();
    match (text.is_empty(), more) {
        (true, _) => text.push_str(if_none),
        (false, true) => text.push_str("(there are more)"),
        (false, false) => text.truncate(text.trim_end().len()),
    }
    ToolOutput {
        trust,
        ..ToolOutput::from(text)
    }
}

fn names(ids: &[MemoryId]) -> String {
    const MOST_NAMES: usize = 20;
    let shown: Vec<String> = ids
        .iter()
        .take(MOST_NAMES)
        .map(MemoryId::to_string)
        .collect();
    let rest = if ids.len() > MOST_NAMES { ", …" } else { "" };
    shown.join(", ") + rest
}

fn failed(error: StoreError) -> ToolError {
    ToolError::new(error.to_string())
}
