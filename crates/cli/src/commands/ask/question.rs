//! A question about a call: what it shows, which keys answer it, and what a broader answer would allow.

use super::super::ask::reason;
use crate::screen::{self, PREVIEW_ROWS, RequestDetail, call_question, call_text};
use lango_core::{
    ApprovalAnswer, ApprovalId, ApprovalQuestion, PendingApproval, RuleSubject, Text,
};
use lango_engine::{content_bound_pattern, edited_grant_problem};

/// The least rows of a preview.
const MIN_PREVIEW_ROWS: usize = 5;

/// How much of a pattern is shown with the key that grants it.
const GRANT_CHARACTERS: usize = 120;

/// Shortens a text in its middle: a command can do the most important thing at its end.
fn both_ends(text: &str, max: usize) -> String {
    let length = text.chars().count();
    if length <= max {
        return text.to_owned();
    }
    let start: String = text.chars().take(max / 2).collect();
    let end: String = text.chars().skip(length - max / 2).collect();
    format!("{start} … {} characters … {end}", length - 2 * (max / 2))
}

/// A question to the user.
pub(in crate::commands) struct Question {
    pub(super) waiting: PendingApproval,
    pub(super) folder: Text,
    /// Everything that the call would change, as its tool describes it.
    pub(super) preview: Option<String>,
    /// What patterns for this tool are matched against.
    pub(super) subject: RuleSubject,
    /// Whether switching to mode `accept-edits` answers the question.
    pub(super) is_accepted_edit: bool,
    /// Whether the turn can stay pending.
    pub(super) can_wait: bool,
    /// The number of other pending requests.
    pub(super) more: usize,
}

/// What the user did at the question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::commands) enum Reply {
    Answered(ApprovalAnswer),
    /// Stop the turn.
    Stop,
    /// Leave the request pending.
    Wait,
}

/// A key that answers the question, and what it means.
pub(super) struct Choice {
    pub(super) key: char,
    pub(super) meaning: String,
    /// The meaning in a word or two, for a low window.
    pub(super) short: &'static str,
}

/// The answers that also cover later calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GrantScope {
    Session,
    Folder,
}

impl Question {
    /// Returns the question for a screen where the mode cannot be switched.
    pub(in crate::commands) fn without_modes(self) -> Self {
        Self {
            is_accepted_edit: false,
            ..self
        }
    }

    /// Returns the id of the request.
    pub(in crate::commands) fn id(&self) -> &ApprovalId {
        &self.waiting.request.id
    }

    /// Whether the question is about permission; otherwise it is about a call that may have run.
    pub(super) fn is_permission(&self) -> bool {
        self.waiting.request.question.is_permission()
    }

    /// Returns the box that shows the call: with this many rows, unless even the shortest preview needs more.
    pub(in crate::commands) fn text(&self, width: usize, room: usize) -> String {
        let mut rows = PREVIEW_ROWS;
        loop {
            let shown = RequestDetail::Preview(self.preview.as_deref(), rows);
            let text = screen::request(&self.waiting, shown, 0, width);
            let surplus = text.lines().count().saturating_sub(room);
            if surplus == 0 || rows <= MIN_PREVIEW_ROWS {
                return text;
            }
            rows = rows.saturating_sub(surplus).max(MIN_PREVIEW_ROWS);
        }
    }

    /// Returns the box for a plain screen, with the number of questions that follow.
    pub(super) fn plain_text(&self, width: usize) -> String {
        let shown = RequestDetail::Preview(self.preview.as_deref(), PREVIEW_ROWS);
        screen::request(&self.waiting, shown, self.more, width)
    }

    /// Returns everything about the call: where it runs, the full preview, and every argument.
    pub(in crate::commands) fn full_text(&self, width: usize) -> String {
        let shown = RequestDetail::Everything(self.preview.as_deref());
        let text = screen::request(&self.waiting, shown, 0, width);
        let folder = screen::escape_invisible(&self.waiting.request.folder);
        if folder.is_empty() {
            text
        } else {
            format!("{text}\n│ folder: {folder}")
        }
    }

    /// Returns the question in a few words: `edit src/parser.py?`.
    pub(super) fn headline(&self) -> String {
        let request = &self.waiting.request;
        let tool = request.tool.as_str();
        let question = match request.question {
            ApprovalQuestion::Permission => call_question(tool, &request.arguments),
            ApprovalQuestion::UnknownOutcome | ApprovalQuestion::ContinueTurn => {
                format!("what happened? {}", call_text(tool, &request.arguments))
            }
        };
        screen::escape_invisible(&question)
    }

    /// Returns the pattern for a lasting grant, if one can be offered. Without persistence no grant can outlast the
    /// call.
    pub(super) fn pattern(&self) -> Option<&Text> {
        let pattern = self.waiting.request.pattern.as_ref();
        pattern.filter(|_| self.can_wait)
    }

    /// Returns the keys that answer, each with its meaning in plain words.
    pub(super) fn choices(&self) -> Vec<Choice> {
        let choice = |key, short, meaning: &str| Choice {
            key,
            meaning: meaning.to_owned(),
            short,
        };
        if !self.is_permission() {
            return vec![
                choice('r', "run again", "run it again"),
                choice(
                    's',
                    "skip",
                    "skip it; the agent is told that the outcome is unknown",
                ),
                choice('t', "tell what happened", "tell what happened"),
                choice('v', "view", "view everything"),
            ];
        }
        let mut choices = vec![choice('y', "once", "yes, once")];
        if let Some(pattern) = self.pattern() {
            let session = self.grant_text(GrantScope::Session, pattern);
            let session = format!("yes, and {session}");
            choices.push(choice('s', "this session …", &session));
            let folder = self.grant_text(GrantScope::Folder, pattern);
            let folder = format!("yes, and {folder}");
            choices.push(choice('p', "this folder …", &folder));
        }
        choices.push(choice('n', "no", "no"));
        choices.push(choice('e', "no, because …", "no, and say why"));
        choices.push(choice('v', "view", "view everything"));
        choices
    }

    /// Describes in plain words what a pattern would allow from now on.
    pub(super) fn grant_text(&self, scope: GrantScope, pattern: &str) -> String {
        let place = match scope {
            GrantScope::Session => "in this session",
            GrantScope::Folder => "always in this folder",
        };
        let request = &self.waiting.request;
        let agent = screen::escape_invisible(request.agent.as_str());
        let tool = request.tool.as_str();
        let (pattern, is_bound) = match content_bound_pattern(pattern) {
            Some(unbound) => (unbound, true),
            None => (pattern, false),
        };
        let is_any = pattern.trim() == "*";
        let pattern = both_ends(&screen::escape_invisible(pattern), GRANT_CHARACTERS);
        let what = match self.subject {
            RuleSubject::Command if is_any => "run any command".to_owned(),
            RuleSubject::Command => format!("run `{pattern}`"),
            RuleSubject::Path => {
                let verb = match tool {
                    "fs_write" => "write",
                    "fs_edit" => "edit",
                    "fs_delete" => "delete",
                    "fs_mkdir" => "create",
                    _ => "change",
                };
                if is_any {
                    format!("{verb} any file (also files that programs execute)")
                } else if pattern.contains(['*', '?']) {
                    format!(
                        "{verb} files that match `{pattern}` (also in subfolders, and also files that programs execute)"
                    )
                } else {
                    format!("{verb} `{pattern}`")
                }
            }
            RuleSubject::Site if is_any => "use any site".to_owned(),
            RuleSubject::Site => format!("use the site `{pattern}`"),
            RuleSubject::Arguments if is_any => format!("use {tool} with any arguments"),
            RuleSubject::Arguments if is_bound => format!(
                "use {tool} with arguments like `{pattern}`, as long as what it works on stays the same"
            ),
            RuleSubject::Arguments => format!("use {tool} with arguments like `{pattern}`"),
        };
        format!("{place} let {agent} {what}")
    }

    /// Returns the answer that grants this pattern, or why it cannot be granted.
    pub(super) fn grant(&self, scope: GrantScope, edited: &str) -> Result<ApprovalAnswer, String> {
        if self.pattern().is_none() {
            return Err("each call needs its own answer".to_owned());
        }
        let pattern: Text = edited.trim().into();
        let request = &self.waiting.request;
        if let Some(problem) = edited_grant_problem(self.subject, request, &pattern) {
            return Err(problem);
        }
        let folder = Text::clone(&self.folder);
        Ok(match scope {
            GrantScope::Session => ApprovalAnswer::Session { pattern },
            GrantScope::Folder => ApprovalAnswer::Always { pattern, folder },
        })
    }

    /// Whether the user can edit the offered pattern. One with control characters stays as it is.
    pub(super) fn is_editable(&self, pattern: &str) -> bool {
        screen::escape_invisible(pattern) == pattern
    }

    /// Returns the answer of a key that needs no further text.
    pub(super) fn simple_answer(&self, key: char) -> Option<ApprovalAnswer> {
        match (self.is_permission(), key) {
            (true, 'y') => Some(ApprovalAnswer::Once),
            (true, 'n') => Some(ApprovalAnswer::No { reason: None }),
            (false, 'r') => Some(ApprovalAnswer::Retry),
            (false, 's') => Some(ApprovalAnswer::Skip),
            _ => None,
        }
    }

    /// Returns the answer that consists of a text of the user: why not, or what happened. `None` if it is empty and a
    /// text is needed.
    pub(super) fn text_answer(&self, text: &str) -> Option<ApprovalAnswer> {
        if self.is_permission() {
            return Some(ApprovalAnswer::No {
                reason: reason(text),
            });
        }
        let text = text.trim();
        (!text.is_empty()).then(|| ApprovalAnswer::Happened { text: text.into() })
    }
}
