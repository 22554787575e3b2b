//! Reads lines from the user, with a history shared by all chats. Line editing blocks, so it runs on a separate
//! thread.

use crate::screen;
use lango::app::Failure;
use lango::app::attach::{mentioned_files, read_files};
use lango::app::terminal_state::TerminalState;
use lango_core::UserInput;
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use std::io::IsTerminal;
use std::path::PathBuf;

/// What the user entered at the prompt.
pub(super) enum Line {
    Text(String),
    /// Ctrl-C.
    Cleared,
    /// Ctrl-D.
    End,
}

pub(super) struct LineInput {
    editor: Option<DefaultEditor>,
    history: PathBuf,
    /// The terminal settings before the first line.
    terminal: TerminalState,
}

impl LineInput {
    /// Opens a prompt with the history of earlier chats, if there is one.
    pub(super) fn open(history: PathBuf) -> Result<Self, Failure> {
        let mut editor = DefaultEditor::new().map_err(|error| terminal_failure(&error))?;
        let _ = editor.load_history(&history);
        Ok(Self {
            editor: Some(editor),
            history,
            terminal: TerminalState::of_input(),
        })
    }

    /// Restores the terminal after line editing was abandoned.
    pub(super) fn restore_terminal(&self) {
        self.terminal.restore();
    }

    /// Turns a line into a question, with the files that it mentions. Mentions only count if standard input is a
    /// terminal.
    pub(super) fn as_question(&self, line: &str) -> Result<UserInput, Failure> {
        if !std::io::stdin().is_terminal() {
            return Ok(UserInput::from_pipe(line, 0));
        }
        let mut question = UserInput::from(line);
        question.files = read_files(&mentioned_files(line))?;
        Ok(question)
    }

    /// Waits for the next line.
    pub(super) async fn next(&mut self) -> Result<Line, Failure> {
        let Some(mut editor) = self.editor.take() else {
            return Ok(Line::End);
        };
        let read = tokio::task::spawn_blocking(move || (editor.readline("\n> "), editor)).await;
        let (line, mut editor) = read.map_err(|error| Failure::failed(error.to_string()))?;
        let line = match line {
            Ok(line) => {
                let _ = editor.add_history_entry(line.as_str());
                Line::Text(line)
            }
            Err(ReadlineError::Interrupted) => Line::Cleared,
            Err(ReadlineError::Eof) => Line::End,
            Err(error) => return Err(terminal_failure(&error)),
        };
        if matches!(line, Line::Text(_)) {
            self.save(&mut editor);
        }
        self.editor = Some(editor);
        Ok(line)
    }

    /// Saves the history. A failure is printed once and does not end the chat.
    fn save(&mut self, editor: &mut DefaultEditor) {
        let folder = self.history.parent().map(std::fs::create_dir_all);
        let saved = folder.transpose().map_err(|error| error.to_string());
        let saved = saved.and_then(|_| {
            editor
                .save_history(&self.history)
                .map_err(|error| error.to_string())
        });
        if let Err(error) = saved
            && !self.history.as_os_str().is_empty()
        {
            screen::say(&format!(
                "cannot save the history to {}: {error}",
                self.history.display()
            ));
            self.history = PathBuf::new();
        }
    }
}

fn terminal_failure(error: &ReadlineError) -> Failure {
    Failure::failed(format!("cannot read from the terminal: {error}"))
}
