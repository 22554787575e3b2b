//! `memory_forget`: deletes memories. The user who approves a call sees which ones, and no others are deleted.

use super::{declaration, failed, own, query};
use crate::memory::Memory;
use crate::memory::forget::{ForgetCall, ForgetOutcome, ForgetTarget, digest_of};
use lango_core::{Caller, Effect, Inspection, Risk, StoreError, Text, Tool, ToolError, ToolOutput};
use lango_store::{MemoryId, MemoryOwner};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// Maximum number of memories that a text lists.
const MAX_LISTED: usize = 20;
/// Maximum length of the text of a listed memory, in characters. The user should see all that is deleted; the limit only
/// bounds what is stored with the call.
const LISTED_CHARACTERS: usize = 2_000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ForgetArguments {
    /// The id of a memory to forget, such as `m_3`.
    id: Option<String>,
    /// Instead of an id: forget everything that contains all of these words.
    query: Option<String>,
}

/// Returns the tool.
pub(super) fn forget_tool(memory: &Memory) -> Arc<dyn Tool> {
    let (inspected, run) = (memory.clone(), memory.clone());
    let declaration = declaration(
        "memory_forget",
        "Deletes memories, by id or by words, together with every reflection made from them. The log of the conversation is not changed.",
        Effect::NonIdempotent,
        Risk::Moderate,
    );
    declaration.with_parts(
        move |caller, arguments| forget(run.clone(), caller, arguments),
        None,
        Some(Box::new(move |caller, arguments| {
            let memory = inspected.clone();
            Box::pin(async move { inspect(&memory, &own(&caller), &arguments).await })
        })),
    )
}

async fn forget(
    memory: Memory,
    caller: Caller,
    arguments: ForgetArguments,
) -> Result<ToolOutput, ToolError> {
    let target = target_of(&arguments)?;
    let Some(approved) = &caller.inspection.content else {
        return Err(ToolError::trusted(
            "the memories could not be read before the call, so nothing was forgotten; try again",
        ));
    };
    let call = ForgetCall {
        turn: &caller.turn,
        approved,
    };
    let outcome = memory.forget(&own(&caller), Some(call), &target).await;
    match outcome.map_err(failed)? {
        ForgetOutcome::Stale => Err(ToolError::trusted(
            "nothing was forgotten, because memory kept changing; try again",
        )),
        ForgetOutcome::Changed => Err(ToolError::trusted(
            "nothing was forgotten, because the memories that match have changed since the call was made; call it again",
        )),
        ForgetOutcome::Done(deleted) if deleted.is_empty() => {
            Ok(ToolOutput::trusted("No memory matches."))
        }
        ForgetOutcome::Done(deleted) => Ok(ToolOutput::trusted(format!(
            "Forgot {}: {}. The log of the conversation is not changed.",
            deleted.len(),
            names(&deleted)
        ))),
    }
}

fn target_of(arguments: &ForgetArguments) -> Result<ForgetTarget, ToolError> {
    match (&arguments.id, &arguments.query) {
        (Some(id), None) => {
            let id = id.parse().map_err(|_| {
                ToolError::trusted(format!(
                    "`{id}` is not the id of a memory; ids look like `o_1`, `r_2` or `m_3`"
                ))
            })?;
            Ok(ForgetTarget::One(id))
        }
        (None, Some(words)) => Ok(ForgetTarget::All(query(words)?)),
        _ => Err(ToolError::trusted("give either `id` or `query`")),
    }
}

/// Lists what a call would delete. The call may delete only that.
async fn inspect(memory: &Memory, owner: &MemoryOwner, arguments: &ForgetArguments) -> Inspection {
    let Ok(target) = target_of(arguments) else {
        return Inspection::default();
    };
    match described(memory, owner, &target).await {
        Ok((ids, notes)) => Inspection {
            content: Some(digest_of(&ids)),
            notes,
            ..Inspection::default()
        },
        // Without a digest, the call fails.
        Err(_) => Inspection::default(),
    }
}

/// Returns the ids of the memories that would be deleted, and lines that describe them.
async fn described(
    memory: &Memory,
    owner: &MemoryOwner,
    target: &ForgetTarget,
) -> Result<(Vec<MemoryId>, Vec<Text>), StoreError> {
    let ids = memory.to_forget(owner, target).await?;
    let entries = memory.entries(owner).await?;
    let known: Vec<_> = entries
        .iter()
        .filter(|entry| ids.contains(&entry.id))
        .collect();
    let heading = match known.len() {
        0 => "deletes nothing: no memory matches".to_owned(),
        1 => "permanently deletes 1 memory:".to_owned(),
        number => format!("permanently deletes {number} memories:"),
    };
    let listed = known.iter().take(MAX_LISTED);
    let listed = listed.map(|entry| format!("{}  {}", entry.id, shortened(&entry.text)));
    let left = known.len().saturating_sub(MAX_LISTED);
    let left = (left > 0).then(|| format!("… and {left} more"));
    let lines = [heading].into_iter().chain(listed).chain(left);
    let lines = lines.map(Text::from).collect();
    Ok((ids, lines))
}

/// Returns the start of a text on one line.
fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LISTED_CHARACTERS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn names(ids: &[MemoryId]) -> String {
    let shown: Vec<String> = ids
        .iter()
        .take(MAX_LISTED)
        .map(MemoryId::to_string)
        .collect();
    let rest = if ids.len() > MAX_LISTED { ", …" } else { "" };
    shown.join(", ") + rest
}
