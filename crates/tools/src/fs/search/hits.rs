//! What a search found, as text that grows up to its limits.

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

/// How much text one call gives back.
const TEXT_BYTES: usize = 32 * 1024;

/// How much of a line is shown, and how much of that comes before its match.
const LINE_CHARACTERS: usize = 300;
const BEFORE_MATCH_CHARACTERS: usize = 100;

/// How large a file is still searched.
const LARGEST_FILE_BYTES: u64 = 64_000_000;

/// How much text one call searches.
const SEARCHED_BYTES: u64 = 2_000_000_000;

/// How long a line may be; a file with a longer one counts as not readable.
const LONGEST_LINE_BYTES: usize = 16_000_000;

/// What is to be shown.
pub(super) struct Wanted {
    /// How many matches to leave out at the start.
    pub(super) skip: u64,
    /// How many to show.
    pub(super) limit: u64,
    /// How many lines around each.
    pub(super) context: usize,
}

/// What was found.
pub(super) struct Hits {
    pub(super) text: String,
    pub(super) shown: u64,
    pub(super) has_more: bool,
    pub(super) binary: u64,
    pub(super) large: u64,
    pub(super) unreadable: u64,
    /// What ended it too early.
    pub(super) stopped_at: Option<&'static str>,
    searched_bytes: u64,
    wanted: Wanted,
    /// How many matches were left out so far.
    skipped: u64,
    searcher: Option<Searcher>,
}

impl Hits {
    pub(super) fn new(wanted: Wanted) -> Self {
        let searcher = SearcherBuilder::new()
            .line_number(true)
            .before_context(wanted.context)
            .after_context(wanted.context)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(LONGEST_LINE_BYTES))
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
            wanted,
            skipped: 0,
            searcher: Some(searcher),
        }
    }

    /// Looks for matches in a file.
    pub(super) fn search(
        &mut self,
        candidate: &Candidate<'_, '_>,
        matcher: &RegexMatcher,
    ) -> ControlFlow<()> {
        let Ok((file, metadata)) = candidate.folder.open_file(candidate.name) else {
            self.unreadable += 1;
            return ControlFlow::Continue(());
        };
        if metadata.len() > LARGEST_FILE_BYTES {
            self.large += 1;
            return ControlFlow::Continue(());
        }
        self.searched_bytes += metadata.len();
        if self.searched_bytes > SEARCHED_BYTES {
            self.stopped_at = Some("it has more than 2 GB of text");
            return ControlFlow::Break(());
        }
        let Some(mut searcher) = self.searcher.take() else {
            return ControlFlow::Break(());
        };
        let before = (self.text.len(), self.shown, self.skipped, self.has_more);
        let mut sink = FileSink {
            path: shown_path(candidate),
            matcher,
            hits: self,
            ahead: String::new(),
            is_after_shown: false,
            is_binary: false,
        };
        let result = searcher.search_reader(matcher, file.take(LARGEST_FILE_BYTES), &mut sink);
        let is_binary = sink.is_binary;
        self.searcher = Some(searcher);
        if is_binary {
            // What looked like a match before the first NUL is none.
            self.text.truncate(before.0);
            (_, self.shown, self.skipped, self.has_more) = before;
            self.binary += 1;
        }
        self.unreadable += u64::from(result.is_err());
        self.flow()
    }

    /// Takes a file for its name.
    pub(super) fn add_name(&mut self, candidate: &Candidate<'_, '_>) -> ControlFlow<()> {
        if self.takes_one_more() {
            self.text.push_str(&shown_path(candidate));
            self.text.push('\n');
        }
        self.flow()
    }

    fn flow(&self) -> ControlFlow<()> {
        match self.has_more {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    /// Whether a match that was come across is to be shown; counts it.
    fn takes_one_more(&mut self) -> bool {
        if self.skipped < self.wanted.skip {
            self.skipped += 1;
            return false;
        }
        if self.shown >= self.wanted.limit || self.text.len() >= TEXT_BYTES {
            self.has_more = true;
            return false;
        }
        self.shown += 1;
        true
    }
}

fn shown_path(candidate: &Candidate<'_, '_>) -> String {
    let path = candidate.folder.path().join(candidate.name);
    show::name(candidate.folder.roots().short(&path).as_os_str())
}

struct FileSink<'s> {
    path: String,
    matcher: &'s RegexMatcher,
    hits: &'s mut Hits,
    /// Lines that are shown if a match follows that is.
    ahead: String,
    is_after_shown: bool,
    is_binary: bool,
}

impl FileSink<'_> {
    /// `path:line: text`, with another mark for a line that is only near a match.
    fn line(&self, number: Option<u64>, mark: char, text: String) -> String {
        let number = number.unwrap_or_default();
        format!("{}{mark}{number}{mark} {text}\n", self.path)
    }
}

impl Sink for FileSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.is_after_shown = self.hits.takes_one_more();
        if self.is_after_shown {
            let start = self.matcher.find(found.bytes()).ok().flatten();
            let start = start.map_or(0, |found| found.start());
            let text = around(found.bytes(), start);
            let line = self.line(found.line_number(), ':', text);
            self.hits.text.push_str(&self.ahead);
            self.hits.text.push_str(&line);
        }
        self.ahead.clear();
        Ok(!self.hits.has_more)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let line = self.line(context.line_number(), '-', around(context.bytes(), 0));
        match context.kind() {
            SinkContextKind::After if self.is_after_shown => self.hits.text.push_str(&line),
            SinkContextKind::After => {}
            SinkContextKind::Before | SinkContextKind::Other => self.ahead.push_str(&line),
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        if self.is_after_shown {
            self.ahead.push_str("--\n");
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

/// The part of a line around its match, without its end.
fn around(line: &[u8], start: usize) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let before = String::from_utf8_lossy(&line[..start.min(line.len())]).into_owned();
    let after = String::from_utf8_lossy(&line[start.min(line.len())..]);
    let skipped = match before.chars().count() + after.chars().count() > LINE_CHARACTERS {
        true => before
            .chars()
            .count()
            .saturating_sub(BEFORE_MATCH_CHARACTERS),
        false => 0,
    };
    let kept: String = before.chars().skip(skipped).collect();
    let shown = show::line(&(kept + &after), LINE_CHARACTERS);
    match skipped {
        0 => shown,
        _ => format!("…{shown}"),
    }
}
