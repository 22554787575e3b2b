//! The lines of a command that the user typed.

use super::Activity;
use lango_core::{CallStatus, EventBody};
use lango_engine::TurnUpdate;

impl Activity {
    /// Returns the lines that an update adds if only calls are shown. The output of a call is the answer, unless it was
    /// stopped.
    pub fn update_calls(&mut self, update: &TurnUpdate) -> Vec<String> {
        let TurnUpdate::Stored(events) = update else {
            self.update(update);
            return Vec::new();
        };
        let lines = events.iter().flat_map(|event| {
            let mut lines = self.event(event);
            lines.truncate(match event.body {
                EventBody::ToolReturned {
                    status: CallStatus::Unknown,
                    ..
                } => usize::MAX,
                EventBody::ToolReturned { .. } => 1,
                _ => 0,
            });
            lines
        });
        lines.collect()
    }
}
