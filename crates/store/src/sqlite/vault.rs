//! The tables of vaults.

use super::SqliteStore;
use super::archive::statements::{BEGIN_WIPING, END_WIPING};
use super::failure::Failure;
use super::rows::{bound, limit, unsigned};
use super::statements::vault::{
    APPEND_EVENT, DELETE_HEAD, DELETE_ORPHANS, DELETE_RECORD, DELETE_RECORDS, EVENTS, HEAD,
    INSERT_HEAD, PUT_RECORD, RECORD, RECORDS, REPLACE_HEAD, TRIM_EVENTS,
};
use crate::vault::{MOST_VAULT_EVENTS, check_change, check_owner};
use lango_core::{
    BoxFuture, RecordSelection, StoreError, Timestamp, UserId, VaultChange, VaultChanged,
    VaultEvent, VaultRecord, VaultSnapshot, VaultStore,
};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

impl VaultStore for SqliteStore {
    fn read_vault<'a>(
        &'a self,
        user: &'a UserId,
        records: RecordSelection,
    ) -> BoxFuture<'a, Result<Option<VaultSnapshot>, StoreError>> {
        let user = user.clone();
        Box::pin(self.readers.read(move |reader| {
            // Both statements see the same moment.
            let moment = reader.connection.unchecked_transaction()?;
            Ok(read_vault(&moment, user.as_str(), &records)?)
        }))
    }

    fn change_vault<'a>(
        &'a self,
        user: &'a UserId,
        change: VaultChange,
    ) -> BoxFuture<'a, Result<VaultChanged, StoreError>> {
        Box::pin(async move {
            check_change(user, &change)?;
            let user = user.clone();
            let changed = self.writer.change(move |connection| {
                connection.execute_batch(BEGIN_WIPING)?;
                let changed = change_vault(connection, user.as_str(), &change);
                connection.execute_batch(END_WIPING)?;
                changed
            });
            changed.await
        })
    }

    fn append_vault_event<'a>(
        &'a self,
        user: &'a UserId,
        event: VaultEvent,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            check_owner(user)?;
            let user = user.clone();
            let appended = self
                .writer
                .change(move |connection| append_event(connection, user.as_str(), &event));
            appended.await
        })
    }

    fn vault_events<'a>(
        &'a self,
        user: &'a UserId,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<VaultEvent>, StoreError>> {
        let user = user.clone();
        Box::pin(self.readers.read(move |reader| {
            let mut statement = reader.connection.prepare_cached(EVENTS)?;
            let events = statement.query_map(params![user.as_str(), limit(most)], |row| {
                Ok(VaultEvent {
                    time: Timestamp(unsigned(row, 0)?),
                    action: row.get(1)?,
                    subject: row.get(2)?,
                    actor: row.get(3)?,
                })
            })?;
            Ok(events.collect::<rusqlite::Result<_>>()?)
        }))
    }
}

fn read_vault(
    connection: &Connection,
    user: &str,
    records: &RecordSelection,
) -> rusqlite::Result<Option<VaultSnapshot>> {
    let head = connection
        .prepare_cached(HEAD)?
        .query_row([user], |row| Ok((unsigned(row, 0)?, row.get(1)?)))
        .optional()?;
    let Some((revision, head)) = head else {
        return Ok(None);
    };
    let record = |row: &Row<'_>| {
        Ok(VaultRecord {
            name: row.get(0)?,
            envelope: row.get(1)?,
        })
    };
    let records = match records {
        RecordSelection::None => Vec::new(),
        RecordSelection::One(name) => connection
            .prepare_cached(RECORD)?
            .query_map(params![user, name], record)?
            .collect::<rusqlite::Result<_>>()?,
        RecordSelection::All => connection
            .prepare_cached(RECORDS)?
            .query_map([user], record)?
            .collect::<rusqlite::Result<_>>()?,
    };
    Ok(Some(VaultSnapshot {
        revision,
        head,
        records,
    }))
}

fn change_vault(
    connection: &Connection,
    user: &str,
    change: &VaultChange,
) -> Result<VaultChanged, Failure> {
    let revision = bound(change.revision);
    let changed = match (&change.head, change.expected.map(bound)) {
        (Some(head), None) => connection
            .prepare_cached(INSERT_HEAD)?
            .execute(params![user, revision, head])?,
        (Some(head), Some(expected)) => connection
            .prepare_cached(REPLACE_HEAD)?
            .execute(params![user, revision, head, expected])?,
        (None, Some(0)) => connection.prepare_cached(DELETE_ORPHANS)?.execute([user])?,
        (None, expected) => connection
            .prepare_cached(DELETE_HEAD)?
            .execute(params![user, expected])?,
    };
    if changed == 0 {
        return Ok(VaultChanged::Outdated);
    }
    if change.head.is_none() {
        connection.prepare_cached(DELETE_RECORDS)?.execute([user])?;
    }
    for name in &change.remove {
        connection
            .prepare_cached(DELETE_RECORD)?
            .execute(params![user, name])?;
    }
    for record in &change.put {
        connection.prepare_cached(PUT_RECORD)?.execute(params![
            user,
            record.name,
            record.envelope
        ])?;
    }
    append_event(connection, user, &change.event)?;
    Ok(VaultChanged::Applied)
}

fn append_event(connection: &Connection, user: &str, event: &VaultEvent) -> Result<(), Failure> {
    let VaultEvent {
        time,
        action,
        subject,
        actor,
    } = event;
    connection.prepare_cached(APPEND_EVENT)?.execute(params![
        user,
        bound(time.0),
        action,
        subject,
        actor
    ])?;
    connection
        .prepare_cached(TRIM_EVENTS)?
        .execute(params![user, bound(MOST_VAULT_EVENTS)])?;
    Ok(())
}
