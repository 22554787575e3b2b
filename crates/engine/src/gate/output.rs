//! Limits on what tools return, and masks for the secrets in it.

use super::Gate;
use crate::attachments::check_files;
use lango_core::{AttachedFile, CallStatus, Text, ToolOutput, Trust};
use lango_secrets::Masks;
use std::borrow::Cow;

/// The result of a call that ran.
pub(crate) struct CallResult {
    pub status: CallStatus,
    pub output: Text,
    pub trust: Trust,
    pub files: Vec<AttachedFile>,
}

impl CallResult {
    /// Creates a result that lango wrote itself.
    pub(crate) fn from_lango(status: CallStatus, output: String) -> Self {
        Self {
            status,
            output: output.into(),
            trust: Trust::Trusted,
            files: Vec::new(),
        }
    }

    /// Converts a tool's output, and enforces the limits on text and files.
    pub(crate) fn from_output(output: ToolOutput) -> Self {
        let ToolOutput { text, trust, files } = output;
        let text = cap(text, Gate::OUTPUT_BYTES);
        if files.is_empty() {
            return Self {
                status: CallStatus::Ok,
                output: text,
                trust,
                files,
            };
        }
        let (files, refused) = check_files(files);
        let mut result = Self {
            status: CallStatus::Ok,
            output: text,
            trust: Trust::Untrusted,
            files,
        };
        result.add_lines(&refused);
        result
    }

    /// Appends lines to the text.
    pub(crate) fn add_lines(&mut self, lines: &[String]) {
        if !lines.is_empty() {
            let text = std::iter::once(&*self.output).filter(|text| !text.is_empty());
            let all: Vec<&str> = text.chain(lines.iter().map(String::as_str)).collect();
            self.output = all.join("\n").into();
        }
    }
}

/// Masks the name and the content of a file. An image that contains a secret in its metadata may become unreadable.
pub(super) fn mask_file(masks: &Masks, file: &mut AttachedFile) {
    masks.mask_string(&mut file.name);
    if let Cow::Owned(masked) = masks.mask_bytes(&file.bytes) {
        file.bytes = masked.into();
    }
}

/// Truncates a preview that is too long, and says how many lines are missing.
pub(super) fn cap_preview(text: String, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text;
    }
    let head = text.floor_char_boundary(max_bytes);
    let (shown, rest) = text.split_at(head);
    format!(
        "{shown}\n[{} more lines, {} of {} bytes, are not shown; view all to see them]\n",
        rest.lines().count(),
        rest.len(),
        text.len()
    )
}

/// Cuts out the middle of a text that is too long, and says how much is missing.
pub(super) fn cap(text: String, max_bytes: usize) -> Text {
    if text.len() <= max_bytes {
        return text.into();
    }
    let head = text.floor_char_boundary(max_bytes * 3 / 4);
    let tail = text.ceil_char_boundary(text.len() - max_bytes / 4);
    format!(
        "{}\n[… {} of {} bytes left out …]\n{}",
        &text[..head],
        tail - head,
        text.len(),
        &text[tail..]
    )
    .into()
}

#[cfg(test)]
mod tests {
    use super::cap;

    #[test]
    fn long_output_keeps_its_head_and_tail_and_says_what_is_missing() {
        let text: String = "é".repeat(1000);
        let capped = cap(text.clone(), 100);
        assert!(capped.starts_with("éé") && capped.ends_with("éé"));
        assert!(capped.contains("of 2000 bytes left out"), "{capped}");
        assert!(capped.len() < 200);
        assert_eq!(*cap(text.clone(), 2000), *text);
    }
}
