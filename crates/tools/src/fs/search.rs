//! `fs_search`: text or names looked for in all files below a folder.
//!
//! The matching is ripgrep's. The walk is not: it goes from handle to handle like every way here, so nothing is
//! opened by its path and no link is followed.

mod hits;
mod walk;

use super::{call_text, looking_tool};
use crate::Workspace;
use crate::file_error::FileError;
use crate::show;
use globset::{GlobBuilder, GlobMatcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use hits::{Hits, Wanted};
use lango_core::Tool;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use walk::{Candidate, Walk};

const DESCRIPTION: &str = "Searches the text files below a folder of the workspace for a regular expression, or for \
    files by name, or for both together. Gives `path:line: text` for each line that matches, or the paths alone if no \
    `pattern` is given. Leaves out what .gitignore names, the inside of .git, binary files and links.";

/// How many matches one call shows, if it does not say, and at most.
const SHOWN_MATCHES: u64 = 100;
const MOST_SHOWN_MATCHES: u64 = 1000;

/// How large a regular expression becomes at most.
const PATTERN_BYTES: usize = 10_000_000;

/// How many lines around a match are shown at most.
const MOST_CONTEXT_LINES: u64 = 10;

pub(super) fn tool(workspace: &Workspace) -> Arc<dyn Tool> {
    looking_tool(workspace, "fs_search", DESCRIPTION, search)
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchArguments {
    /// The regular expression that a line is to match; names alone are searched if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pattern: Option<String>,
    /// The folder or file to search, relative to the workspace; `.`, the workspace itself, if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// The names of files to search, such as `*.rs`, or their paths below the folder, such as `src/**/*.{js,ts}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    glob: Option<String>,
    /// Whether `pattern` is plain text, not a regular expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    literal: Option<bool>,
    /// Whether upper and lower case are the same, in `pattern` and `glob`.
    #[serde(skip_serializing_if = "Option::is_none")]
    ignore_case: Option<bool>,
    /// How many lines before and after each match to show, at most 10; 0 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<u64>,
    /// How many matches to show, at most 1000; 100 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<NonZeroU64>,
    /// How many matches to leave out at the start, as the note of an earlier call says; 0 if not given.
    skip: Option<u64>,
}

fn search(workspace: &Workspace, arguments: SearchArguments) -> Result<String, FileError> {
    let matcher = matcher(&arguments)?;
    let names = name_matcher(&arguments)?;
    if matcher.is_none() && names.is_none() {
        return Err(FileError::UnusableArgument {
            argument: "pattern",
            problem: "it is missing, and so is `glob`; pass one of them".to_owned(),
        });
    }
    let limit = arguments.limit.map_or(SHOWN_MATCHES, NonZeroU64::get);
    let mut hits = Hits::new(Wanted {
        skip: arguments.skip.unwrap_or(0),
        limit: limit.min(MOST_SHOWN_MATCHES),
        context: arguments.context.unwrap_or(0).min(MOST_CONTEXT_LINES) as usize,
    });

    let place = workspace.locate(arguments.path.as_deref().unwrap_or("."))?;
    let mut visit = |candidate: &Candidate<'_, '_>| {
        let is_named = names
            .as_ref()
            .is_none_or(|names| names.fits(candidate.below));
        match (&matcher, is_named) {
            (_, false) => ControlFlow::Continue(()),
            (Some(matcher), true) => hits.search(candidate, matcher),
            (None, true) => hits.add_name(candidate),
        }
    };
    let walk = Walk::over(&place.target()?, &mut visit)?;
    Ok(report(hits, &walk, &place.shown(), arguments))
}

fn report(hits: Hits, walk: &Walk, path: &str, asked: SearchArguments) -> String {
    let what = match asked.pattern {
        Some(_) => ("match", "matches"),
        None => ("file", "files"),
    };
    let skipped = asked.skip.unwrap_or(0);
    let mut text = String::new();
    let mut remark = |line: String| text.push_str(&format!("[{line}]\n"));
    if hits.has_more {
        let next = SearchArguments {
            skip: Some(skipped + hits.shown),
            ..asked
        };
        remark(format!(
            "{} {} shown, there are more; see them with {}",
            hits.shown,
            what.1,
            call_text("fs_search", &next)
        ));
    } else if hits.shown == 0 && skipped > 0 {
        remark(format!(
            "no more {} in {path}; pass a smaller `skip`",
            what.1
        ));
    } else if hits.shown == 0 {
        remark(format!(
            "no {} in {path}; {} looked at",
            what.0,
            show::count(walk.files, "file")
        ));
    }
    if let Some(limit) = walk.stopped_at.or(hits.stopped_at) {
        remark(format!(
            "not all of {path} was searched: {limit}; search a folder in it with `path`"
        ));
    }
    let left_out = [
        (hits.binary, "not text"),
        (hits.large, "too large"),
        (hits.unreadable + walk.unreadable, "not readable"),
        (walk.ignored, "named by .gitignore"),
    ];
    let left_out: Vec<_> = left_out
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, why)| format!("{number} {why}"))
        .collect();
    if !left_out.is_empty() {
        remark(format!("left out: {}", left_out.join(", ")));
    }
    hits.text + &text
}

fn matcher(arguments: &SearchArguments) -> Result<Option<RegexMatcher>, FileError> {
    let Some(pattern) = &arguments.pattern else {
        return Ok(None);
    };
    let unusable = |problem| FileError::UnusableArgument {
        argument: "pattern",
        problem,
    };
    let is_literal = arguments.literal == Some(true);
    if !is_literal && let Some(problem) = problem_of(pattern) {
        return Err(unusable(problem));
    }
    RegexMatcherBuilder::new()
        .case_insensitive(arguments.ignore_case == Some(true))
        .fixed_strings(is_literal)
        .line_terminator(Some(b'\n'))
        .size_limit(PATTERN_BYTES)
        .build(pattern)
        .map(Some)
        .map_err(|error| {
            unusable(format!(
                "{error}; pass a shorter one that fits within a line"
            ))
        })
}

/// What is wrong with a regular expression, and where.
fn problem_of(pattern: &str) -> Option<String> {
    let error = regex_syntax::Parser::new().parse(pattern).err()?;
    let (what, span) = match &error {
        regex_syntax::Error::Parse(error) => (error.kind().to_string(), error.span()),
        regex_syntax::Error::Translate(error) => (error.kind().to_string(), error.span()),
        // The enum may grow.
        other => return Some(other.to_string()),
    };
    let at = pattern[..span.start.offset].chars().count() + 1;
    let rest = show::line(&pattern[span.start.offset..], 20);
    Some(format!(
        "{what}, at character {at} (`{rest}`); correct it, or pass `literal` for plain text"
    ))
}

/// What a file is to be called.
struct Names {
    glob: GlobMatcher,
    /// Without a slash it speaks of the name, else of the path.
    is_name: bool,
}

impl Names {
    fn fits(&self, below: &Path) -> bool {
        match below.file_name() {
            Some(name) if self.is_name => self.glob.is_match(name),
            _ => self.glob.is_match(below),
        }
    }
}

fn name_matcher(arguments: &SearchArguments) -> Result<Option<Names>, FileError> {
    let Some(text) = &arguments.glob else {
        return Ok(None);
    };
    let glob = GlobBuilder::new(text.trim_start_matches("./"))
        .literal_separator(true)
        .case_insensitive(arguments.ignore_case == Some(true))
        .build()
        .map_err(|error| FileError::UnusableArgument {
            argument: "glob",
            problem: format!("{}; write it like `*.rs` or `src/**/*.rs`", error.kind()),
        })?;
    Ok(Some(Names {
        glob: glob.compile_matcher(),
        is_name: !text.contains('/'),
    }))
}
