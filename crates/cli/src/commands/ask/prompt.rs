//! The question on a live screen: single keys answer it. A key that was pressed before the question appeared never
//! counts, and neither does a key while the user is still typing.

use super::question::{Choice, GrantScope, Question, Reply};
use crate::screen::{self, count};
use crate::terminal::{ANSWER_PAUSE, ANSWER_SILENCE, Colour, Editor, Key, Palette, wrap_prefixed};
use std::iter::repeat;
use std::time::Instant;

/// What a key did.
pub(in crate::commands) enum PromptStep {
    /// The key belongs to the message that the user is typing, after this text, which the question had taken for an answer.
    NotMine(String),
    Handled,
    /// Show everything about the call.
    View,
    Reply(Reply),
}

/// A question that waits for a key.
pub(in crate::commands) struct QuestionPrompt {
    pub(in crate::commands) question: Question,
    stage: Stage,
    /// When the question appeared, or the user last pressed a key that did not answer.
    quiet_since: Instant,
    is_armed: bool,
    /// A letter that answers unless another one follows at once, or letters that came too soon. They belong to a message if
    /// something else follows.
    undecided: String,
    /// Whether the user is in the middle of a message, to which the keys belong.
    is_writing: bool,
    /// Whether the keys share a few rows, because the window is low.
    is_compact: bool,
    /// Whether a key that answers did not count.
    was_ignored: bool,
    /// Whether the window is too small for the box.
    is_cut: bool,
    /// Whether the user has viewed everything in the pager.
    is_viewed: bool,
}

enum Stage {
    Keys,
    /// The user edits the pattern of a grant.
    Pattern {
        scope: GrantScope,
        editor: Editor,
        problem: Option<String>,
    },
    /// The user confirms a grant whose pattern cannot be edited.
    Confirmation(GrantScope),
    /// The user types why not, or what happened.
    Text(Editor),
}

impl QuestionPrompt {
    pub(in crate::commands) fn new(question: Question) -> Self {
        Self {
            question,
            stage: Stage::Keys,
            quiet_since: Instant::now(),
            is_armed: false,
            undecided: String::new(),
            is_writing: false,
            is_compact: false,
            was_ignored: false,
            is_cut: false,
            is_viewed: false,
        }
    }

    /// Returns what the user has written of a reason or a pattern.
    pub(in crate::commands) fn into_written(self) -> Option<String> {
        let mut editor = match self.stage {
            Stage::Text(editor) => editor,
            Stage::Keys | Stage::Pattern { .. } | Stage::Confirmation(_) => return None,
        };
        (!editor.is_empty()).then(|| editor.take())
    }

    /// Says whether a part of the box is off the screen. Then no key allows the call before it was viewed.
    pub(in crate::commands) fn set_cut(&mut self, is_cut: bool) {
        self.is_cut = is_cut;
    }

    /// Says whether the keys share a few rows.
    pub(in crate::commands) fn set_compact(&mut self, is_compact: bool) {
        self.is_compact = is_compact;
    }

    /// Accepts every key from now on, because the user has viewed the call.
    pub(in crate::commands) fn set_viewed(&mut self) {
        self.is_viewed = true;
        self.was_ignored = false;
    }

    /// Whether Escape stops the turn. It does not say what became of an interrupted call, which is asked again later.
    fn stops_turn(&self) -> bool {
        self.question.is_permission() || !self.question.can_wait
    }

    fn leaving_reply(&self) -> Reply {
        if self.stops_turn() {
            Reply::Stop
        } else {
            Reply::Wait
        }
    }

    fn must_view(&self) -> bool {
        self.is_cut && !self.is_viewed
    }

    /// Whether keys count from now on: not while the user pauses in the middle of a message. Returns true once, when that
    /// becomes so.
    pub(in crate::commands) fn arm(&mut self, is_writing: bool) -> bool {
        self.is_writing = is_writing;
        if self.is_armed || is_writing || self.quiet_since.elapsed() < ANSWER_PAUSE {
            return false;
        }
        self.is_armed = true;
        self.was_ignored = false;
        self.undecided.clear();
        true
    }

    /// Ignores keys until the next pause, because the user was away or pasted something.
    pub(in crate::commands) fn disarm(&mut self) {
        self.is_armed = false;
        self.undecided.clear();
        self.quiet_since = Instant::now();
    }

    /// Whether keys answer the question now.
    pub(in crate::commands) fn is_armed(&self) -> bool {
        self.is_armed
    }

    /// Whether the question is answered when the user switches to mode `accept-edits`.
    pub(in crate::commands) fn is_answered_by_mode(&self) -> bool {
        self.is_armed && self.question.is_accepted_edit && !self.must_view()
    }

    /// Handles a key. `is_writing` says whether the user is in the middle of a message.
    pub(in crate::commands) fn handle(&mut self, key: &Key, is_writing: bool) -> PromptStep {
        if *key == Key::Ctrl('c') && !is_writing {
            return PromptStep::Reply(self.leaving_reply());
        }
        if *key == Key::Escape && !is_writing && !self.is_armed && !self.stops_turn() {
            return PromptStep::Reply(Reply::Wait);
        }
        if self.is_armed && self.undecided.is_empty() {
            return self.handle_armed(key);
        }
        self.quiet_since = Instant::now();
        match key {
            // Some users confirm a single key with Enter.
            Key::Enter if !self.undecided.is_empty() => self.undecided.push('\n'),
            // An answer that came too soon starts no message.
            Key::Char(letter) if !self.is_armed && !is_writing && self.is_choice(*letter) => {
                self.undecided.push(*letter);
                self.was_ignored = true;
            }
            _ => {
                let text = std::mem::take(&mut self.undecided);
                self.disarm();
                return PromptStep::NotMine(text);
            }
        }
        PromptStep::Handled
    }

    fn handle_armed(&mut self, key: &Key) -> PromptStep {
        match &mut self.stage {
            Stage::Keys => self.handle_choice(key),
            Stage::Pattern {
                scope,
                editor,
                problem,
            } => match key {
                Key::Escape => {
                    self.stage = Stage::Keys;
                    PromptStep::Handled
                }
                Key::Enter => match self.question.grant(*scope, editor.text()) {
                    Ok(answer) => PromptStep::Reply(Reply::Answered(answer)),
                    Err(why) => {
                        *problem = Some(why);
                        PromptStep::Handled
                    }
                },
                key => {
                    editor.handle(key);
                    PromptStep::Handled
                }
            },
            Stage::Confirmation(scope) => match (key, self.question.pattern()) {
                (Key::Enter, Some(pattern)) => match self.question.grant(*scope, pattern) {
                    Ok(answer) => PromptStep::Reply(Reply::Answered(answer)),
                    Err(_) => PromptStep::Handled,
                },
                // The user is typing something else.
                _ => {
                    self.stage = Stage::Keys;
                    self.disarm();
                    PromptStep::Handled
                }
            },
            Stage::Text(editor) => match key {
                Key::Escape => {
                    self.stage = Stage::Keys;
                    PromptStep::Handled
                }
                Key::Enter => match self.question.text_answer(editor.text()) {
                    Some(answer) => PromptStep::Reply(Reply::Answered(answer)),
                    None => PromptStep::Handled,
                },
                key => {
                    editor.handle(key);
                    PromptStep::Handled
                }
            },
        }
    }

    fn handle_choice(&mut self, key: &Key) -> PromptStep {
        match key {
            Key::Escape => PromptStep::Reply(self.leaving_reply()),
            Key::Ctrl('d') => PromptStep::Reply(Reply::Wait),
            Key::Char(letter) if self.is_choice(*letter) => {
                self.undecided.push(*letter);
                self.quiet_since = Instant::now();
                PromptStep::Handled
            }
            // A message or a command starts here: none of its letters is an answer.
            Key::Char(_) | Key::Paste(_) => {
                self.disarm();
                PromptStep::NotMine(String::new())
            }
            // The mode can be switched, and the process suspended, while a question waits.
            Key::BackTab | Key::Ctrl('z') => PromptStep::NotMine(String::new()),
            _ => PromptStep::Handled,
        }
    }

    /// Returns when the last key counts, if it does unless another one follows.
    pub(in crate::commands) fn settles_at(&self) -> Option<Instant> {
        let is_open = self.is_armed && !self.undecided.is_empty();
        is_open.then(|| self.quiet_since + ANSWER_SILENCE)
    }

    /// Accepts the last letter, because no other one has followed it.
    pub(in crate::commands) fn settle(&mut self) -> PromptStep {
        let Some(letter) = std::mem::take(&mut self.undecided).chars().next() else {
            return PromptStep::Handled;
        };
        let letter = letter.to_ascii_lowercase();
        if self.must_view() && !matches!(letter, 'v' | 'n' | 'e' | 't') {
            self.was_ignored = true;
            return PromptStep::Handled;
        }
        if let Some(answer) = self.question.simple_answer(letter) {
            return PromptStep::Reply(Reply::Answered(answer));
        }
        match letter {
            'v' => return PromptStep::View,
            'e' | 't' => self.stage = Stage::Text(Editor::default()),
            's' => self.start_grant(GrantScope::Session),
            _ => self.start_grant(GrantScope::Folder),
        }
        PromptStep::Handled
    }

    fn is_choice(&self, letter: char) -> bool {
        let choices = self.question.choices();
        choices
            .iter()
            .any(|it| it.key == letter.to_ascii_lowercase())
    }

    fn start_grant(&mut self, scope: GrantScope) {
        let Some(pattern) = self.question.pattern() else {
            return;
        };
        self.stage = if self.question.is_editable(pattern) {
            let mut editor = Editor::default();
            editor.set(pattern);
            Stage::Pattern {
                scope,
                editor,
                problem: None,
            }
        } else {
            Stage::Confirmation(scope)
        };
    }

    /// Says in words what a pattern would allow.
    fn grant_rows(&self, scope: GrantScope, pattern: &str, columns: usize) -> Vec<String> {
        let text = self.question.grant_text(scope, pattern);
        wrap_prefixed(&text, "  ", "  ", columns)
    }

    /// Returns the rows below the box, and the cursor if the user types a text. `others` is the number of questions that
    /// this turn has asked since; those that were pending before also follow.
    pub(in crate::commands) fn rows(
        &self,
        columns: usize,
        others: usize,
        palette: &Palette,
    ) -> (Vec<String>, Option<(usize, usize)>) {
        let headline = self.question.headline();
        let headline = wrap_prefixed(&headline, "", "", columns.saturating_sub(2));
        let marks = std::iter::once(screen::frame_mark("└", palette)).chain(repeat(" ".to_owned()));
        let mut rows: Vec<String> = headline
            .iter()
            .zip(marks)
            .map(|(line, mark)| format!("{mark} {}", palette.bold(line)))
            .collect();
        match &self.stage {
            Stage::Keys => {
                rows.extend(if self.is_compact {
                    compact_rows(&self.question.choices(), columns)
                } else {
                    choice_rows(&self.question.choices(), columns, palette)
                });
                let leave = match (self.stops_turn(), self.question.can_wait) {
                    (false, _) => "esc answers later",
                    (true, true) => "esc stops the turn · ctrl-d answers later",
                    (true, false) => "esc stops the turn",
                };
                let accept = if self.question.is_accepted_edit {
                    " · shift-tab accepts edits"
                } else {
                    ""
                };
                let others = match others.max(self.question.more) {
                    0 => String::new(),
                    others => format!(" · {} after this", count(others as u64, "question")),
                };
                let hint = match (self.is_armed, self.is_writing) {
                    (true, _) if self.must_view() => {
                        "the window is too small for the call: v shows it, then the other keys count"
                            .to_owned()
                    }
                    (true, _) => format!("press a key · {leave}{accept}{others}"),
                    (false, true) => format!(
                        "your message comes first: enter queues it, ctrl-u clears it{others}"
                    ),
                    (false, false) => format!("keys count after a short pause{others}"),
                };
                let hint = wrap_prefixed(&hint, "  ", "  ", columns);
                rows.extend(hint.iter().map(|line| {
                    if self.was_ignored {
                        palette.colour(line, Colour::Yellow)
                    } else {
                        palette.dim(line)
                    }
                }));
                (rows, None)
            }
            Stage::Pattern {
                scope,
                editor,
                problem,
            } => {
                rows.extend(self.grant_rows(*scope, editor.text(), columns));
                if let Some(problem) = problem {
                    let line = format!("not granted: {problem}");
                    let lines = wrap_prefixed(&line, "  ", "  ", columns);
                    rows.extend(lines.iter().map(|line| palette.colour(line, Colour::Red)));
                }
                let cursor = push_input(&mut rows, "  for calls like > ", editor, columns);
                rows.push(palette.dim("  enter grants it · esc goes back"));
                (rows, Some(cursor))
            }
            Stage::Confirmation(scope) => {
                let pattern = self.question.pattern();
                rows.extend(pattern.map_or(Vec::new(), |pattern| {
                    self.grant_rows(*scope, pattern, columns)
                }));
                rows.push(palette.dim("  enter grants it · esc goes back"));
                (rows, None)
            }
            Stage::Text(editor) => {
                let label = if self.question.is_permission() {
                    "  why not? > "
                } else {
                    "  what happened? > "
                };
                let cursor = push_input(&mut rows, label, editor, columns);
                rows.push(palette.dim("  enter sends it · esc goes back"));
                (rows, Some(cursor))
            }
        }
    }
}

/// Returns the keys below each other, each with what it means.
fn choice_rows(choices: &[Choice], columns: usize, palette: &Palette) -> Vec<String> {
    let mut rows = Vec::new();
    for choice in choices {
        let key = palette.colour(&choice.key.to_string(), Colour::Cyan);
        let meaning = wrap_prefixed(&choice.meaning, "", "", columns.saturating_sub(6));
        for (index, line) in meaning.iter().enumerate() {
            rows.push(if index == 0 {
                format!("  {key}  {line}")
            } else {
                format!("     {line}")
            });
        }
    }
    rows
}

/// Returns the keys beside each other. What a broader grant covers is said when its key is pressed, before it counts.
fn compact_rows(choices: &[Choice], columns: usize) -> Vec<String> {
    let choices = choices.iter();
    let texts: Vec<String> = choices
        .map(|it| format!("{} {}", it.key, it.short))
        .collect();
    wrap_prefixed(&texts.join(" · "), "  ", "  ", columns)
}

/// Adds an input line with its label, and returns the position of the cursor.
fn push_input(
    rows: &mut Vec<String>,
    label: &str,
    editor: &Editor,
    columns: usize,
) -> (usize, usize) {
    let indent = label.chars().count();
    let shown = editor.rows(columns.saturating_sub(indent + 1), 3);
    let (row, column) = shown.cursor;
    let first = rows.len();
    for (index, line) in shown.rows.iter().enumerate() {
        rows.push(if index == 0 {
            format!("{label}{line}")
        } else {
            format!("{}{line}", " ".repeat(indent))
        });
    }
    (first + row, indent + column)
}
