//! The status line of a chat: the mode, and what it works with.

use lango_core::PermissionMode;
use unicode_width::UnicodeWidthStr;

/// Returns the mode that follows when the user presses Shift-Tab.
pub(super) fn next_mode(mode: PermissionMode) -> PermissionMode {
    match mode {
        PermissionMode::Ask => PermissionMode::AcceptEdits,
        PermissionMode::AcceptEdits => PermissionMode::ReadOnly,
        PermissionMode::ReadOnly => PermissionMode::Plan,
        PermissionMode::Plan => PermissionMode::Ask,
    }
}

/// What the status line says besides the mode.
#[derive(Debug, Default)]
pub(in crate::commands) struct ChatStatus {
    pub(in crate::commands) model: String,
    /// What the user should know about the model; may be empty.
    pub(in crate::commands) model_note: &'static str,
    pub(in crate::commands) folder: String,
    pub(in crate::commands) session: String,
}

impl ChatStatus {
    /// Returns the status line. What does not fit is left out, the least important part first.
    pub(super) fn line(&self, mode: PermissionMode, columns: usize) -> String {
        let mode = mode_text(mode);
        let Self {
            model,
            model_note,
            folder,
            session,
        } = self;
        let noted = &*match *model_note {
            "" => model.clone(),
            note => format!("{model}, {note}"),
        };
        let lines: [&[&str]; 5] = [
            &[mode, noted, folder, session, "/help"],
            &[mode, noted, folder, "/help"],
            &[mode, noted, "/help"],
            &[mode, model, "/help"],
            &[mode, "/help"],
        ];
        let mut lines = lines.iter().map(|parts| parts.join(" · "));
        let fits = |line: &String| line.width() <= columns;
        lines.find(fits).unwrap_or_else(|| mode.to_owned())
    }
}

/// Describes a mode for the status line.
fn mode_text(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::Ask => "mode: ask (shift-tab)",
        PermissionMode::AcceptEdits => "mode: accept-edits (edits here without asking)",
        PermissionMode::ReadOnly => "mode: read-only (nothing is changed)",
        PermissionMode::Plan => "mode: plan (agents read and plan, nothing is changed)",
    }
}
