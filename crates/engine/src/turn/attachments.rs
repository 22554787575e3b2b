//! The files of a turn and who sees them. The root sees those of the user, of earlier questions, of its own tools and
//! of remote agents. A sub-agent sees those that its delegation names, and those that its own tools return.

use super::Turn;
use super::frame::{Entry, Frame, SlotState};
use crate::attachments::unique_name;
use crate::gate::InvalidCall;
use lango_core::{AttachedFile, Attachment, FrameId, TurnFault};
use serde_json::Value;

impl Turn {
    /// Returns the files that the root sees, newest first.
    pub(super) fn root_attachments(&self) -> impl Iterator<Item = &Attachment> {
        let root = self.state.frame(&FrameId::root());
        let results = root.into_iter().flat_map(result_attachments);
        let question = root.into_iter().flat_map(|frame| &frame.attachments);
        results.chain(question).chain(self.history.attachments())
    }

    /// Gives each file a name that is unique in this turn and in the history that the turn shows.
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

    /// Returns the files that a delegation names. If the turn has no files, the argument is ignored.
    pub(super) fn delegated_attachments(
        &self,
        named: Option<&Value>,
    ) -> Result<Vec<Attachment>, InvalidCall> {
        let names: Vec<&str> = match named {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let mut found: Vec<Attachment> = Vec::new();
        if names.is_empty() || self.root_attachments().next().is_none() {
            return Ok(found);
        }
        for name in names {
            let Some(attachment) = self.root_attachments().find(|shown| *shown.name == *name)
            else {
                let names: Vec<String> = self
                    .root_attachments()
                    .take(Self::MAX_NAMES)
                    .map(|shown| format!("`{}`", shown.name))
                    .collect();
                let name: String = name.chars().take(64).collect();
                return Err(InvalidCall {
                    fault: TurnFault::BadArguments,
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

    /// The maximum number of file names in a message to a model, newest first.
    pub(super) const MAX_NAMES: usize = 64;
}

/// Returns the files that the calls of a frame returned, newest first.
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
