//! The tools of memory. They act on the memory of the caller's user and session; arguments cannot select another one.

mod forget;

use super::entry::MemoryEntry;
use super::observer::OBSERVATION_BYTES;
use super::reflector::CondenseTrigger;
use super::search::MemoryQuery;
use super::{MAX_STEPS, Memory, StepOutcome, owner};
use lango_core::{
    Caller, Effect, Provenance, Risk, RuleSubject, StoreError, Text, Tool, ToolDeclaration,
    ToolError, ToolOutput, Trust,
};
use lango_store::{
    Generation, MemoryOrder, MemoryOwner, NewMemoryRecord, NewSavedMemory, SaveOutcome,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// The number of entries if the call sets no limit.
const DEFAULT_RESULTS: usize = 10;
/// Maximum number of entries per result.
const MAX_RESULTS: usize = 50;

/// Maximum length of an entry's line.
const LINE_BYTES: usize = 800;

/// Maximum number of memories that a user can save.
const MAX_SAVED: u64 = 1000;

/// Maximum number of tags per memory.
const MAX_TAGS: usize = 8;
/// Maximum length of a tag.
const TAG_BYTES: usize = 40;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {
    /// How many to return, the newest first; default 10, at most 50.
    limit: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Save {
    /// What to remember, in one or two sentences that can be understood on their own.
    text: String,
    /// Keywords to find it by.
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Recall {
    /// The words to search for; memories with the most of them come first.
    query: String,
    /// How many to return; default 10, at most 50.
    limit: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Note {
    /// The observation, in one sentence.
    text: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoArguments {}

/// Returns the tools over a memory.
pub fn memory_tools(memory: Memory) -> Vec<Arc<dyn Tool>> {
    let read = |name, description| declaration(name, description, Effect::Pure, Risk::Safe);
    let write = |name, description| declaration(name, description, Effect::Idempotent, Risk::Safe);
    vec![
        tool(
            &memory,
            read(
                "memory_list_observations",
                "Lists the observations of this session, the newest first.",
            ),
            list_observations,
        ),
        tool(
            &memory,
            read(
                "memory_list_reflections",
                "Lists the reflections of this session, which condense its observations, the newest first.",
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
        forget::forget_tool(&memory),
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
            |memory, caller, NoArguments {}| reflect_now(memory, caller),
        ),
    ]
}

fn declaration(
    name: &'static str,
    description: &'static str,
    effect: Effect,
    risk: Risk,
) -> ToolDeclaration {
    ToolDeclaration {
        name,
        description,
        effect,
        risk,
        subject: RuleSubject::Arguments,
    }
}

fn tool<A, F, R>(memory: &Memory, declaration: ToolDeclaration, code: F) -> Arc<dyn Tool>
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
    Ok(format_entries(
        entries,
        list.limit,
        "this session has no observations yet",
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
    Ok(format_entries(
        entries,
        list.limit,
        "this session has no reflections yet",
    ))
}

async fn newest(
    memory: &Memory,
    owner: &MemoryOwner,
    generation: Generation,
) -> Result<Vec<MemoryEntry>, ToolError> {
    let rows = memory
        .rows()
        .recollections(owner, generation, MemoryOrder::Newest, MAX_RESULTS + 1)
        .await
        .map_err(failed)?;
    Ok(rows.into_iter().map(MemoryEntry::from).collect())
}

async fn save(memory: Memory, caller: Caller, save: Save) -> Result<ToolOutput, ToolError> {
    let text = checked(&save.text)?;
    let tags = save.tags.iter().map(|tag| tag.trim().to_lowercase());
    let mut tags: Vec<String> = tags.filter(|tag| !tag.is_empty()).collect();
    tags.sort();
    tags.dedup();
    if tags.len() > MAX_TAGS || tags.iter().any(|tag| tag.len() > TAG_BYTES) {
        return Err(ToolError::trusted(format!(
            "a memory can have at most {MAX_TAGS} tags of {TAG_BYTES} bytes; use fewer or shorter ones"
        )));
    }
    // Fails for a session of another user.
    memory
        .rows()
        .watermark(&own(&caller))
        .await
        .map_err(failed)?;
    let new = NewSavedMemory {
        text,
        tags,
        source: source(&caller),
        created: memory.inner.clock.now(),
    };
    let saved = memory
        .rows()
        .save_memory(&caller.user, new, MAX_SAVED)
        .await;
    match saved.map_err(failed)? {
        SaveOutcome::New(id) => Ok(ToolOutput::trusted(format!("Saved as `{id}`."))),
        SaveOutcome::Updated(id) => Ok(ToolOutput::trusted(format!(
            "This was already saved as `{id}`; its tags were updated."
        ))),
        SaveOutcome::Full => Err(ToolError::trusted(format!(
            "the limit of {MAX_SAVED} saved memories is reached; forget some first"
        ))),
    }
}

async fn recall(memory: Memory, caller: Caller, recall: Recall) -> Result<ToolOutput, ToolError> {
    let query = query(&recall.query)?;
    let found = memory.recall(&own(&caller), &query).await;
    Ok(format_entries(
        found.map_err(failed)?,
        recall.limit,
        "no memory contains any of these words",
    ))
}

async fn observe_note(memory: Memory, caller: Caller, note: Note) -> Result<ToolOutput, ToolError> {
    let owner = own(&caller);
    let turn = memory.rows().current_turn(&owner, &caller.turn).await;
    let watermark = memory.rows().watermark(&owner).await.map_err(failed)?;
    let turn = turn.map_err(failed)?.unwrap_or(watermark.observed);
    let note = NewMemoryRecord {
        turns: (turn, turn),
        text: checked(&note.text)?,
        source: source(&caller),
        created: memory.inner.clock.now(),
    };
    let id = memory.rows().add_note(&owner, note).await.map_err(failed)?;
    Ok(ToolOutput::trusted(format!("Noted as `{id}`.")))
}

async fn reflect_now(memory: Memory, caller: Caller) -> Result<ToolOutput, ToolError> {
    let when = CondenseTrigger::Now(memory.inner.settings.observation_token_threshold);
    let mut made = 0;
    for _ in 0..MAX_STEPS {
        let progress = memory
            .condense(&own(&caller), Generation::Observation, when)
            .await;
        match progress.map_err(failed)? {
            StepOutcome::Reflected(_) => made += 1,
            StepOutcome::Failed(detail) => {
                return Err(ToolError::new(format!(
                    "{detail}; {made} reflections were made, and lango tries the rest again later"
                )));
            }
            StepOutcome::NotDue => break,
            StepOutcome::Dropped | StepOutcome::Observed { .. } => {}
        }
    }
    Ok(ToolOutput::trusted(match made {
        0 => "All observations of this session are already condensed.".to_owned(),
        1 => "Made 1 reflection.".to_owned(),
        _ => format!("Made {made} reflections."),
    }))
}

fn own(caller: &Caller) -> MemoryOwner {
    owner(&caller.user, &caller.session)
}

/// Returns the source for a text that the calling agent wrote, with the trust label of the agent's context.
fn source(caller: &Caller) -> Provenance {
    Provenance {
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
            "the text has {} bytes, but at most {OBSERVATION_BYTES} are allowed; shorten it",
            text.len()
        )));
    }
    Ok(text.to_owned())
}

fn query(text: &str) -> Result<MemoryQuery, ToolError> {
    MemoryQuery::new(text)
        .ok_or_else(|| ToolError::trusted("the query contains no word; say what to search for"))
}

/// Formats entries, with the lowest trust label among those shown.
fn format_entries(entries: Vec<MemoryEntry>, limit: Option<usize>, if_none: &str) -> ToolOutput {
    let limit = limit.unwrap_or(DEFAULT_RESULTS).clamp(1, MAX_RESULTS);
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

fn failed(error: StoreError) -> ToolError {
    ToolError::new(error.to_string())
}
