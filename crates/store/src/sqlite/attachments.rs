//! References to attachments, written with the events that refer to them.

use super::failure::Failure;
use lango_core::{Event, Text};
use rusqlite::{Connection, OptionalExtension as _, params};

/// Refers to the attachments of an event that was just stored.
pub(super) fn note(connection: &Connection, event: &Event) -> Result<(), Failure> {
    let session = event.session.as_str();
    for attachment in event.body.attachments() {
        let user: Option<Text> = connection
            .prepare_cached(INSERT_REFERENCE)?
            .query_row(params![session, attachment.digest], |row| row.get(0))
            .optional()?;
        if let Some(user) = user {
            connection
                .prepare_cached(USE_PUT)?
                .execute(params![user, attachment.digest])?;
        }
    }
    Ok(())
}

/// Refers to bytes from a session, hidden or not; returns its user if it did not before.
pub(super) const INSERT_REFERENCE: &str =
    "INSERT INTO attachment_references (session, digest, user)
     SELECT id, ?2, CASE substr(user, 1, 1) WHEN char(1) THEN substr(user, 2) ELSE user END
       FROM sessions WHERE id = ?1
         ON CONFLICT DO NOTHING RETURNING user";

/// Uses up the oldest put of bytes.
pub(super) const USE_PUT: &str =
    "DELETE FROM attachment_puts WHERE user = ?1 AND digest = ?2 AND time =
        (SELECT min(time) FROM attachment_puts WHERE user = ?1 AND digest = ?2)";
