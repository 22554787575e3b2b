//! Collects the matches of a search as text, up to its limits.

use super::walk::Candidate;
use crate::show;
use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkFinish,
    SinkMatch,
};
use std::io::{self, Read};
use std::ops::ControlFlow;

/// Once the result has this size, no more matches are added.
const TEXT_BYTES: usize = 32 * 1024;

/// Maximum number of characters that are shown of a line, and of the part of it before the match.
const LINE_CHARACTERS: usize = 300;
const BEFORE_MATCH_CHARACTERS: usize = 100;

/// Maximum size of a file that is searched.
const MAX_FILE_BYTES: u64 = 64_000_000;

/// Maximum size of all files that one call searches.
const MAX_SEARCHED_BYTES: u64 = 2_000_000_000;

/// Maximum length of a line; a file with a longer line counts as not readable.
const MAX_LINE_BYTES: usize = 16_000_000;

/// Which part of the matches to show.
pub(super) struct ResultLimits {
    /// Number of matches to skip at the start.
    pub(super) skip: u64,
    /// Number of matches to show.
    pub(super) limit: u64,
    /// Number of context lines before and after each match.
    pub(super) context: usize,
}

/// The matches so far, and the counts of skipped files.
pub(super) struct SearchResults {
    pub(super) text: String,
    pub(super) shown: u64,
    pub(super) has_more: bool,
    pub(super) binary: u64,
    pub(super) large: u64,
    pub(super) unreadable: u64,
    /// The limit that ended the search early.
    pub(super) stopped_at: Option<&'static str>,
    searched_bytes: u64,
    limits: ResultLimits,
    /// Number of matches skipped so far.
    skipped: u64,
    searcher: Option<Searcher>,
}

impl SearchResults {
    pub(super) fn new(limits: ResultLimits) -> Self {
        let searcher = SearcherBuilder::new()
            .line_number(true)
            .before_context(limits.context)
            .after_context(limits.context)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(MAX_LINE_BYTES))
            .build();
        Self {
            text: String::new(),
            shown: 0,
            has_more: false,
            binary: 0,
            large: 0,
            unreadable: 0,
            stopped_at: None,
            searched_bytes: 0,
            limits,
            skipped: 0,
            searcher: Some(searcher),
        }
    }

    /// Searches a file and adds its matches.
    pub(super) fn search(
        &mut self,
        candidate: &Candidate<'_, '_>,
        matcher: &RegexMatcher,
    ) -> ControlFlow<()> {
        let Ok((file, metadata)) = candidate.folder.open_file(candidate.name) else {
            self.unreadable += 1;
            return ControlFlow::Continue(());
        };
        if metadata.len() > MAX_FILE_BYTES {
            self.large += 1;
            return ControlFlow::Continue(());
        }
        self.searched_bytes += metadata.len();
        if self.searched_bytes > MAX_SEARCHED_BYTES {
            self.stopped_at = Some("it has more than 2 GB of text");
            return ControlFlow::Break(());
        }
        let Some(mut searcher) = self.searcher.take() else {
            return ControlFlow::Break(());
        };
        let before = (self.text.len(), self.shown, self.skipped, self.has_more);
        let mut sink = FileSink {
            path: display_path(candidate),
            matcher,
            results: self,
            pending: String::new(),
            is_after_shown: false,
            is_binary: false,
        };
        let result = searcher.search_reader(matcher, file.take(MAX_FILE_BYTES), &mut sink);
        let is_binary = sink.is_binary;
        self.searcher = Some(searcher);
        if is_binary {
            // Drop the matches before the first NUL.
            self.text.truncate(before.0);
            (_, self.shown, self.skipped, self.has_more) = before;
            self.binary += 1;
        }
        self.unreadable += u64::from(result.is_err());
        self.flow()
    }

    /// Adds the path of a file whose name matches.
    pub(super) fn add_name(&mut self, candidate: &Candidate<'_, '_>) -> ControlFlow<()> {
        if self.accept_match() {
            self.text.push_str(&display_path(candidate));
            self.text.push('\n');
        }
        self.flow()
    }

    fn flow(&self) -> ControlFlow<()> {
        if self.has_more {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Counts a match and returns whether to show it.
    fn accept_match(&mut self) -> bool {
        if self.skipped < self.limits.skip {
            self.skipped += 1;
            return false;
        }
        if self.shown >= self.limits.limit || self.text.len() >= TEXT_BYTES {
            self.has_more = true;
            return false;
        }
        self.shown += 1;
        true
    }
}

fn display_path(candidate: &Candidate<'_, '_>) -> String {
    let path = candidate.folder.path().join(candidate.name);
    show::name(candidate.folder.roots().shorten(&path).as_os_str())
}

struct FileSink<'s> {
    path: String,
    matcher: &'s RegexMatcher,
    results: &'s mut SearchResults,
    /// Context lines that are added if the next match is shown.
    pending: String,
    is_after_shown: bool,
    is_binary: bool,
}

impl FileSink<'_> {
    /// Formats `path:line: text`; context lines have another mark instead of the colon.
    fn line(&self, number: Option<u64>, mark: char, text: String) -> String {
        let number = number.unwrap_or_default();
        format!("{}{mark}{number}{mark} {text}\n", self.path)
    }
}

impl Sink for FileSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.is_after_shown = self.results.accept_match();
        if self.is_after_shown {
            let start = self.matcher.find(found.bytes()).ok().flatten();
            let start = start.map_or(0, |found| found.start());
            let text = excerpt(found.bytes(), start);
            let line = self.line(found.line_number(), ':', text);
            self.results.text.push_str(&self.pending);
            self.results.text.push_str(&line);
        }
        self.pending.clear();
        Ok(!self.results.has_more)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let line = self.line(context.line_number(), '-', excerpt(context.bytes(), 0));
        match context.kind() {
            SinkContextKind::After if self.is_after_shown => self.results.text.push_str(&line),
            SinkContextKind::After => {}
            SinkContextKind::Before | SinkContextKind::Other => self.pending.push_str(&line),
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        if self.is_after_shown {
            self.pending.push_str("--\n");
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.is_binary = true;
        Ok(false)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.is_binary |= finish.binary_byte_offset().is_some();
        Ok(())
    }
}

/// Returns the part of a line around its match, without the line end.
fn excerpt(line: &[u8], start: usize) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let before = String::from_utf8_lossy(&line[..start.min(line.len())]).into_owned();
    let after = String::from_utf8_lossy(&line[start.min(line.len())..]);
    let skipped = if before.chars().count() + after.chars().count() > LINE_CHARACTERS {
        before
            .chars()
            .count()
            .saturating_sub(BEFORE_MATCH_CHARACTERS)
    } else {
        0
    };
    let before: String = before.chars().skip(skipped).collect();
    let shown = show::line(&(before + &after), LINE_CHARACTERS);
    match skipped {
        0 => shown,
        _ => format!("…{shown}"),
    }
}
