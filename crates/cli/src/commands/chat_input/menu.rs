//! The menu below the input: commands that start with `/`, what may follow them, and paths after `@`.

use crate::commands::chat::slash::SlashCommand;
use crate::terminal::{Completion, Palette, complete_path, fit};
use lango_core::PermissionMode;
use std::path::Path;

/// The most models in the menu.
const MAX_MODELS: usize = 8;

/// What can be chosen for the word before the cursor. It has at least one entry.
pub(super) struct Menu {
    /// The bytes before the cursor that a choice replaces.
    pub replaced: usize,
    /// Whether Enter sends what is chosen.
    pub is_command: bool,
    /// The texts to insert, each with an explanation.
    entries: Vec<(String, &'static str)>,
}

impl Menu {
    /// Returns the menu for the text before the cursor; `None` if there is nothing to choose.
    pub(super) fn for_text(before: &str, folder: &Path, models: &[String]) -> Option<Self> {
        if before.starts_with('/') && !before.contains(char::is_whitespace) {
            return Self::of_commands(before);
        }
        if let Some(start) = before.strip_prefix("/mode ") {
            let modes = PermissionMode::ALL.iter().map(|mode| mode.name());
            return Self::of_arguments(start, modes.filter(|mode| mode.starts_with(start)));
        }
        if let Some(part) = before.strip_prefix("/model ") {
            let models = models.iter().map(String::as_str);
            let mut matching: Vec<&str> = models.filter(|model| model.contains(part)).collect();
            // Names that start with the part come first, also without their provider.
            let is_start =
                |model: &str| model.starts_with(part) || model.contains(&format!("/{part}"));
            matching.sort_by_key(|model| !is_start(model));
            return Self::of_arguments(part, matching.into_iter().take(MAX_MODELS));
        }
        let Completion {
            replaced,
            suggestions,
        } = complete_path(folder, before)?;
        let is_complete = suggestions.len() == 1 && before.ends_with(&suggestions[0]);
        let entries: Vec<_> = suggestions.into_iter().map(|text| (text, "")).collect();
        (!entries.is_empty() && !is_complete).then_some(Self {
            replaced,
            is_command: false,
            entries,
        })
    }

    fn of_commands(before: &str) -> Option<Self> {
        let matching = SlashCommand::all().filter(|command| command.name().starts_with(before));
        let entry = |command: SlashCommand| (command.name().to_owned(), command.summary());
        let mut entries: Vec<_> = matching.map(entry).collect();
        // `/mode` is also the start of `/model`.
        entries.sort_by_key(|(name, _)| name != before);
        (!entries.is_empty()).then_some(Self {
            replaced: before.len(),
            is_command: true,
            entries,
        })
    }

    fn of_arguments<'a>(before: &str, entries: impl Iterator<Item = &'a str>) -> Option<Self> {
        let entries: Vec<_> = entries.map(|entry| (entry.to_owned(), "")).collect();
        let is_complete = entries.iter().any(|(entry, _)| entry == before);
        (!entries.is_empty() && !is_complete).then_some(Self {
            replaced: before.len(),
            is_command: true,
            entries,
        })
    }

    /// Returns the index of the last entry.
    pub(super) fn last(&self) -> usize {
        self.entries.len() - 1
    }

    /// Returns the text that an entry inserts.
    pub(super) fn text(&self, index: usize) -> &str {
        &self.entries[index].0
    }

    /// Returns a row for each entry.
    pub(super) fn rows(&self, selected: usize, columns: usize, palette: &Palette) -> Vec<String> {
        let selected = selected.min(self.last());
        let lengths = self.entries.iter().map(|(text, _)| text.chars().count());
        let widest = lengths.max().unwrap_or(0);
        let row = |(index, (text, summary)): (usize, &(String, &str))| {
            let line = format!("{text:<widest$}  {summary}");
            let line = fit(line.trim_end(), columns.saturating_sub(2));
            if index == selected {
                palette.bold(&format!("❯ {line}"))
            } else {
                palette.dim(&format!("  {line}"))
            }
        };
        self.entries.iter().enumerate().map(row).collect()
    }
}
