//! `save_learning` and `search_learnings`.

use super::show::{answer, indented, line, mark};
use super::{declaration, result_limit, source_of};
use crate::library::{Learning, Library, NewLearning};
use lango_core::{Caller, Effect, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

const SAVE: &str = "Saves what fixed a problem, to be found when it happens again. Saving the same trigger and fix again \
    updates the confidence.";

const SEARCH: &str = "Searches the learnings saved with save_learning, by the error or by the current activity. Returns each \
    with its confidence, its source and whether it is trusted.";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SaveArguments {
    /// When it applies: what was being done, and what went wrong.
    trigger: String,
    /// What fixed it.
    fix: String,
    /// What the error looks like, such as its text.
    error_pattern: Option<String>,
    /// How certain it is, from 0 to 1; default 0.5.
    confidence: Option<f64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchArguments {
    /// The error, or the current activity.
    query: String,
    /// How many learnings to return, at most 20; default 5.
    limit: Option<usize>,
}

pub(super) fn save_tool(library: &Library) -> Arc<dyn Tool> {
    let library = library.clone();
    let code = move |caller, arguments| save(library.clone(), caller, arguments);
    declaration("save_learning", SAVE, Effect::Idempotent).with_code(code)
}

pub(super) fn search_tool(library: &Library) -> Arc<dyn Tool> {
    let library = library.clone();
    let code = move |caller, arguments| search(library.clone(), caller, arguments);
    declaration("search_learnings", SEARCH, Effect::Pure).with_code(code)
}

async fn save(
    library: Library,
    caller: Caller,
    arguments: SaveArguments,
) -> Result<String, ToolError> {
    let learning = NewLearning {
        trigger: arguments.trigger,
        fix: arguments.fix,
        error_pattern: arguments.error_pattern.unwrap_or_default(),
        confidence: arguments.confidence.unwrap_or(0.5),
        source: source_of(&caller, None),
    };
    let saved = library.learn(&caller.user, learning).await?;
    let message = if saved.is_new {
        "Saved.\n"
    } else {
        "Updated the learning that was saved before.\n"
    };
    let notes = saved.notes.iter();
    Ok(notes.fold(message.to_owned(), |message, note| {
        format!("{message}[{note}]\n")
    }))
}

async fn search(
    library: Library,
    caller: Caller,
    arguments: SearchArguments,
) -> Result<String, ToolError> {
    let limit = result_limit(arguments.limit);
    let (learnings, notes) = library
        .search_learnings(&caller.user, Some(&caller.session), &arguments.query, limit)
        .await?;
    let results: Vec<String> = learnings.iter().map(show).collect();
    Ok(answer(&results, "no learning matches", &notes))
}

fn show(learning: &Learning) -> String {
    let error = if learning.error_pattern.is_empty() {
        String::new()
    } else {
        format!("  error: {}\n", line(&learning.error_pattern, 500))
    };
    format!(
        "{} {} (confidence {:.2})\n{error}  fix:\n{}",
        mark(&learning.source),
        line(&learning.trigger, 500),
        learning.confidence,
        indented(&learning.fix)
    )
}
