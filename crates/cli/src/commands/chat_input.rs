//! The input of a chat: the message that the user types, its completions, messages that wait for the running turn, and
//! the status line.

mod menu;
mod status;

use crate::screen::{count, frame_mark};
use crate::terminal::{Colour, Editor, History, Key, LiveFrame, Palette, fit, wrap_prefixed};
use lango_core::text::sanitize;
use lango_core::{AttachedFile, PermissionMode};
use lango_engine::ModeSwitch;
use menu::Menu;
pub(super) use status::ChatStatus;
use status::next_mode;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The most rows of the message that are shown, and the most messages that can wait.
const MAX_INPUT_ROWS: usize = 8;
const MAX_QUEUED: usize = 20;

/// The longest text before the cursor for which there is a menu.
const MAX_MENU_TEXT: usize = 16 * 1024;

/// What a key means for the chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum InputAction {
    None,
    /// The user sent a message or a command.
    Submit(String),
    /// Escape, or Ctrl-C without a message: stop what is running.
    Cancel,
    /// Ctrl-D at an empty input.
    Leave,
    /// Ctrl-O: show the full output of a tool.
    ShowOutput,
    /// Ctrl-G: write the message in an editor.
    Edit,
    /// Ctrl-L: clear the screen.
    Clear,
    /// Ctrl-Z: stop the process until the shell continues it.
    Suspend,
}

/// The input of a chat.
pub(super) struct ChatInput {
    editor: Editor,
    history: History,
    search: Option<HistorySearch>,
    /// The menu for the text before the cursor. It may list a folder, which takes time.
    menu: (String, Option<Rc<Menu>>),
    /// The selected row of the menu.
    selected: usize,
    /// The user closed the menu for the current word.
    is_menu_closed: bool,
    queued: VecDeque<String>,
    /// Whether text of the message was pasted.
    has_pasted: bool,
    /// The models that complete what follows `/model`.
    pub(super) models: Vec<String>,
    /// The files to attach to the next message.
    pub(super) attachments: Vec<ReadAttachment>,
    folder: PathBuf,
    modes: ModeSwitch,
    pub(super) status: ChatStatus,
    /// A notice below the input, until the next key.
    notice: Option<String>,
}

/// A file that was read when the user attached it.
pub(super) struct ReadAttachment {
    /// The path that the user wrote.
    pub(super) path: String,
    pub(super) file: AttachedFile,
}

struct HistorySearch {
    text: String,
    skip: usize,
    /// What the user was writing before.
    written: String,
}

impl ChatInput {
    pub(super) fn new(history: &Path, folder: &Path, modes: ModeSwitch) -> Self {
        Self {
            editor: Editor::default(),
            history: History::open(history),
            search: None,
            menu: (String::new(), None),
            selected: 0,
            is_menu_closed: false,
            queued: VecDeque::new(),
            has_pasted: false,
            models: Vec::new(),
            attachments: Vec::new(),
            folder: folder.to_owned(),
            modes,
            status: ChatStatus::default(),
            notice: None,
        }
    }

    /// Adds a message that is sent after the running turn.
    pub(super) fn queue(&mut self, message: String) {
        if self.queued.len() < MAX_QUEUED {
            self.queued.push_back(message);
        } else {
            self.editor.set(&message);
            self.notice = Some(format!("{MAX_QUEUED} messages wait already"));
        }
    }

    /// Returns the next message that waits.
    pub(super) fn next_queued(&mut self) -> Option<String> {
        self.queued.pop_front()
    }

    /// Clears the queue, because the turn was stopped. The last message goes to the editor; all are in the history.
    pub(super) fn return_queued(&mut self) {
        let count = self.queued.len();
        let Some(last) = self.queued.drain(..).next_back() else {
            return;
        };
        let is_returned = self.editor.is_empty();
        if is_returned {
            self.editor.set(&last);
        }
        self.notice = match count {
            1 if is_returned => Some("the queued message was not sent; enter sends it".to_owned()),
            1 => Some("the queued message was not sent; ↑ shows it".to_owned()),
            count => Some(format!(
                "{count} queued messages were not sent; ↑ shows them"
            )),
        };
    }

    /// Puts a message back into the editor, because it cannot be sent now.
    pub(super) fn return_message(&mut self, message: &str) {
        if self.editor.is_empty() {
            self.editor.set(message);
        }
    }

    /// Shows a notice below the input until the next key.
    pub(super) fn notify(&mut self, notice: &str) {
        self.notice = Some(notice.to_owned());
    }

    /// Removes the notice, because what it is about has ended.
    pub(super) fn clear_notice(&mut self) {
        self.notice = None;
    }

    /// Handles a key.
    pub(super) fn handle(&mut self, key: &Key) -> InputAction {
        self.notice = None;
        if self.search.is_some() {
            return self.handle_search(key);
        }
        if let Some(action) = self.handle_menu(key) {
            return action;
        }
        match key {
            Key::Ctrl('c') if !self.editor.is_empty() => {
                self.editor.take();
            }
            Key::Ctrl('c') if !self.attachments.is_empty() => {
                self.attachments.clear();
                self.notice = Some("the attached files were removed".to_owned());
            }
            Key::Ctrl('c') | Key::Escape => return InputAction::Cancel,
            Key::Ctrl('d') if self.editor.is_empty() => return InputAction::Leave,
            Key::Ctrl('o') => return InputAction::ShowOutput,
            Key::Ctrl('g') => return InputAction::Edit,
            Key::Ctrl('l') => return InputAction::Clear,
            Key::Ctrl('z') => return InputAction::Suspend,
            Key::Ctrl('r') => {
                self.search = Some(HistorySearch {
                    text: String::new(),
                    skip: 0,
                    written: self.editor.take(),
                });
            }
            Key::BackTab => self.modes.set(next_mode(self.modes.get())),
            Key::Up if !self.queued.is_empty() => {
                // The last message that waits can be changed. The history has the others too, and they would be sent
                // twice.
                if self.editor.is_empty() {
                    let last = self.queued.pop_back().unwrap_or_default();
                    self.editor.set(&last);
                } else {
                    self.editor.handle(key);
                }
            }
            key => {
                let is_handled = self.edit(key);
                if *key == Key::Enter && !is_handled {
                    return self.submit();
                }
            }
        }
        InputAction::None
    }

    /// Whether the user is in the middle of a message.
    pub(super) fn is_writing(&self) -> bool {
        !self.editor.is_empty() || self.search.is_some()
    }

    /// Returns the mode that the status line shows.
    pub(super) fn mode(&self) -> PermissionMode {
        self.modes.get()
    }

    /// Edits the message. Returns whether the editor handled the key.
    fn edit(&mut self, key: &Key) -> bool {
        let before = self.editor.before_cursor().len();
        self.has_pasted &= !self.editor.is_empty();
        self.has_pasted |= matches!(key, Key::Paste(_));
        if self.editor.handle(key) {
            self.is_menu_closed &= self.editor.before_cursor().len() == before;
            self.selected = 0;
            if self.editor.is_full() {
                self.notice = Some(
                    "a message has at most 1 MB; the rest was left out (attach a file with @path)"
                        .to_owned(),
                );
            }
            return true;
        }
        let entry = match key {
            Key::Up => self.history.older(self.editor.text()).map(str::to_owned),
            Key::Down => self.history.newer(),
            _ => None,
        };
        if let Some(entry) = entry {
            self.editor.set(&entry);
        }
        false
    }

    fn submit(&mut self) -> InputAction {
        if self.editor.text().trim().is_empty() {
            self.editor.take();
            return InputAction::None;
        }
        if std::mem::take(&mut self.has_pasted) && self.editor.text().trim_start().starts_with('!')
        {
            let notice =
                "pasted text starts with `!`: enter runs it as a command, ctrl-c clears it";
            self.notice = Some(notice.to_owned());
            return InputAction::None;
        }
        let message = self.editor.take();
        if let Err(error) = self.history.add(&message) {
            self.notice = Some(format!("the history cannot be saved: {error}"));
        }
        InputAction::Submit(message)
    }

    fn handle_search(&mut self, key: &Key) -> InputAction {
        let Some(search) = &mut self.search else {
            return InputAction::None;
        };
        match key {
            Key::Ctrl('r') => search.skip += 1,
            Key::Char(letter) => {
                search.text.push(*letter);
                search.skip = 0;
            }
            Key::Backspace => {
                search.text.pop();
                search.skip = 0;
            }
            Key::Escape | Key::Ctrl('c' | 'g') => {
                self.editor.set(&search.written.clone());
                self.search = None;
            }
            _ => {
                let entry = self.history.search(&search.text, search.skip);
                let entry = entry.unwrap_or(&search.written).to_owned();
                self.editor.set(&entry);
                self.search = None;
                // Enter only takes the entry, so that it can be checked before it is sent.
                if !matches!(key, Key::Enter | Key::Tab) {
                    self.edit(key);
                }
            }
        }
        InputAction::None
    }

    fn menu(&mut self) -> Option<Rc<Menu>> {
        if self.is_menu_closed {
            return None;
        }
        // A choice would be joined to what follows.
        if self.editor.is_before_letter() {
            return None;
        }
        let text = self.editor.before_cursor();
        // Each key would read a long message, and input that arrives all at once takes a key for each letter.
        if text.len() > MAX_MENU_TEXT {
            return None;
        }
        if self.menu.0 != text {
            let menu = Menu::for_text(text, &self.folder, &self.models).map(Rc::new);
            self.menu = (text.to_owned(), menu);
        }
        self.menu.1.clone()
    }

    /// Handles a key while the menu is open. Returns `None` if the key is for the editor.
    fn handle_menu(&mut self, key: &Key) -> Option<InputAction> {
        let menu = self.menu()?;
        let selected = self.selected.min(menu.last());
        let text = menu.text(selected);
        match key {
            Key::Up => self.selected = selected.saturating_sub(1),
            Key::Down => self.selected = (selected + 1).min(menu.last()),
            Key::Escape => self.is_menu_closed = true,
            Key::Tab => {
                let space = if text.ends_with('/') { "" } else { " " };
                let text = format!("{text}{space}");
                self.editor.replace_before_cursor(menu.replaced, &text);
                self.selected = 0;
            }
            Key::Enter if menu.is_command => {
                // Nothing is chosen if the user has written nothing of it.
                if menu.replaced > 0 || selected > 0 {
                    self.editor.replace_before_cursor(menu.replaced, text);
                }
                self.selected = 0;
                return Some(self.submit());
            }
            // The path is complete already.
            Key::Enter if self.editor.before_cursor().ends_with(text) => return None,
            Key::Enter => {
                self.editor.replace_before_cursor(menu.replaced, text);
                self.selected = 0;
            }
            _ => return None,
        }
        Some(InputAction::None)
    }

    /// Adds the messages that wait, the files that are attached, the message with its menu, and the status line.
    pub(super) fn push_rows(&mut self, frame: &mut LiveFrame, columns: usize, palette: &Palette) {
        self.push_waiting(frame, columns, palette);
        self.push_message(frame, columns, palette);
        self.push_status(frame, columns, palette);
    }

    /// Adds a row for each message that waits and each file that is attached.
    pub(super) fn push_waiting(&self, frame: &mut LiveFrame, columns: usize, palette: &Palette) {
        let last = self.queued.len().saturating_sub(1);
        for (index, message) in self.queued.iter().enumerate() {
            let hint = if index == last && self.editor.is_empty() {
                " · ↑ takes it back"
            } else {
                ""
            };
            let room = columns.saturating_sub("queued: ".len() + hint.chars().count());
            let line = format!(
                "queued: {}{hint}",
                crate::screen::one_line(message, room.max(10))
            );
            frame.rows.push(palette.dim(&fit(&line, columns)));
        }
        for file in &self.attachments {
            let line = format!("attached: {} · ctrl-c removes it", sanitize(&file.path));
            frame.rows.push(palette.dim(&fit(&line, columns)));
        }
    }

    /// Adds one row for all messages that wait, so that they leave room for a question.
    pub(super) fn push_waiting_in_brief(
        &self,
        frame: &mut LiveFrame,
        columns: usize,
        palette: &Palette,
    ) {
        if let Some(last) = self.queued.back() {
            let before = match self.queued.len() - 1 {
                0 => String::new(),
                before => format!(" (after {})", count(before as u64, "other message")),
            };
            let room = columns.saturating_sub("queued: ".len() + before.len());
            let last = crate::screen::one_line(last, room.max(10));
            let line = format!("queued: {last}{before}");
            frame.rows.push(palette.dim(&fit(&line, columns)));
        }
    }

    /// Adds the message with its menu.
    pub(super) fn push_message(
        &mut self,
        frame: &mut LiveFrame,
        columns: usize,
        palette: &Palette,
    ) {
        let first = frame.rows.len();
        if let Some(search) = &self.search {
            let found = self.history.search(&search.text, search.skip);
            let found = found.map_or("no match".to_owned(), |found| {
                crate::screen::one_line(found, 400)
            });
            let label = format!("history: {}", sanitize(&search.text));
            frame.rows.push(format!("{label}  {}", palette.dim(&found)));
            frame.cursor = Some((first, label.chars().count()));
        } else {
            let shown = self.editor.rows(columns.saturating_sub(3), MAX_INPUT_ROWS);
            let (row, column) = shown.cursor;
            for (index, text) in shown.rows.iter().enumerate() {
                let mark = match index {
                    0 if shown.has_more_above => "… ",
                    0 => "> ",
                    _ => "  ",
                };
                frame.rows.push(format!("{}{text}", palette.bold(mark)));
            }
            frame.cursor = Some((first + row, column + 2));
        }
        if let Some(menu) = self.menu() {
            frame
                .rows
                .extend(menu.rows(self.selected, columns, palette));
        }
    }

    /// Adds the status line, or the notice in its place.
    pub(super) fn push_status(&self, frame: &mut LiveFrame, columns: usize, palette: &Palette) {
        if let Some(notice) = &self.notice {
            frame.rows.push(palette.dim(&fit(notice, columns)));
            return;
        }
        let status = self.status.line(self.modes.get(), columns);
        let status = fit(&status, columns);
        let (mode, rest) = status.split_at(status.find(" · ").unwrap_or(status.len()));
        // A mode that is not the usual one is not to be overlooked.
        let mode = match self.modes.get() {
            PermissionMode::Ask => palette.dim(mode),
            PermissionMode::AcceptEdits => palette.colour(mode, Colour::Yellow),
            PermissionMode::ReadOnly | PermissionMode::Plan => palette.colour(mode, Colour::Cyan),
        };
        frame.rows.push(format!("{mode}{}", palette.dim(rest)));
    }

    /// Returns the lines that show a message in the scrollback after it was sent.
    pub(super) fn sent_lines(message: &str, columns: usize, palette: &Palette) -> String {
        let lines = wrap_prefixed(&sanitize(message), "> ", "  ", columns);
        // The mark has a colour that nothing of a model has.
        let line = |line: &String| match line.strip_prefix('>') {
            Some(text) => format!("{}{}", frame_mark(">", palette), palette.bold(text)),
            None => palette.bold(line),
        };
        let lines: Vec<String> = lines.iter().map(line).collect();
        lines.join("\n")
    }

    /// Lets the user write the message in `$VISUAL` or `$EDITOR`. The terminal must be in its normal mode.
    pub(super) async fn edit_outside(&mut self) {
        let text = self.editor.text().to_owned();
        let edited =
            tokio::task::spawn_blocking(move || super::external_editor::edit(&text, ".md"));
        match edited.await {
            Ok(Ok(text)) => self.editor.set(text.trim_end_matches('\n')),
            Ok(Err(failure)) => self.notice = Some(failure.to_string().replace('\n', " · ")),
            Err(error) => self.notice = Some(error.to_string()),
        }
    }
}
