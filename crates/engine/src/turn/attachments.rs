//! Which files a turn knows of, and who is shown them: the root those of the person, of earlier questions, of its own tools and
//! of remote agents; a sub-agent those that its delegation names, and what its own tools return.

use super::Turn;
use super::frame::{Entry, Frame, SlotState};
use crate::attachments::unique_name;
use crate::gate::Refusal;
use lango_core::{AttachedFile, Attachment, Fault, FrameId};
use serde_json::Value;

impl Turn {
    /// The files that the root is shown, the newest first.
    pub(super) fn shown_to_root(&self) -> impl Iterator<Item = &Attachment> {
        let root = self.state.frame(&FrameId::root());
        let results = root.into_iter().flat_map(result_attachments);
        let question = root.into_iter().flat_map(|frame| &frame.attachments);
        results.chain(question).chain(self.history.attachments())
    }

    /// Gives each file a name that no other file of this turn, or of the earlier ones that it shows, has.
    pub(super) fn name_attachments(&self, mut attachments: Vec<Attachment>) -> Vec<Attachment> {
        for at in 0..attachments.len() {
            let (before, rest) = attachments.split_at_mut(at);
            let known = || self.history.attachments().chain(self.of_frames());
            let is_taken = |name: &str| {
                known()
                    .chain(before.iter())
                    .any(|other| *other.name == *name)
            };
            rest[0].name = unique_name(&rest[0].name, is_taken);
        }
        attachments
    }

    fn of_frames(&self) -> impl Iterator<Item = &Attachment> {
        self.state.frames.iter().flat_map(|frame| {
            let own = frame.attachments.iter().chain(&frame.returned);
            own.chain(result_attachments(frame))
        })
    }

    /// The files that a delegation names. Where there are none to name, the argument is one more that is not asked for.
    pub(super) fn delegated_attachments(
        &self,
        named: Option<&Value>,
    ) -> Result<Vec<Attachment>, Refusal> {
        let names: Vec<&str> = match named {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let mut found: Vec<Attachment> = Vec::new();
        if names.is_empty() || self.shown_to_root().next().is_none() {
            return Ok(found);
        }
        for name in names {
            let Some(attachment) = self.shown_to_root().find(|shown| *shown.name == *name) else {
                let names: Vec<String> = self
                    .shown_to_root()
                    .take(Self::NAMES_SHOWN)
                    .map(|shown| format!("`{}`", shown.name))
                    .collect();
                let name: String = name.chars().take(64).collect();
                return Err(Refusal {
                    fault: Fault::BadArguments,
                    detail: format!(
                        "there is no attachment `{name}`; the attachments are: {}",
                        names.join(", ")
                    ),
                });
            };
            if !found.contains(attachment) && found.len() < AttachedFile::PER_MESSAGE {
                found.push(attachment.clone());
            }
        }
        Ok(found)
    }

    /// Names that a model is told at most, the newest first.
    pub(super) const NAMES_SHOWN: usize = 64;
}

/// The files that the calls of a frame returned, the newest first.
fn result_attachments(frame: &Frame) -> impl Iterator<Item = &Attachment> {
    let slots = frame.entries.iter().rev().flat_map(|entry| match entry {
        Entry::Reply { slots, .. } => slots.as_slice(),
        Entry::Notice(_) | Entry::InvalidAnswer(_) => &[],
    });
    slots.flat_map(|slot| match &slot.state {
        SlotState::Answered { attachments, .. } => attachments.as_slice(),
        _ => &[],
    })
}
