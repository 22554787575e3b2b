//! The tables of vaults. A change locks the row of the vault first, so that replicas change one vault one after the other.

use super::PostgresStore;
use super::asking::{execute, row, rows};
use super::database::Values;
use super::failure::Failure;
use super::rows::{bound, limit, text, unsigned};
use super::statements::vault::{
    APPEND_EVENT, DELETE_HEAD, DELETE_ORPHANS, DELETE_RECORD, DELETE_RECORDS, EVENTS, HEAD,
    INSERT_HEAD, LOCK_HEAD, PUT_RECORD, RECORD, RECORDS, REPLACE_HEAD, TRIM_EVENTS,
};
use super::text::{Words, optional_words};
use crate::vault::{MOST_VAULT_EVENTS, check_change, check_owner};
use deadpool_postgres::Transaction;
use lango_core::{
    BoxFuture, RecordSelection, StoreError, Timestamp, UserId, VaultChange, VaultChanged,
    VaultEvent, VaultRecord, VaultSnapshot, VaultStore,
};

impl VaultStore for PostgresStore {
    fn read_vault<'a>(
        &'a self,
        user: &'a UserId,
        records: RecordSelection,
    ) -> BoxFuture<'a, Result<Option<VaultSnapshot>, StoreError>> {
        self.look((user.clone(), records), |transaction, (user, records)| {
            Box::pin(read_vault(transaction, user.as_str(), records))
        })
    }

    fn change_vault<'a>(
        &'a self,
        user: &'a UserId,
        change: VaultChange,
    ) -> BoxFuture<'a, Result<VaultChanged, StoreError>> {
        Box::pin(async move {
            check_change(user, &change)?;
            let changed =
                self.repeatable_change((user.clone(), change), |transaction, (user, change)| {
                    Box::pin(change_vault(transaction, user.as_str(), change))
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
            let appended = self.change((user.clone(), event), |transaction, (user, event)| {
                Box::pin(async move {
                    let owner = Words(user.as_str());
                    row(transaction, LOCK_HEAD, &[&owner]).await?;
                    append_event(transaction, owner, event).await
                })
            });
            appended.await
        })
    }

    fn vault_events<'a>(
        &'a self,
        user: &'a UserId,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<VaultEvent>, StoreError>> {
        Box::pin(async move {
            let values: Values<'_> = &[&Words(user.as_str()), &limit(most)];
            let rows = self.database.query(EVENTS, values).await?;
            self.values(&rows, |row| {
                Ok(VaultEvent {
                    time: Timestamp(unsigned(row, 0)?),
                    action: text(row, 1)?,
                    subject: optional_words(row, 2)?.map(Into::into),
                    actor: text(row, 3)?,
                })
            })
        })
    }
}

async fn read_vault(
    transaction: &Transaction<'_>,
    user: &str,
    records: &RecordSelection,
) -> Result<Option<VaultSnapshot>, Failure> {
    let user = Words(user);
    let Some(head) = row(transaction, HEAD, &[&user]).await? else {
        return Ok(None);
    };
    let found = match records {
        RecordSelection::None => Vec::new(),
        RecordSelection::One(name) => rows(transaction, RECORD, &[&user, &Words(name)]).await?,
        RecordSelection::All => rows(transaction, RECORDS, &[&user]).await?,
    };
    let records = found.iter().map(|row| {
        Ok(VaultRecord {
            name: text(row, 0)?,
            envelope: row.try_get(1)?,
        })
    });
    Ok(Some(VaultSnapshot {
        revision: unsigned(&head, 0)?,
        head: head.try_get(1)?,
        records: records.collect::<Result<_, Failure>>()?,
    }))
}

async fn change_vault(
    transaction: &Transaction<'_>,
    user: &str,
    change: &VaultChange,
) -> Result<VaultChanged, Failure> {
    let user = Words(user);
    let current = row(transaction, LOCK_HEAD, &[&user]).await?;
    let current = current.map(|row| Ok::<_, Failure>((unsigned(&row, 0)?, row.try_get(1)?)));
    let current: Option<(u64, Vec<u8>)> = current.transpose()?;
    let applied = change.head.as_ref().map(|head| (change.revision, head));
    if applied.is_some() && current.as_ref().map(|(at, head)| (*at, head)) == applied {
        // The answer to an earlier try was lost: a head is never made twice.
        return Ok(VaultChanged::Applied);
    }
    let is_orphaned = change.head.is_none() && change.expected == Some(0);
    let current = current.map(|(revision, _)| revision);
    if current != change.expected.filter(|_| !is_orphaned) {
        return Ok(VaultChanged::Outdated);
    }
    let revision = bound(change.revision);
    let changed = match (&change.head, change.expected) {
        (Some(head), None) => execute(transaction, INSERT_HEAD, &[&user, &revision, head]).await?,
        (Some(head), Some(_)) => {
            execute(transaction, REPLACE_HEAD, &[&user, &revision, head]).await?
        }
        (None, _) if is_orphaned => execute(transaction, DELETE_ORPHANS, &[&user]).await?,
        (None, _) => {
            execute(transaction, DELETE_RECORDS, &[&user]).await?;
            execute(transaction, DELETE_HEAD, &[&user]).await?
        }
    };
    if changed == 0 {
        return Ok(VaultChanged::Outdated);
    }
    for name in &change.remove {
        execute(transaction, DELETE_RECORD, &[&user, &Words(name)]).await?;
    }
    for record in &change.put {
        let values: Values<'_> = &[&user, &Words(&record.name), &record.envelope];
        execute(transaction, PUT_RECORD, values).await?;
    }
    append_event(transaction, user, &change.event).await?;
    Ok(VaultChanged::Applied)
}

async fn append_event(
    transaction: &Transaction<'_>,
    user: Words<'_>,
    event: &VaultEvent,
) -> Result<(), Failure> {
    let values: Values<'_> = &[
        &user,
        &bound(event.time.0),
        &Words(&event.action),
        &event.subject.as_deref().map(Words),
        &Words(&event.actor),
    ];
    execute(transaction, APPEND_EVENT, values).await?;
    execute(
        transaction,
        TRIM_EVENTS,
        &[&user, &bound(MOST_VAULT_EVENTS)],
    )
    .await?;
    Ok(())
}
