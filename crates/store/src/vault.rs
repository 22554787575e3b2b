//! Stores vaults: for each user a head, records and an audit log. The caller encrypts the head and the records.
//!
//! A change locks the row of the vault first, so that replicas change a vault one at a time.

use crate::StoreFuture;
use crate::backend::{Result, Row, Tx, records, statements, values};
use crate::decode::{check_user, failed};
use crate::store::Store;
use lango_core::{
    RecordSelection, StoreError, UserId, VaultChange, VaultChangeOutcome, VaultEvent, VaultRecord,
    VaultSnapshot, VaultStore,
};

/// Maximum number of entries in a user's audit log. Older entries are deleted.
pub const MAX_VAULT_EVENTS: u64 = 10_000;

/// Maximum size of the head and the records of one change, in bytes.
const MAX_CHANGE_BYTES: usize = 32 << 20;

fn check_change(user: &UserId, change: &VaultChange) -> Result<(), StoreError> {
    check_user(user, "a vault")?;
    let head = change.head.as_ref().map_or(0, Vec::len);
    let records = change.put.iter().map(|record| record.envelope.len());
    let refused = if head + records.sum::<usize>() > MAX_CHANGE_BYTES {
        "a change to a vault is larger than 32 MiB"
    } else if i64::try_from(change.revision).is_err() {
        "the revision of a vault is too large"
    } else if change.expected.is_some_and(|old| old >= change.revision) {
        "the new revision of a vault must be greater than the old one"
    } else {
        return Ok(());
    };
    Err(failed(refused))
}

impl VaultStore for Store {
    fn read_vault(
        &self,
        user: &UserId,
        records: RecordSelection,
    ) -> StoreFuture<'_, Option<VaultSnapshot>> {
        let args = (user.clone(), records);
        self.backend.snapshot(args, |tx, (user, records)| {
            Box::pin(read(tx, user, records))
        })
    }

    fn change_vault(
        &self,
        user: &UserId,
        change: VaultChange,
    ) -> StoreFuture<'_, VaultChangeOutcome> {
        let args = (user.clone(), change);
        self.backend.erase(args, |tx, (user, change)| {
            Box::pin(change_vault(tx, user, change))
        })
    }

    fn append_vault_event(&self, user: &UserId, event: VaultEvent) -> StoreFuture<'_, ()> {
        self.backend
            .write((user.clone(), event), |tx, (user, event)| {
                Box::pin(async move {
                    check_user(user, "a vault")?;
                    lock_head(tx, user).await?;
                    append_event(tx, user, event).await
                })
            })
    }

    fn vault_events(&self, user: &UserId, limit: usize) -> StoreFuture<'_, Vec<VaultEvent>> {
        self.backend
            .query(EVENTS, values![user, limit], |row| row.read())
    }
}

async fn read(
    tx: &mut Tx<'_>,
    user: &UserId,
    records: &RecordSelection,
) -> Result<Option<VaultSnapshot>> {
    let head = tx.query_opt(HEAD, values![user], revision_and_head).await?;
    let Some((revision, head)) = head else {
        return Ok(None);
    };
    let records = match records {
        RecordSelection::None => Vec::new(),
        RecordSelection::One(name) => {
            tx.query(RECORD, values![user, name], |row| row.read())
                .await?
        }
        RecordSelection::All => tx.query(RECORDS, values![user], |row| row.read()).await?,
    };
    Ok(Some(VaultSnapshot {
        revision,
        head,
        records,
    }))
}

/// Reads and locks the head, so that other replicas' changes to the vault wait.
async fn lock_head(tx: &mut Tx<'_>, user: &UserId) -> Result<Option<(u64, Vec<u8>)>> {
    tx.query_opt(LOCK_HEAD, values![user], revision_and_head)
        .await
}

async fn change_vault(
    tx: &mut Tx<'_>,
    user: &UserId,
    change: &VaultChange,
) -> Result<VaultChangeOutcome> {
    check_change(user, change)?;
    let current = lock_head(tx, user).await?;
    let applied = change.head.as_ref().map(|head| (change.revision, head));
    if applied.is_some() && current.as_ref().map(|(at, head)| (*at, head)) == applied {
        // An earlier attempt was committed and its reply was lost: no two changes have the same head.
        return Ok(VaultChangeOutcome::Applied);
    }
    let is_orphaned = change.head.is_none() && change.expected == Some(0);
    let current = current.map(|(revision, _)| revision);
    if current != change.expected.filter(|_| !is_orphaned) {
        return Ok(VaultChangeOutcome::Outdated);
    }
    let changed = match (&change.head, change.expected) {
        (Some(head), expected) => {
            let statement = expected.map_or(INSERT_HEAD, |_| REPLACE_HEAD);
            let values = values![user, change.revision, head];
            tx.execute(statement, values).await?
        }
        (None, _) if is_orphaned => tx.execute(DELETE_ORPHANS, values![user]).await?,
        (None, _) => {
            tx.execute(DELETE_RECORDS, values![user]).await?;
            tx.execute(DELETE_HEAD, values![user]).await?
        }
    };
    if changed == 0 {
        return Ok(VaultChangeOutcome::Outdated);
    }
    for name in &change.remove {
        tx.execute(DELETE_RECORD, values![user, name]).await?;
    }
    for record in &change.put {
        let values = values![user, record.name, record.envelope];
        tx.execute(PUT_RECORD, values).await?;
    }
    append_event(tx, user, &change.event).await?;
    Ok(VaultChangeOutcome::Applied)
}

async fn append_event(tx: &mut Tx<'_>, user: &UserId, event: &VaultEvent) -> Result<()> {
    let values = values![user, event.time, event.action, event.subject, event.actor];
    tx.execute(APPEND_EVENT, values).await?;
    let values = values![user, MAX_VAULT_EVENTS];
    tx.execute(TRIM_EVENTS, values).await.map(drop)
}

fn revision_and_head(row: Row<'_>) -> Result<(u64, Vec<u8>)> {
    Ok((row.get(0)?, row.get(1)?))
}

records! {
    VaultRecord { name, envelope }
    VaultEvent { time, action, subject, actor }
}

statements! {
    /// Selects the head, or an empty head of revision 0 if only records are left. The order by name makes PostgreSQL use the index.
    HEAD: r#"SELECT revision, head FROM vaults WHERE "user" = $1
     UNION ALL SELECT 0::bigint, /*sqlite x'' */ /*postgres ''::bytea*/ WHERE NOT EXISTS (SELECT 1 FROM vaults WHERE "user" = $1)
        AND (SELECT name FROM vault_records WHERE "user" = $1 ORDER BY name LIMIT 1) IS NOT NULL"#;

    LOCK_HEAD: r#"SELECT revision, head FROM vaults WHERE "user" = $1 /*postgres FOR UPDATE*/"#;

    RECORD: r#"SELECT name, envelope FROM vault_records WHERE "user" = $1 AND name = $2"#;

    RECORDS: r#"SELECT name, envelope FROM vault_records WHERE "user" = $1 ORDER BY name"#;

    /// Inserts the head of a new vault, unless records of an old one are left.
    INSERT_HEAD: r#"INSERT INTO vaults ("user", revision, head)
     SELECT $1, $2, $3
      WHERE (SELECT name FROM vault_records WHERE "user" = $1 ORDER BY name LIMIT 1) IS NULL
     ON CONFLICT ("user") DO NOTHING"#;

    /// Deletes the records of a vault whose head is missing.
    DELETE_ORPHANS: r#"DELETE FROM vault_records WHERE "user" = $1
        AND NOT EXISTS (SELECT 1 FROM vaults WHERE "user" = $1)"#;

    REPLACE_HEAD: r#"UPDATE vaults SET revision = $2, head = $3 WHERE "user" = $1"#;

    DELETE_HEAD: r#"DELETE FROM vaults WHERE "user" = $1"#;

    DELETE_RECORDS: r#"DELETE FROM vault_records WHERE "user" = $1"#;

    DELETE_RECORD: r#"DELETE FROM vault_records WHERE "user" = $1 AND name = $2"#;

    PUT_RECORD: r#"INSERT INTO vault_records ("user", name, envelope) VALUES ($1, $2, $3)
     ON CONFLICT ("user", name) DO UPDATE SET envelope = excluded.envelope"#;

    APPEND_EVENT: r#"INSERT INTO vault_events ("user", number, time, action, subject, actor)
     SELECT $1, coalesce(max(number), 0) + 1, $2, $3, $4, $5 FROM vault_events WHERE "user" = $1"#;

    /// Deletes all but the `$2` newest entries of a user.
    TRIM_EVENTS: r#"DELETE FROM vault_events WHERE "user" = $1
        AND number <= (SELECT max(number) FROM vault_events WHERE "user" = $1) - $2::bigint"#;

    EVENTS: r#"SELECT time, action, subject, actor FROM vault_events WHERE "user" = $1
      ORDER BY number DESC LIMIT $2"#;
}
