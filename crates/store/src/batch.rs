//! What has to hold for a batch by itself, whatever store it goes to.

use lango_core::{Event, SessionId, StoreError};

/// The session and the first `seq` of a batch, once it is known to be of one session and without a gap.
///
/// An empty batch is none: there is nothing to store.
pub(crate) fn target_of(events: &[Event]) -> Result<Option<(&SessionId, u64)>, StoreError> {
    let Some(first) = events.first() else {
        return Ok(None);
    };
    for (index, event) in events.iter().enumerate() {
        let expected = first.seq.saturating_add(index as u64);
        if event.session != first.session {
            return Err(refused(format!(
                "a batch of session `{}` holds an event of session `{}`",
                first.session, event.session
            )));
        }
        if event.seq != expected {
            return Err(refused(format!(
                "a batch of session `{}` has event {} in the place of {expected}",
                first.session, event.seq
            )));
        }
    }
    Ok(Some((&first.session, first.seq)))
}

fn refused(detail: String) -> StoreError {
    StoreError::Failed { detail }
}
