//! `save_learning` and `search_learnings`.

use super::show::{answer, indented, line, mark};
use super::{declaration, shown, source_of};
use crate::library::{Learning, Library, NewLearning};
use lango_core::{Caller, Effect, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

const SAVE: &str = "Saves what helped when something went wrong, so that it is found when that happens again. Saving the \
    same trigger and fix again brings its confidence up to date.";

const SEARCH: &str = "Searches what was saved with save_learning: by the error, or by what is being done. Gives each with \
    its confidence, its source and whether it may be believed.";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SaveArguments {
    /// When to think of it: what was being done, and what went wrong.
    trigger: String,
    /// What helped.
    fix: String,
    /// What the error looks like, such as its text.
    error_pattern: Option<String>,
    /// How sure it is, from 0 to 1; 0.5 if not given.
    confidence: Option<f64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchArguments {
    /// The error, or what is being done.
    query: String,
    /// How many learnings to show, at most 20; 5 if not given.
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
    let said = if saved.is_new {
        "Saved.\n"
    } else {
        "It was saved before and is up to date now.\n"
    };
    let notes = saved.notes.iter();
    Ok(notes.fold(said.to_owned(), |said, note| format!("{said}[{note}]\n")))
}

async fn search(
    library: Library,
    caller: Caller,
    arguments: SearchArguments,
) -> Result<String, ToolError> {
    let limit = shown(arguments.limit);
    let (learnings, notes) = library
        .search_learnings(&caller.user, Some(&caller.session), &arguments.query, limit)
        .await?;
    let results: Vec<String> = learnings.iter().map(show).collect();
    Ok(answer(&results, "nothing that was learned fits", &notes))
}

fn show(learning: &Learning) -> String {
    let error = match learning.error_pattern.is_empty() {
        true => String::new(),
        false => format!("  error: {}\n", line(&learning.error_pattern, 500)),
    };
    format!(
        "{} {} (confidence {:.2})\n{error}  fix:\n{}",
        mark(&learning.source),
        line(&learning.trigger, 500),
        learning.confidence,
        indented(&learning.fix)
    )
}
