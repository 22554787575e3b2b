//! The table of conversations with remote agents: kept in step with the log, read when one is called.

use super::failure::Failure;
use super::statements::{END_REMOTE_TASK, REMOTE_THREAD, SET_REMOTE_THREAD};
use lango_core::{AgentName, Event, EventBody, RemoteThread, SessionId};
use rusqlite::{Connection, OptionalExtension as _, params};

/// Keeps the table in step with an event that was just stored.
pub(super) fn note(connection: &Connection, event: &Event) -> Result<(), Failure> {
    let session = event.session.as_str();
    let agent = event.author.as_str();
    match &event.body {
        EventBody::RemoteAccepted { thread }
        | EventBody::RemoteReturned {
            thread: Some(thread),
            ..
        } => connection
            .prepare_cached(SET_REMOTE_THREAD)?
            .execute(params![session, agent, thread.context, thread.task])?,
        EventBody::RemoteReturned { thread: None, .. } => connection
            .prepare_cached(END_REMOTE_TASK)?
            .execute(params![session, agent])?,
        _ => 0,
    };
    Ok(())
}

/// Where the conversation of a session with an agent stands.
pub(super) fn find(
    connection: &Connection,
    session: &SessionId,
    agent: &AgentName,
) -> Result<Option<RemoteThread>, Failure> {
    let found = connection
        .prepare_cached(REMOTE_THREAD)?
        .query_row(params![session.as_str(), agent.as_str()], |row| {
            Ok(RemoteThread {
                context: row.get(0)?,
                task: row.get(1)?,
            })
        })
        .optional()?;
    Ok(found)
}
