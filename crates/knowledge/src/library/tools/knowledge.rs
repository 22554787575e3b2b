//! `save_knowledge` and `search_knowledge`.

use super::show::{answer, indented, line, mark};
use super::{declaration, shown, source_of};
use crate::library::{Entry, Library, NewEntry};
use lango_core::{Caller, Effect, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

const SAVE: &str = "Saves something worth knowing under a key, for later conversations. Saving under a key again makes a \
    new version; searching finds the newest.";

const SEARCH: &str = "Searches what was saved with save_knowledge. Gives each entry with its source and whether it may be \
    believed.";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SaveArguments {
    /// A short name for it, such as `deploy-steps`.
    key: String,
    /// What is to be known.
    content: String,
    /// What kind of thing it is, such as `fact`, `preference` or `procedure`; `general` if not given.
    category: Option<String>,
    /// Words to find it by.
    tags: Option<Vec<String>>,
    /// Where it is from, such as a file or an address.
    source: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchArguments {
    /// What to look for, in any words.
    query: String,
    /// How many entries to show, at most 20; 5 if not given.
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
    let entry = NewEntry {
        key: key.clone(),
        category: arguments.category.unwrap_or_else(|| "general".to_owned()),
        content: arguments.content,
        tags: arguments.tags.unwrap_or_default(),
        source: source_of(&caller, arguments.source.as_deref()),
    };
    let saved = library.save(&caller.user, entry).await?;
    let shown = line(&key, 200);
    let said = if saved.is_new {
        format!("Saved `{shown}`, version {}.\n", saved.version)
    } else {
        format!(
            "`{shown}` says that already, in version {}.\n",
            saved.version
        )
    };
    Ok(saved
        .notes
        .iter()
        .fold(said, |said, note| format!("{said}[{note}]\n")))
}

async fn search(
    library: Library,
    caller: Caller,
    arguments: SearchArguments,
) -> Result<String, ToolError> {
    let limit = shown(arguments.limit);
    let (entries, notes) = library
        .search_entries(&caller.user, Some(&caller.session), &arguments.query, limit)
        .await?;
    let results: Vec<String> = entries.iter().map(show).collect();
    Ok(answer(&results, "nothing that was saved fits", &notes))
}

fn show(entry: &Entry) -> String {
    let tags = match entry.tags.is_empty() {
        true => String::new(),
        false => format!("; {}", line(&entry.tags.join(", "), 300)),
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
