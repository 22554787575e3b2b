//! Moves everything from one database to another, in an order and in pieces that can be interrupted anywhere: the target has
//! a checkpoint, written in the transaction that inserted the last piece. At the end the rows of both databases are compared by
//! their digests, and every log is checked by its hashes.

#![allow(missing_docs, reason = "the names say it")]

use crate::store::Store;
use crate::tables::{Cell, ROWS_AT_ONCE, RowDigest, TABLES, Table, TableRow, TransferCheckpoint};
use lango_core::{SessionId, StoreError};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TransferReport {
    /// Rows of all tables.
    pub rows: u64,
    pub sessions: u64,
    pub events: u64,
    /// Sessions with damaged logs. They were damaged before.
    pub damaged: u64,
}

/// The current step of a transfer, with the name of its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferStage {
    Copying(&'static str),
    Comparing(&'static str),
    CheckingLogs,
}

/// How many rows or sessions of a stage are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransferProgress {
    pub stage: TransferStage,
    pub done: u64,
    pub total: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    #[error("{place} is in use: {sessions} of its sessions are locked")]
    InUse { place: String, sessions: usize },
    #[error("a server uses {place}")]
    HasServer { place: String },
    #[error("{place} is not empty: there are rows in `{table}`")]
    NotEmpty { place: String, table: &'static str },
    #[error("{place} has part of another move in it, from {source_place}")]
    OtherTransfer { place: String, source_place: String },
    /// One of the databases was written to meanwhile.
    #[error("`{table}` is not what was moved: {place} was written to since the move began")]
    Changed { table: &'static str, place: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Called with the progress of a transfer.
pub type OnProgress<'a> = &'a mut (dyn FnMut(TransferProgress) + Send);

/// Moves everything; resumes an interrupted transfer from the same source.
pub async fn transfer_all(
    source: &Store,
    target: &Store,
    on_progress: OnProgress<'_>,
) -> Result<TransferReport, TransferError> {
    for store in [source, target] {
        if store.has_server().await? {
            let place = store.place();
            return Err(TransferError::HasServer { place });
        }
        let sessions = store.count_leases().await?;
        if sessions > 0 {
            let place = store.place();
            return Err(TransferError::InUse { place, sessions });
        }
    }
    let checkpoint = start(source, target).await?;
    let mut transfer = Transfer {
        source,
        target,
        copied: checkpoint.copied,
        on_progress,
    };
    if !transfer.copied.is_empty() {
        // One of the databases may have changed since the interruption.
        transfer.compare(Extent::SoFar).await?;
    }
    let mut after = checkpoint.after;
    for index in checkpoint.table..TABLES.len() {
        transfer.copy(index, after.take()).await?;
    }
    transfer.copied.resize(TABLES.len(), RowDigest::default());
    let mut last = Vec::new();
    for table in TABLES {
        if let Some(id) = source.last_row_id(table).await? {
            last.push((table, id));
        }
    }
    target.raise_row_ids(last).await?;
    transfer.compare(Extent::All).await?;
    let report = transfer.check_logs().await?;
    target.finish_transfer().await?;
    Ok(report)
}

/// Returns the checkpoint of an interrupted transfer, or a new one for an empty target.
async fn start(source: &Store, target: &Store) -> Result<TransferCheckpoint, TransferError> {
    let from = source.place();
    match target.checkpoint().await? {
        Some(checkpoint) if checkpoint.source == from => return Ok(checkpoint),
        Some(checkpoint) => {
            return Err(TransferError::OtherTransfer {
                place: target.place(),
                source_place: checkpoint.source,
            });
        }
        None => {}
    }
    for table in TABLES {
        if !target.table_page(table, None, 1).await?.is_empty() {
            let (place, table) = (target.place(), table.name);
            return Err(TransferError::NotEmpty { place, table });
        }
    }
    Ok(TransferCheckpoint {
        source: from,
        table: 0,
        after: None,
        copied: Vec::new(),
    })
}

/// How much of the source was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// All of the tables before the last one that was begun, and the first rows of that one.
    SoFar,
    All,
}

struct Transfer<'a> {
    source: &'a Store,
    target: &'a Store,
    /// For each table that was begun.
    copied: Vec<RowDigest>,
    on_progress: OnProgress<'a>,
}

impl Transfer<'_> {
    fn report(&mut self, stage: TransferStage, done: u64, total: u64) {
        (self.on_progress)(TransferProgress { stage, done, total });
    }

    /// Copies the rows of a table after a key.
    async fn copy(
        &mut self,
        index: usize,
        mut after: Option<TableRow>,
    ) -> Result<(), TransferError> {
        let table = &TABLES[index];
        let total = self.source.count_rows(table).await?;
        loop {
            let mut copied = self.copied.clone();
            copied.resize(copied.len().max(index + 1), RowDigest::default());
            let done = copied[index].rows;
            self.report(TransferStage::Copying(table.name), done, total.max(done));
            let rows = self.source.table_page(table, after, ROWS_AT_ONCE).await?;
            let Some(last) = rows.last() else {
                return Ok(());
            };
            after = Some(key_of(table, last));
            rows.iter().for_each(|row| copied[index].add(row));
            let checkpoint = TransferCheckpoint {
                source: self.source.place(),
                table: index,
                after: after.clone(),
                copied: copied.clone(),
            };
            match self.target.insert_rows(table, rows, checkpoint).await {
                Ok(()) => self.copied = copied,
                Err(error @ StoreError::Failed { .. }) => {
                    // Rows that do not fit those before them: one side may have changed.
                    self.compare(Extent::SoFar).await?;
                    return Err(error.into());
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Checks that the target has what was copied and nothing else, and that the source still has it.
    async fn compare(&mut self, extent: Extent) -> Result<(), TransferError> {
        for (index, table) in TABLES.iter().enumerate() {
            let copied = self.copied.get(index).cloned().unwrap_or_default();
            let target = self.target;
            let is_begun = index < self.copied.len();
            let is_last = extent == Extent::SoFar && index + 1 == self.copied.len();
            let most = if is_last { copied.rows } else { u64::MAX };
            let changed = if !self.has_rows(target, table, u64::MAX, &copied).await? {
                target
            } else if is_begun && !self.has_rows(self.source, table, most, &copied).await? {
                self.source
            } else {
                continue;
            };
            let (table, place) = (table.name, changed.place());
            return Err(TransferError::Changed { table, place });
        }
        Ok(())
    }

    /// Returns whether the first `most` rows of a table are the expected ones.
    async fn has_rows(
        &mut self,
        store: &Store,
        table: &'static Table,
        most: u64,
        expected: &RowDigest,
    ) -> Result<bool, StoreError> {
        let (mut found, mut after) = (RowDigest::default(), None);
        loop {
            let stage = TransferStage::Comparing(table.name);
            self.report(stage, found.rows, expected.rows);
            let rows = store.table_page(table, after, ROWS_AT_ONCE).await?;
            let Some(last) = rows.last() else {
                return Ok(found == *expected);
            };
            after = Some(key_of(table, last));
            for row in &rows {
                if found.rows >= most {
                    return Ok(found == *expected);
                }
                found.add(row);
            }
            if found.rows > expected.rows {
                return Ok(false);
            }
        }
    }

    /// Checks the logs in the target.
    async fn check_logs(&mut self) -> Result<TransferReport, TransferError> {
        let mut report = TransferReport::default();
        for (table, copied) in TABLES.iter().zip(&self.copied) {
            report.rows += copied.rows;
            match table.name {
                "sessions" => report.sessions = copied.rows,
                "events" => report.events = copied.rows,
                _ => {}
            }
        }
        let Some(sessions) = TABLES.iter().find(|table| table.name == "sessions") else {
            return Ok(report);
        };
        let (mut done, mut after) = (0, None);
        loop {
            let page = self.target.table_page(sessions, after, ROWS_AT_ONCE);
            let rows = page.await?;
            let Some(last) = rows.last() else {
                return Ok(report);
            };
            after = Some(key_of(sessions, last));
            for row in &rows {
                let Some(Cell::Text(id)) = row.first() else {
                    continue;
                };
                let id = SessionId::from(id.as_str());
                match self.target.verify(&id).await {
                    Err(StoreError::Damaged { .. }) => report.damaged += 1,
                    // A hidden session has no readable log.
                    Ok(_) | Err(StoreError::NotFound { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
                done += 1;
                self.report(TransferStage::CheckingLogs, done, report.sessions);
            }
        }
    }
}

fn key_of(table: &Table, row: &[Cell]) -> TableRow {
    row.iter().take(table.key).cloned().collect()
}
