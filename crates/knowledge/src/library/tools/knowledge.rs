//! `save_knowledge` and `search_knowledge`.

use super::show::{answer, indented, line, mark};
use super::{declaration, result_limit, source_of};
use crate::library::{KnowledgeEntry, Library, NewKnowledge};
use lango_core::{Caller, Effect, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

const SAVE: &str = "Saves knowledge under a key for later conversations. Saving under the same key again creates a new \
    version; a search finds the newest.";

const SEARCH: &str = "Searches the knowledge saved with save_knowledge. Returns each entry with its source and whether it is \
    trusted.";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SaveArguments {
    /// A short name, such as `deploy-steps`.
    key: String,
    /// The knowledge itself.
    content: String,
    /// Its category, such as `fact`, `preference` or `procedure`; default `general`.
    category: Option<String>,
    /// Keywords to find it by.
    tags: Option<Vec<String>>,
    /// Where it comes from, such as a file or an address.
    source: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchArguments {
    /// What to search for, in any words.
    query: String,
    /// How many entries to return, at most 20; default 5.
    limit: Option<usize>,
}

pub(super) fn save_tool(library: &Library) -> Arc<dyn Tool> {
    let library = library.clone();
    let code = move |caller, arguments| save(library.clone(), caller, arguments);
    declaration("save_knowledge", SAVE, Effect::Idempotent).with_code(code)
}

pub(super) fn search_tool(library: &Library) -> Arc<dyn Tool> {
    let library = library.clone();
    let code = move |caller, arguments| search(library.clone(), caller, arguments);
    declaration("search_knowledge", SEARCH, Effect::Pure).with_code(code)
}

async fn save(
    library: Library,
    caller: Caller,
    arguments: SaveArguments,
) -> Result<String, ToolError> {
    let key = arguments.key.trim().to_owned();
    let entry = NewKnowledge {
        key: key.clone(),
        category: arguments.category.unwrap_or_else(|| "general".to_owned()),
        content: arguments.content,
        tags: arguments.tags.unwrap_or_default(),
        source: source_of(&caller, arguments.source.as_deref()),
    };
    let saved = library.save(&caller.user, entry).await?;
    let shown = line(&key, 200);
    let message = if saved.is_new {
        format!("Saved `{shown}`, version {}.\n", saved.version)
    } else {
        format!(
            "`{shown}` already has this content, in version {}.\n",
            saved.version
        )
    };
    Ok(saved
        .notes
        .iter()
        .fold(message, |message, note| format!("{message}[{note}]\n")))
}

async fn search(
    library: Library,
    caller: Caller,
    arguments: SearchArguments,
) -> Result<String, ToolError> {
    let limit = result_limit(arguments.limit);
    let (entries, notes) = library
        .search_entries(&caller.user, Some(&caller.session), &arguments.query, limit)
        .await?;
    let results: Vec<String> = entries.iter().map(show).collect();
    Ok(answer(&results, "no saved knowledge matches", &notes))
}

fn show(entry: &KnowledgeEntry) -> String {
    let tags = if entry.tags.is_empty() {
        String::new()
    } else {
        format!("; {}", line(&entry.tags.join(", "), 300))
    };
    format!(
        "{} {} ({}{tags}; version {})\n{}",
        mark(&entry.source),
        line(&entry.key, 200),
        line(&entry.category, 200),
        entry.version,
        indented(&entry.content)
    )
}
