//! `browser_extract`: reads the content of the page.

use super::page_tool;
use crate::notice::escape_notices;
use crate::observe::source_line;
use crate::sessions::BrowserGuard;
use crate::{
    BrowserError, BrowserSessions, ExtractFormat, ExtractOptions, ExtractedContent, ExtractedPart,
};
use lango_core::{Effect, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

const DESCRIPTION: &str = "Reads the content of the page in the active tab as it is rendered: its main text as Markdown, \
    its tables (Markdown, or JSON rows with the header's cells as keys), or its links with their addresses. Long results \
    come in parts; a note at the end says how to read the next one. Lines in brackets come from lango; a bracket at the start of a \
    line of the page is written `\\[`. To act on the page use browser_observe.";

/// Maximum number of bytes in one part.
const PART_BYTES: usize = 24 << 10;

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExtractArguments {
    /// What to read; default: `page`.
    #[serde(default)]
    what: Part,
    /// The output format. `json` is for tables and links; `text` is all text of the page, not only the main content.
    #[serde(default)]
    format: Format,
    /// The handle of an element, to read only its content.
    scope: Option<String>,
    /// Where to continue, from the note of the previous part.
    #[serde(default)]
    start: usize,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum Part {
    #[default]
    Page,
    Tables,
    Links,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum Format {
    #[default]
    Markdown,
    Json,
    Text,
}

pub(super) fn tool(sessions: &BrowserSessions) -> Arc<dyn Tool> {
    page_tool(
        sessions,
        "browser_extract",
        DESCRIPTION,
        Effect::Pure,
        |guard, arguments| Box::pin(extract(guard, arguments)),
    )
}

async fn extract(
    guard: &BrowserGuard,
    arguments: ExtractArguments,
) -> Result<String, BrowserError> {
    let options = ExtractOptions {
        scope: arguments.scope,
        part: match arguments.what {
            Part::Page => ExtractedPart::Page,
            Part::Tables => ExtractedPart::Tables,
            Part::Links => ExtractedPart::Links,
        },
        format: match arguments.format {
            Format::Markdown => ExtractFormat::Markdown,
            Format::Json => ExtractFormat::Json,
            Format::Text => ExtractFormat::Text,
        },
    };
    let page = guard.page()?;
    let extract = page.extract(&options).await?;
    let title = page.title().await?;
    let (part, note) = part_of(&extract, arguments.start)?;
    // Only links in the returned part count as seen.
    let shown = extract.links.iter().filter(|link| part.contains(&link.url));
    guard.add_seen_links(&page, shown.map(|link| link.url.as_str()));
    let mut text = source_line(&page, &title);
    text.push_str(&escape_notices(part));
    if !part.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&note);
    Ok(text)
}

/// Returns the part that starts at an offset, with a note about the rest.
fn part_of(extract: &ExtractedContent, start: usize) -> Result<(&str, String), BrowserError> {
    let text = &extract.text;
    if text.trim().is_empty() {
        return Ok(("", "[the page has no such content]\n".to_owned()));
    }
    if start >= text.len() || !text.is_char_boundary(start) {
        return Err(BrowserError::Argument {
            message: format!(
                "`start` is not the start of a part; the text has {} bytes",
                text.len()
            ),
        });
    }
    let rest = &text[start..];
    let mut note = String::new();
    if extract.was_cut {
        note.push_str("[the page is too large; only its start could be read]\n");
    }
    if rest.len() <= PART_BYTES {
        return Ok((rest, note));
    }
    let mut end = PART_BYTES;
    while !rest.is_char_boundary(end) {
        end -= 1;
    }
    // Cuts at the end of a line, if one ends in the second half.
    if let Some(line) = rest[..end].rfind('\n').filter(|line| *line > end / 2) {
        end = line + 1;
    }
    let next = start + end;
    note.push_str(&format!(
        "[bytes {start} to {next} of {}; continue with `start`: {next}]\n",
        text.len()
    ));
    Ok((&rest[..end], note))
}
