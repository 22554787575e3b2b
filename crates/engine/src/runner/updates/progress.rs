//! The progress of running steps that was not read yet: at most one update for each model call and each tool call,
//! however much they produce. It disappears when the step has ended, because then its result is stored.

use super::{TurnUpdate, ends_turn};
use lango_core::{CallId, EventBody, FrameId};
use std::collections::VecDeque;

/// The maximum length of the unread output of one tool call. Only its end is kept.
const OUTPUT_BYTES: usize = 8 * 1024;
const OUTPUT_LINES: usize = 20;

#[derive(Debug, Default)]
pub(super) struct StepProgress {
    unread: VecDeque<UnreadProgress>,
    /// How many updates that say what runs were queued and read: stored events and starts of model calls.
    queued: u64,
    read: u64,
    /// Whether the update that was read last was progress. The next one is not if there is another, so that neither
    /// keeps a slow reader from the other.
    is_last_read: bool,
}

/// The progress of one step.
#[derive(Debug)]
struct UnreadProgress {
    update: TurnUpdate,
    /// How many updates that say what runs are read first, so that the reader knows the step.
    after: u64,
}

impl StepProgress {
    pub(super) fn is_empty(&self) -> bool {
        self.unread.is_empty()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.unread.len()
    }

    pub(super) fn add_bytes(&mut self, of: &FrameId, more: usize) {
        let unread = self
            .unread
            .iter_mut()
            .find_map(|item| match &mut item.update {
                TurnUpdate::ModelProgress { frame, bytes } if frame == of => Some(bytes),
                _ => None,
            });
        match unread {
            Some(bytes) => *bytes = bytes.saturating_add(more),
            None => self.add(TurnUpdate::ModelProgress {
                frame: of.clone(),
                bytes: more,
            }),
        }
    }

    pub(super) fn add_output(&mut self, of: CallId, more: String) {
        let unread = self
            .unread
            .iter_mut()
            .find_map(|item| match &mut item.update {
                TurnUpdate::ToolOutput { call, text } if *call == of => Some(text),
                _ => None,
            });
        match unread {
            Some(text) => {
                text.push_str(&more);
                keep_end(text);
            }
            None => {
                let mut text = more;
                keep_end(&mut text);
                self.add(TurnUpdate::ToolOutput { call: of, text });
            }
        }
    }

    fn add(&mut self, update: TurnUpdate) {
        self.unread.push_back(UnreadProgress {
            update,
            after: self.queued,
        });
    }

    /// Notes that an update was queued which says what runs. Drops the progress of steps that it ends.
    pub(super) fn queued(&mut self, update: &TurnUpdate) {
        self.queued += 1;
        if self.unread.is_empty() {
            return;
        }
        match update {
            TurnUpdate::ModelStarted { frame, .. } => self.drop_model(frame),
            TurnUpdate::Stored(batch) if ends_turn(batch) => self.unread.clear(),
            TurnUpdate::Stored(batch) => {
                for event in batch.iter() {
                    match &event.body {
                        EventBody::AgentMessage { .. } => self.drop_model(&event.frame),
                        EventBody::ToolReturned { call, .. } => self.drop_tool(call),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    /// Notes that another update was read.
    pub(super) fn read(&mut self, update: &TurnUpdate) {
        self.is_last_read = false;
        self.read += u64::from(matches!(
            update,
            TurnUpdate::Queued | TurnUpdate::Stored(_) | TurnUpdate::ModelStarted { .. }
        ));
    }

    /// Takes the next progress, if it is to be read now. `is_only` says that there is no other update.
    pub(super) fn pop(&mut self, is_only: bool) -> Option<TurnUpdate> {
        let first = self.unread.front()?;
        let is_next = is_only || (!self.is_last_read && first.after <= self.read);
        if !is_next {
            return None;
        }
        self.is_last_read = true;
        self.unread.pop_front().map(|item| item.update)
    }

    fn drop_model(&mut self, of: &FrameId) {
        self.unread.retain(
            |item| !matches!(&item.update, TurnUpdate::ModelProgress { frame, .. } if frame == of),
        );
    }

    fn drop_tool(&mut self, of: &CallId) {
        self.unread.retain(
            |item| !matches!(&item.update, TurnUpdate::ToolOutput { call, .. } if call == of),
        );
    }
}

/// Returns the end of a tool's output that is worth showing.
pub(crate) fn end_of_output(text: &str) -> &str {
    let start = text.ceil_char_boundary(text.len().saturating_sub(OUTPUT_BYTES));
    let end = &text[start..];
    let lines = end.strip_suffix('\n').unwrap_or(end);
    let newline = lines.rmatch_indices('\n').nth(OUTPUT_LINES - 1);
    newline.map_or(end, |(at, _)| &end[at + 1..])
}

fn keep_end(text: &mut String) {
    let start = text.len() - end_of_output(text).len();
    text.drain(..start);
}
