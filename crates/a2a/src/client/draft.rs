//! The answer as it grows: artifacts by their ids, chunks put where they belong, and the same text given once.
//!
//! Servers send one text in many ways: chunk by chunk, then whole under another id, then once more as the message of the
//! last status. What is shown while it comes follows the answer: if the answer turns out otherwise, what was shown is
//! withdrawn first.

use super::files::RemoteFile;
use super::read::{self, Artifact, Piece};
use lango_core::{AttachedFile, RemoteEvent};

/// The longest answer, in bytes; the rest is cut, with a note.
pub(crate) const ANSWER_BYTES: usize = 1024 * 1024;

/// The most artifacts of a task.
const ARTIFACTS: usize = 1000;

/// How many bytes may be compared to see whether what was shown still holds. A server that replaces its artifacts without
/// end is shown no longer; its answer is the same.
const REDRAWN_BYTES: usize = 256 * 1024 * 1024;

/// The artifacts of a task so far, and what of them was shown.
pub(crate) struct Draft {
    artifacts: Vec<Growing>,
    shown: String,
    redraw_budget: usize,
    /// The bytes of all texts.
    used: usize,
    /// The bytes of all files.
    file_bytes: usize,
    is_cut: bool,
}

struct Growing {
    id: String,
    text: String,
    is_after_line: bool,
    files: Vec<RemoteFile>,
}

impl Default for Draft {
    fn default() -> Self {
        Self {
            artifacts: Vec::new(),
            shown: String::new(),
            redraw_budget: REDRAWN_BYTES,
            used: 0,
            file_bytes: 0,
            is_cut: false,
        }
    }
}

impl Draft {
    /// Takes all artifacts as they are now.
    pub fn replace_all(&mut self, artifacts: Vec<Artifact>) -> Vec<RemoteEvent> {
        self.artifacts.clear();
        self.used = 0;
        self.file_bytes = 0;
        self.is_cut = false;
        for artifact in artifacts {
            self.add(artifact, false);
        }
        self.redraw()
    }

    /// Takes one artifact, or more of it.
    pub fn take(&mut self, artifact: Artifact, is_more: bool) -> Vec<RemoteEvent> {
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

    /// The text of all artifacts; each text once.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut run_together = String::new();
        let mut given: Vec<&str> = Vec::new();
        for artifact in &self.artifacts {
            let trimmed = artifact.text.trim();
            let is_given = given.contains(&trimmed) || run_together.trim() == trimmed;
            if trimmed.is_empty() || is_given {
                continue;
            }
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            text.push_str(&artifact.text);
            run_together.push_str(&artifact.text);
            given.push(trimmed);
        }
        text
    }

    /// The files of all artifacts.
    pub fn files(&self) -> impl Iterator<Item = &RemoteFile> {
        self.artifacts.iter().flat_map(|artifact| &artifact.files)
    }

    /// Whether some of it had to be left out.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// What has to be said before an answer with this text: nothing, if what was shown is its beginning.
    pub fn before_answer(&mut self, answer: &str) -> Option<RemoteEvent> {
        let holds = answer.starts_with(&self.shown);
        self.shown.clear();
        (!holds).then_some(RemoteEvent::Withdrawn)
    }

    fn add(&mut self, artifact: Artifact, is_more: bool) {
        let place = self
            .artifacts
            .iter()
            .position(|known| known.id == artifact.id);
        let place = match place {
            Some(place) => {
                if !is_more {
                    let known = &mut self.artifacts[place];
                    self.used -= known.text.len();
                    known.text.clear();
                    known.is_after_line = false;
                    let files = known.files.drain(..);
                    self.file_bytes -= files.map(|file| file.len()).sum::<usize>();
                }
                place
            }
            None if self.artifacts.len() < ARTIFACTS => {
                self.artifacts.push(Growing {
                    id: artifact.id,
                    text: String::new(),
                    is_after_line: false,
                    files: Vec::new(),
                });
                self.artifacts.len() - 1
            }
            None => {
                self.is_cut = true;
                return;
            }
        };
        for piece in artifact.pieces {
            self.push(place, &piece);
            if let Piece::File(_, file) = piece {
                self.push_file(place, file);
            }
        }
    }

    fn push(&mut self, place: usize, piece: &Piece) {
        let room = ANSWER_BYTES.saturating_sub(self.used);
        let growing = &mut self.artifacts[place];
        let before = growing.text.len();
        read::push(&mut growing.text, &mut growing.is_after_line, piece);
        if growing.text.len() - before > room {
            let end = growing.text.floor_char_boundary(before + room);
            growing.text.truncate(end);
            self.is_cut = true;
        }
        self.used += growing.text.len() - before;
    }

    fn push_file(&mut self, place: usize, file: RemoteFile) {
        let bytes = self.file_bytes + file.len();
        let has_room = self.files().count() < AttachedFile::PER_MESSAGE;
        if has_room && bytes <= AttachedFile::MESSAGE_BYTES {
            self.file_bytes = bytes;
            self.artifacts[place].files.push(file);
        } else {
            self.is_cut = true;
        }
    }

    fn redraw(&mut self) -> Vec<RemoteEvent> {
        let cost = self.used + self.shown.len() + self.artifacts.len().pow(2);
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
    fn chunks_are_shown_as_they_come_and_a_whole_copy_under_another_id_is_not() {
        let mut draft = Draft::default();
        assert_eq!(draft.take(artifact("a", "Hel"), false), [text("Hel")]);
        assert_eq!(draft.take(artifact("a", "lo"), true), [text("lo")]);
        assert_eq!(draft.take(artifact("b", "Hello"), false), []);
        assert_eq!(draft.text(), "Hello");
        assert_eq!(draft.before_answer("Hello"), None);
    }

    #[test]
    fn chunks_that_are_artifacts_of_their_own_and_then_the_whole_give_the_chunks() {
        let mut draft = Draft::default();
        for chunk in ["one ", "two"] {
            draft.take(artifact(chunk, chunk), false);
        }
        assert_eq!(draft.take(artifact("whole", "one two"), false), []);
        assert_eq!(draft.text(), "one \n\ntwo");
    }

    #[test]
    fn a_replaced_artifact_withdraws_what_was_shown_unless_it_begins_so() {
        let mut draft = Draft::default();
        draft.take(artifact("a", "Hello"), false);
        assert_eq!(
            draft.take(artifact("a", "Hello world"), false),
            [text(" world")]
        );
        assert_eq!(
            draft.take(artifact("a", "Bye"), false),
            [RemoteEvent::Withdrawn, text("Bye")]
        );
        assert_eq!(draft.before_answer("else"), Some(RemoteEvent::Withdrawn));
    }

    #[test]
    fn growth_of_a_second_artifact_is_shown_too() {
        let mut draft = Draft::default();
        draft.take(artifact("a", "one"), false);
        assert_eq!(draft.take(artifact("b", "t"), true), [text("\n\nt")]);
        assert_eq!(draft.take(artifact("b", "wo"), true), [text("wo")]);
        assert_eq!(
            draft.take(artifact("a", "!"), true)[0],
            RemoteEvent::Withdrawn
        );
        assert_eq!(draft.text(), "one!\n\ntwo");
    }

    #[test]
    fn an_answer_is_cut_at_its_bound_between_characters() {
        let mut draft = Draft::default();
        for _ in 0..3 {
            draft.take(artifact("a", &"é".repeat(ANSWER_BYTES / 4)), true);
        }
        draft.take(artifact("a", "x"), true);
        assert!(draft.is_cut());
        assert_eq!(draft.text().len(), ANSWER_BYTES);
        let many = (0..2 * ARTIFACTS).map(|n| artifact(&n.to_string(), &n.to_string()));
        draft.replace_all(many.collect());
        assert!(draft.is_cut());
        assert_eq!(draft.text().split("\n\n").count(), ARTIFACTS);
    }
}
