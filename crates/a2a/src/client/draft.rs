//! The draft of an answer: collects artifacts by id, appends chunks to the right artifact, and drops repeated text.
//!
//! Servers may send the same text several times: in chunks, then as a whole under another id, then again as the message
//! of the last status. The draft is shown as it grows. If the final answer turns out to be different, the shown text is
//! withdrawn first.

use super::files::RemoteFile;
use super::read::{self, Artifact, Piece};
use lango_core::{AttachedFile, RemoteEvent};

/// The maximum length of an answer, in bytes. A longer one is truncated, with a note.
pub(crate) const ANSWER_BYTES: usize = 1024 * 1024;

/// The maximum number of artifacts of a task.
const ARTIFACTS: usize = 1000;

/// How many bytes of text to compare with what was shown, over the whole call. If a server keeps replacing its
/// artifacts and exceeds this, the draft is no longer updated on the screen; the answer is not affected.
const REDRAWN_BYTES: usize = 256 * 1024 * 1024;

/// The artifacts of a task so far, and the text that was shown.
pub(crate) struct Draft {
    artifacts: Vec<DraftArtifact>,
    shown: String,
    redraw_budget: usize,
    /// The size of all texts.
    text_bytes: usize,
    /// The size of all files.
    file_bytes: usize,
    is_truncated: bool,
}

struct DraftArtifact {
    id: String,
    text: String,
    /// Whether the text ends with data or a file, so that more text starts on a new line.
    is_after_line: bool,
    files: Vec<RemoteFile>,
}

impl Default for Draft {
    fn default() -> Self {
        Self {
            artifacts: Vec::new(),
            shown: String::new(),
            redraw_budget: REDRAWN_BYTES,
            text_bytes: 0,
            file_bytes: 0,
            is_truncated: false,
        }
    }
}

impl Draft {
    /// Replaces all artifacts. Returns the events that update the shown text.
    pub(super) fn replace_all(&mut self, artifacts: Vec<Artifact>) -> Vec<RemoteEvent> {
        self.artifacts.clear();
        self.text_bytes = 0;
        self.file_bytes = 0;
        self.is_truncated = false;
        for artifact in artifacts {
            self.add(artifact, false);
        }
        self.redraw()
    }

    /// Replaces one artifact, or appends to it. Returns the events that update the shown text.
    pub(super) fn apply(&mut self, artifact: Artifact, is_more: bool) -> Vec<RemoteEvent> {
        let is_plain_growth = is_more && self.artifacts.len() == 1 && {
            let only = &self.artifacts[0];
            only.id == artifact.id && only.text.len() == self.shown.len()
        };
        self.add(artifact, is_more);
        if is_plain_growth {
            let more = self.artifacts[0].text[self.shown.len()..].to_owned();
            return self.show(more);
        }
        self.redraw()
    }

    /// Returns the text of all artifacts, without repetitions.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let mut joined = String::new();
        let mut seen: Vec<&str> = Vec::new();
        for artifact in &self.artifacts {
            let trimmed = artifact.text.trim();
            let is_repeated = seen.contains(&trimmed) || joined.trim() == trimmed;
            if trimmed.is_empty() || is_repeated {
                continue;
            }
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            text.push_str(&artifact.text);
            joined.push_str(&artifact.text);
            seen.push(trimmed);
        }
        text
    }

    pub(super) fn files(&self) -> impl Iterator<Item = &RemoteFile> {
        self.artifacts.iter().flat_map(|artifact| &artifact.files)
    }

    /// Returns whether some content exceeded a limit and was dropped.
    pub(super) fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    /// Returns the event that withdraws the shown text, to be sent before the answer. Returns `None` if the answer
    /// starts with the shown text.
    pub(super) fn before_answer(&mut self, answer: &str) -> Option<RemoteEvent> {
        let holds = answer.starts_with(&self.shown);
        self.shown.clear();
        (!holds).then_some(RemoteEvent::Withdrawn)
    }

    fn add(&mut self, artifact: Artifact, is_more: bool) {
        let index = self
            .artifacts
            .iter()
            .position(|known| known.id == artifact.id);
        let index = match index {
            Some(index) => {
                if !is_more {
                    let known = &mut self.artifacts[index];
                    self.text_bytes -= known.text.len();
                    known.text.clear();
                    known.is_after_line = false;
                    let files = known.files.drain(..);
                    self.file_bytes -= files.map(|file| file.len()).sum::<usize>();
                }
                index
            }
            None if self.artifacts.len() < ARTIFACTS => {
                self.artifacts.push(DraftArtifact {
                    id: artifact.id,
                    text: String::new(),
                    is_after_line: false,
                    files: Vec::new(),
                });
                self.artifacts.len() - 1
            }
            None => {
                self.is_truncated = true;
                return;
            }
        };
        for piece in artifact.pieces {
            self.push(index, &piece);
            if let Piece::File(_, file) = piece {
                self.push_file(index, file);
            }
        }
    }

    fn push(&mut self, index: usize, piece: &Piece) {
        let room = ANSWER_BYTES.saturating_sub(self.text_bytes);
        let artifact = &mut self.artifacts[index];
        let before = artifact.text.len();
        read::push(&mut artifact.text, &mut artifact.is_after_line, piece);
        if artifact.text.len() - before > room {
            let end = artifact.text.floor_char_boundary(before + room);
            artifact.text.truncate(end);
            self.is_truncated = true;
        }
        self.text_bytes += artifact.text.len() - before;
    }

    fn push_file(&mut self, index: usize, file: RemoteFile) {
        let bytes = self.file_bytes + file.len();
        let has_room = self.files().count() < AttachedFile::PER_MESSAGE;
        if has_room && bytes <= AttachedFile::MESSAGE_BYTES {
            self.file_bytes = bytes;
            self.artifacts[index].files.push(file);
        } else {
            self.is_truncated = true;
        }
    }

    fn redraw(&mut self) -> Vec<RemoteEvent> {
        let cost = self.text_bytes + self.shown.len() + self.artifacts.len().pow(2);
        let Some(budget) = self.redraw_budget.checked_sub(cost) else {
            return Vec::new();
        };
        self.redraw_budget = budget;
        let text = self.text();
        if let Some(more) = text.strip_prefix(self.shown.as_str()) {
            return self.show(more.to_owned());
        }
        self.shown.clear();
        let mut events = vec![RemoteEvent::Withdrawn];
        events.extend(self.show(text));
        events
    }

    fn show(&mut self, more: String) -> Vec<RemoteEvent> {
        if more.is_empty() {
            return Vec::new();
        }
        self.shown.push_str(&more);
        vec![RemoteEvent::Text(more)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(id: &str, text: &str) -> Artifact {
        Artifact {
            id: id.to_owned(),
            pieces: vec![Piece::Text(text.to_owned())],
        }
    }

    fn text(text: &str) -> RemoteEvent {
        RemoteEvent::Text(text.to_owned())
    }

    #[test]
    fn chunks_are_shown_as_they_arrive_and_a_full_copy_under_another_id_is_not() {
        let mut draft = Draft::default();
        assert_eq!(draft.apply(artifact("a", "Hel"), false), [text("Hel")]);
        assert_eq!(draft.apply(artifact("a", "lo"), true), [text("lo")]);
        assert_eq!(draft.apply(artifact("b", "Hello"), false), []);
        assert_eq!(draft.text(), "Hello");
        assert_eq!(draft.before_answer("Hello"), None);
    }

    #[test]
    fn the_full_text_after_chunks_in_separate_artifacts_is_dropped() {
        let mut draft = Draft::default();
        for chunk in ["one ", "two"] {
            draft.apply(artifact(chunk, chunk), false);
        }
        assert_eq!(draft.apply(artifact("whole", "one two"), false), []);
        assert_eq!(draft.text(), "one \n\ntwo");
    }

    #[test]
    fn a_replaced_artifact_withdraws_the_shown_text_unless_it_starts_with_it() {
        let mut draft = Draft::default();
        draft.apply(artifact("a", "Hello"), false);
        assert_eq!(
            draft.apply(artifact("a", "Hello world"), false),
            [text(" world")]
        );
        assert_eq!(
            draft.apply(artifact("a", "Bye"), false),
            [RemoteEvent::Withdrawn, text("Bye")]
        );
        assert_eq!(draft.before_answer("else"), Some(RemoteEvent::Withdrawn));
    }

    #[test]
    fn growth_of_a_second_artifact_is_shown_too() {
        let mut draft = Draft::default();
        draft.apply(artifact("a", "one"), false);
        assert_eq!(draft.apply(artifact("b", "t"), true), [text("\n\nt")]);
        assert_eq!(draft.apply(artifact("b", "wo"), true), [text("wo")]);
        assert_eq!(
            draft.apply(artifact("a", "!"), true)[0],
            RemoteEvent::Withdrawn
        );
        assert_eq!(draft.text(), "one!\n\ntwo");
    }

    #[test]
    fn a_long_answer_is_truncated_between_characters() {
        let mut draft = Draft::default();
        for _ in 0..3 {
            draft.apply(artifact("a", &"é".repeat(ANSWER_BYTES / 4)), true);
        }
        draft.apply(artifact("a", "x"), true);
        assert!(draft.is_truncated());
        assert_eq!(draft.text().len(), ANSWER_BYTES);
        let many = (0..2 * ARTIFACTS).map(|n| artifact(&n.to_string(), &n.to_string()));
        draft.replace_all(many.collect());
        assert!(draft.is_truncated());
        assert_eq!(draft.text().split("\n\n").count(), ARTIFACTS);
    }
}
