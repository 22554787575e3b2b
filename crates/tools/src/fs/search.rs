//! `fs_search`: searches all files below a folder for text, or for files by name.
//!
//! ripgrep's libraries do the matching. The directory walk is our own: like every file tool it opens entries from
//! handles, never by path, and follows no links.

mod results;
mod walk;

use super::{ReadFunctions, call_text, read_only_tool};
use crate::Workspace;
use crate::file_error::FileError;
use crate::show;
use crate::target_path::TargetPath;
use globset::{GlobBuilder, GlobMatcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use lango_core::Tool;
use results::{ResultLimits, SearchResults};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use walk::{Candidate, FileWalk};

const DESCRIPTION: &str = "Searches the text files below a folder of the workspace for a regular expression, or for \
    files by name, or for both together. Returns `path:line: text` for each line that matches, or only the paths if no \
    `pattern` is given. Skips files that .gitignore excludes, the contents of .git, binary files and links.";

/// Default and maximum number of matches that one call shows.
const DEFAULT_MATCHES: u64 = 100;
const MAX_MATCHES: u64 = 1000;

/// Maximum size of a compiled regular expression.
const MAX_REGEX_BYTES: usize = 10_000_000;

/// Maximum number of context lines before and after a match.
const MAX_CONTEXT_LINES: u64 = 10;

pub(super) fn tool(workspace: &Workspace) -> Arc<dyn Tool> {
    let functions = ReadFunctions {
        resolve,
        run: search,
    };
    read_only_tool(workspace, "fs_search", DESCRIPTION, functions)
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchArguments {
    /// The regular expression that a line must match; without it only names are searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pattern: Option<String>,
    /// The folder or file to search, relative to the workspace; defaults to `.`, the workspace itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// The names of files to search, such as `*.rs`, or their paths below the folder, such as `src/**/*.{js,ts}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    glob: Option<String>,
    /// Whether `pattern` is plain text, not a regular expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    literal: Option<bool>,
    /// Whether `pattern` and `glob` ignore case.
    #[serde(skip_serializing_if = "Option::is_none")]
    ignore_case: Option<bool>,
    /// Number of lines to show before and after each match, at most 10; defaults to 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<u64>,
    /// Number of matches to show, at most 1000; defaults to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<NonZeroU64>,
    /// Number of matches to skip at the start, as given in the note of an earlier call; defaults to 0.
    skip: Option<u64>,
}

fn resolve<'a>(
    workspace: &'a Workspace,
    arguments: &SearchArguments,
) -> Result<TargetPath<'a>, FileError> {
    let path = arguments.path.as_deref().unwrap_or(".");
    workspace.locate(path)?.target()
}

fn search(target: &TargetPath<'_>, arguments: SearchArguments) -> Result<String, FileError> {
    let matcher = matcher(&arguments)?;
    let names = name_filter(&arguments)?;
    if matcher.is_none() && names.is_none() {
        return Err(FileError::InvalidArgument {
            argument: "pattern",
            problem: "it is missing, and so is `glob`; pass at least one of them".to_owned(),
        });
    }
    let limit = arguments.limit.map_or(DEFAULT_MATCHES, NonZeroU64::get);
    let mut results = SearchResults::new(ResultLimits {
        skip: arguments.skip.unwrap_or(0),
        limit: limit.min(MAX_MATCHES),
        context: arguments.context.unwrap_or(0).min(MAX_CONTEXT_LINES) as usize,
    });

    let mut visit = |candidate: &Candidate<'_, '_>| {
        let has_name = names
            .as_ref()
            .is_none_or(|names| names.matches(candidate.below));
        match (&matcher, has_name) {
            (_, false) => ControlFlow::Continue(()),
            (Some(matcher), true) => results.search(candidate, matcher),
            (None, true) => results.add_name(candidate),
        }
    };
    let walk = FileWalk::run(target, &mut visit)?;
    Ok(report(results, &walk, target.display_path(), arguments))
}

fn report(results: SearchResults, walk: &FileWalk, path: &str, asked: SearchArguments) -> String {
    let what = match asked.pattern {
        Some(_) => ("match", "matches"),
        None => ("file", "files"),
    };
    let skipped = asked.skip.unwrap_or(0);
    let mut text = String::new();
    let mut add_note = |line: String| text.push_str(&format!("[{line}]\n"));
    if results.has_more {
        let next = SearchArguments {
            skip: Some(skipped + results.shown),
            ..asked
        };
        add_note(format!(
            "{} {} shown, there are more; see them with {}",
            results.shown,
            what.1,
            call_text("fs_search", &next)
        ));
    } else if results.shown == 0 && skipped > 0 {
        add_note(format!(
            "no more {} in {path}; pass a smaller `skip`",
            what.1
        ));
    } else if results.shown == 0 {
        add_note(format!(
            "no {} in {path}; searched {}",
            what.0,
            show::count(walk.files, "file")
        ));
    }
    if let Some(limit) = walk.stopped_at.or(results.stopped_at) {
        add_note(format!(
            "not all of {path} was searched: {limit}; search a folder in it with `path`"
        ));
    }
    let skipped = [
        (results.binary, "not text"),
        (results.large, "too large"),
        (results.unreadable + walk.unreadable, "not readable"),
        (walk.ignored, "excluded by .gitignore"),
    ];
    let skipped: Vec<_> = skipped
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, why)| format!("{number} {why}"))
        .collect();
    if !skipped.is_empty() {
        add_note(format!("skipped: {}", skipped.join(", ")));
    }
    results.text + &text
}

fn matcher(arguments: &SearchArguments) -> Result<Option<RegexMatcher>, FileError> {
    let Some(pattern) = &arguments.pattern else {
        return Ok(None);
    };
    let invalid = |problem| FileError::InvalidArgument {
        argument: "pattern",
        problem,
    };
    let is_literal = arguments.literal == Some(true);
    if !is_literal && let Some(problem) = syntax_error(pattern) {
        return Err(invalid(problem));
    }
    RegexMatcherBuilder::new()
        .case_insensitive(arguments.ignore_case == Some(true))
        .fixed_strings(is_literal)
        .line_terminator(Some(b'\n'))
        .size_limit(MAX_REGEX_BYTES)
        .build(pattern)
        .map(Some)
        .map_err(|error| {
            invalid(format!(
                "{error}; pass a shorter pattern that matches within one line"
            ))
        })
}

/// Describes what is wrong with a regular expression and where; `None` if it parses.
fn syntax_error(pattern: &str) -> Option<String> {
    let error = regex_syntax::Parser::new().parse(pattern).err()?;
    let (what, span) = match &error {
        regex_syntax::Error::Parse(error) => (error.kind().to_string(), error.span()),
        regex_syntax::Error::Translate(error) => (error.kind().to_string(), error.span()),
        // The enum is non-exhaustive.
        other => return Some(other.to_string()),
    };
    let at = pattern[..span.start.offset].chars().count() + 1;
    let rest = show::line(&pattern[span.start.offset..], 20);
    Some(format!(
        "{what}, at character {at} (`{rest}`); correct it, or pass `literal` for plain text"
    ))
}

/// A glob for file names.
struct NameFilter {
    glob: GlobMatcher,
    /// Whether the glob has no slash, so that it matches names instead of paths.
    matches_name: bool,
}

impl NameFilter {
    fn matches(&self, below: &Path) -> bool {
        match below.file_name() {
            Some(name) if self.matches_name => self.glob.is_match(name),
            _ => self.glob.is_match(below),
        }
    }
}

fn name_filter(arguments: &SearchArguments) -> Result<Option<NameFilter>, FileError> {
    let Some(text) = &arguments.glob else {
        return Ok(None);
    };
    let glob = GlobBuilder::new(text.trim_start_matches("./"))
        .literal_separator(true)
        .case_insensitive(arguments.ignore_case == Some(true))
        .build()
        .map_err(|error| FileError::InvalidArgument {
            argument: "glob",
            problem: format!("{}; write it like `*.rs` or `src/**/*.rs`", error.kind()),
        })?;
    Ok(Some(NameFilter {
        glob: glob.compile_matcher(),
        matches_name: !text.contains('/'),
    }))
}
