//! The question on a live screen: single keys answer it. A key that was pressed before the question appeared never
//! counts, and neither does a key while the user is still typing.

use super::question::{GrantScope, Question, Reply};
use crate::screen::{self, count};
use crate::terminal::{ANSWER_PAUSE, Colour, Editor, Key, Palette, wrap_prefixed};
use std::iter::repeat;
use std::time::Instant;

/// What a key did.
pub(in crate::commands) enum PromptStep {
    /// The key was not for the question; it belongs to the message that the user is typing.
    NotMine,
    Handled,
    /// Show everything about the call.
    View,
    Reply(Reply),
}

/// A question that waits for a key.
pub(in crate::commands) struct QuestionPrompt {
    pub(in crate::commands) question: Question,
    stage: Stage,
    /// When the question appeared, or the user last pressed a key that did not count.
    quiet_since: Instant,
    is_armed: bool,
    /// Whether the user is in the middle of a message, to which the keys belong.
    is_writing: bool,
    /// Whether the window is too low for the box.
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
            is_writing: false,
            is_cut: false,
            is_viewed: false,
        }
    }

    /// Says whether a part of the box is off the screen. Then no key allows the call before it was viewed.
    pub(in crate::commands) fn set_cut(&mut self, is_cut: bool) {
        self.is_cut = is_cut;
    }

    /// Accepts every key from now on, because the user has viewed the call.
    pub(in crate::commands) fn set_viewed(&mut self) {
        self.is_viewed = true;
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
        true
    }

    /// Ignores keys until the next pause, because the user was away or pasted something.
    pub(in crate::commands) fn disarm(&mut self) {
        self.is_armed = false;
        self.quiet_since = Instant::now();
    }

    /// Whether keys answer the question now.
    pub(in crate::commands) fn is_armed(&self) -> bool {
        self.is_armed
    }

    /// Whether the question is answered when the user switches to mode `accept-edits`.
    pub(in crate::commands) fn is_answered_by_mode(&self) -> bool {
        self.is_armed && self.question.is_accepted_edit
    }

    /// Handles a key.
    pub(in crate::commands) fn handle(&mut self, key: &Key) -> PromptStep {
        if let Key::Ctrl('c') = key {
            return PromptStep::Reply(Reply::Stop);
        }
        if !self.is_armed {
            self.quiet_since = Instant::now();
            return PromptStep::NotMine;
        }
        match &mut self.stage {
            Stage::Keys if matches!(key, Key::Paste(_)) => {
                self.disarm();
                PromptStep::Handled
            }
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
        let letter = match key {
            Key::Escape => return PromptStep::Reply(Reply::Stop),
            Key::Ctrl('d') | Key::Closed => return PromptStep::Reply(Reply::Wait),
            Key::Char(letter) => letter.to_ascii_lowercase(),
            // The mode can be switched, and the process suspended, while a question waits.
            Key::BackTab | Key::Ctrl('z') => return PromptStep::NotMine,
            _ => return PromptStep::Handled,
        };
        if !self
            .question
            .choices()
            .iter()
            .any(|choice| choice.key == letter)
        {
            return PromptStep::Handled;
        }
        if self.must_view() && !matches!(letter, 'v' | 'n' | 'e' | 't') {
            return PromptStep::Handled;
        }
        if let Some(answer) = self.question.simple_answer(letter) {
            return PromptStep::Reply(Reply::Answered(answer));
        }
        match letter {
            'v' => return PromptStep::View,
            'e' | 't' => self.stage = Stage::Text(Editor::default()),
            _ => {
                let scope = if letter == 's' {
                    GrantScope::Session
                } else {
                    GrantScope::Folder
                };
                return self.start_grant(scope);
            }
        }
        PromptStep::Handled
    }

    fn start_grant(&mut self, scope: GrantScope) -> PromptStep {
        let Some(pattern) = self.question.pattern() else {
            return PromptStep::Handled;
        };
        if !self.question.is_editable(pattern) {
            self.stage = Stage::Confirmation(scope);
            return PromptStep::Handled;
        }
        let mut editor = Editor::default();
        editor.set(pattern);
        self.stage = Stage::Pattern {
            scope,
            editor,
            problem: None,
        };
        PromptStep::Handled
    }

    /// Says in words what a pattern would allow.
    fn grant_rows(&self, scope: GrantScope, pattern: &str, columns: usize) -> Vec<String> {
        let place = match scope {
            GrantScope::Session => "in this session",
            GrantScope::Folder => "always in this folder",
        };
        let text = format!("{} {place}", self.question.grant_text(pattern));
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
        let headline = format!("{}?", self.question.headline());
        let headline = wrap_prefixed(&headline, "", "", columns.saturating_sub(2));
        let marks = std::iter::once(screen::frame_mark("└", palette)).chain(repeat(" ".to_owned()));
        let mut rows: Vec<String> = headline
            .iter()
            .zip(marks)
            .map(|(line, mark)| format!("{mark} {}", palette.bold(line)))
            .collect();
        match &self.stage {
            Stage::Keys => {
                for choice in self.question.choices() {
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
                let later = if self.question.can_wait {
                    " · ctrl-d answers later"
                } else {
                    ""
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
                        "the window is too low for the call: v shows it, then the other keys count"
                            .to_owned()
                    }
                    (true, _) => format!("press a key · esc stops the turn{later}{accept}{others}"),
                    (false, true) => format!(
                        "your message comes first: enter queues it, ctrl-u clears it{others}"
                    ),
                    (false, false) => format!("keys count after a short pause{others}"),
                };
                let hint = wrap_prefixed(&hint, "  ", "  ", columns);
                rows.extend(hint.iter().map(|line| palette.dim(line)));
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
