//! Moves everything from one database to another. A transfer can be interrupted anywhere and resumed: each transaction that
//! inserts rows into the target also stores a checkpoint there. At the end the digests of all rows of both databases are compared,
//! and every log is verified by its hashes.

use crate::store::Store;
use crate::tables::{Cell, ROWS_PER_PAGE, RowDigest, Table, TableRow, TransferCheckpoint, tables};
use lango_core::StoreError;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TransferReport {
    /// Number of rows in all tables.
    pub rows: u64,
    pub sessions: u64,
    pub events: u64,
    /// Number of sessions whose logs are damaged. They were already damaged in the source.
    pub damaged: u64,
}

/// The current step of a transfer, with the name of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferStage {
    Copying(&'static str),
    Comparing(&'static str),
    CheckingLogs,
}

/// The number of rows or sessions of a stage that are done.
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
    #[error("a server is using {place}")]
    HasServer { place: String },
    #[error("{place} is not empty: its table `{table}` has rows")]
    NotEmpty { place: String, table: &'static str },
    #[error("{place} contains part of another move, from {source_place}")]
    OtherTransfer { place: String, source_place: String },
    /// One of the databases was written to during the transfer.
    #[error("the rows of `{table}` differ: {place} was written to after the move started")]
    Changed { table: &'static str, place: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

pub type OnProgress<'a> = &'a mut (dyn FnMut(TransferProgress) + Send);

/// Moves everything from `source` to `target`. Resumes an interrupted transfer from the same source.
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
    let tables = tables().await?;
    let mut transfer = Transfer {
        source,
        target,
        tables,
        checkpoint: start(source, target, tables).await?,
        on_progress,
    };
    let first = transfer.checkpoint.table;
    if transfer.checkpoint.after.is_some() {
        // One of the databases may have changed since the interruption.
        transfer.compare(Some(first)).await?;
    }
    for index in first..tables.len() {
        transfer.copy(index).await?;
    }
    for table in tables {
        let last = source.last_row_id(table).await?;
        target.raise_row_id(table, last).await?;
    }
    transfer.compare(None).await?;
    let report = transfer.check_logs().await?;
    target.finish_transfer().await?;
    Ok(report)
}

/// Returns the checkpoint of an interrupted transfer, or a new one for an empty target.
async fn start(
    source: &Store,
    target: &Store,
    tables: &'static [Table],
) -> Result<TransferCheckpoint, TransferError> {
    let from = source.place();
    if let Some(mut checkpoint) = target.checkpoint().await? {
        if checkpoint.source != from {
            return Err(TransferError::OtherTransfer {
                place: target.place(),
                source_place: checkpoint.source,
            });
        }
        checkpoint.copied.resize(tables.len(), RowDigest::default());
        return Ok(checkpoint);
    }
    for table in tables {
        if !target.table_page(table, None, 1).await?.is_empty() {
            let (place, table) = (target.place(), &table.name);
            return Err(TransferError::NotEmpty { place, table });
        }
    }
    Ok(TransferCheckpoint {
        source: from,
        table: 0,
        after: None,
        copied: vec![RowDigest::default(); tables.len()],
    })
}

struct Transfer<'a> {
    source: &'a Store,
    target: &'a Store,
    tables: &'static [Table],
    checkpoint: TransferCheckpoint,
    on_progress: OnProgress<'a>,
}

impl Transfer<'_> {
    fn report(&mut self, stage: TransferStage, done: u64, total: u64) {
        (self.on_progress)(TransferProgress { stage, done, total });
    }

    /// Copies the rows of a table that have not been copied yet.
    async fn copy(&mut self, index: usize) -> Result<(), TransferError> {
        let table = &self.tables[index];
        let total = self.source.count_rows(table).await?;
        let mut pages = Pages::of(self.source, table);
        if index == self.checkpoint.table {
            pages.after.clone_from(&self.checkpoint.after);
        }
        loop {
            let done = self.checkpoint.copied[index].rows;
            let stage = TransferStage::Copying(&table.name);
            self.report(stage, done, total.max(done));
            let Some(rows) = pages.next().await? else {
                return Ok(());
            };
            let mut checkpoint = self.checkpoint.clone();
            (checkpoint.table, checkpoint.after) = (index, pages.after.clone());
            rows.iter()
                .for_each(|row| checkpoint.copied[index].add(row));
            let inserted = self.target.insert_rows(table, rows, checkpoint.clone());
            let inserted = inserted.await;
            if let Err(StoreError::Failed { .. }) = inserted {
                // The rows conflict with earlier ones, perhaps because one database was changed.
                self.compare(Some(index)).await?;
            }
            inserted?;
            self.checkpoint = checkpoint;
        }
    }

    /// Checks that the target has exactly the copied rows, and that the source still has the same rows. If `unfinished`
    /// is given, the tables from that index on are not completely copied yet, so the other rows that they have in the
    /// source are ignored.
    async fn compare(&mut self, unfinished: Option<usize>) -> Result<(), TransferError> {
        for (index, table) in self.tables.iter().enumerate() {
            let copied = self.checkpoint.copied[index].clone();
            let is_unfinished = unfinished.is_some_and(|unfinished| index >= unfinished);
            let limit = if is_unfinished { copied.rows } else { u64::MAX };
            for (store, limit) in [(self.target, u64::MAX), (self.source, limit)] {
                if !self.has_rows(store, table, limit, &copied).await? {
                    let (table, place) = (&table.name, store.place());
                    return Err(TransferError::Changed { table, place });
                }
            }
        }
        Ok(())
    }

    /// Returns whether the first `limit` rows of a table are the expected ones.
    async fn has_rows(
        &mut self,
        store: &Store,
        table: &'static Table,
        limit: u64,
        expected: &RowDigest,
    ) -> Result<bool, StoreError> {
        let (mut found, mut pages) = (RowDigest::default(), Pages::of(store, table));
        while found.rows < limit && found.rows <= expected.rows {
            let stage = TransferStage::Comparing(&table.name);
            self.report(stage, found.rows, expected.rows);
            let Some(rows) = pages.next().await? else {
                break;
            };
            let left = usize::try_from(limit - found.rows).unwrap_or(usize::MAX);
            rows.iter().take(left).for_each(|row| found.add(row));
        }
        Ok(found == *expected)
    }

    async fn check_logs(&mut self) -> Result<TransferReport, TransferError> {
        let mut report = TransferReport::default();
        for (table, copied) in self.tables.iter().zip(&self.checkpoint.copied) {
            report.rows += copied.rows;
            match table.name.as_str() {
                "sessions" => report.sessions = copied.rows,
                "events" => report.events = copied.rows,
                _ => {}
            }
        }
        // The first table is `sessions`, because all others refer to it.
        let (mut done, mut pages) = (0, Pages::of(self.target, &self.tables[0]));
        while let Some(rows) = pages.next().await? {
            for row in &rows {
                let Some(Cell::Text(id)) = row.first() else {
                    continue;
                };
                match self.target.verify(&id.as_str().into()).await {
                    Err(StoreError::Damaged { .. }) => report.damaged += 1,
                    // A hidden session has no readable log.
                    Ok(_) | Err(StoreError::NotFound { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
                done += 1;
                self.report(TransferStage::CheckingLogs, done, report.sessions);
            }
        }
        Ok(report)
    }
}

/// An iterator over the pages of a table.
struct Pages<'a> {
    store: &'a Store,
    table: &'static Table,
    /// The key of the last row read.
    after: Option<TableRow>,
}

impl<'a> Pages<'a> {
    fn of(store: &'a Store, table: &'static Table) -> Self {
        let after = None;
        Self {
            store,
            table,
            after,
        }
    }

    async fn next(&mut self) -> Result<Option<Vec<TableRow>>, StoreError> {
        let page = self
            .store
            .table_page(self.table, self.after.take(), ROWS_PER_PAGE);
        let rows = page.await?;
        self.after = rows.last().map(|row| row[..self.table.key].to_vec());
        Ok(Some(rows).filter(|rows| !rows.is_empty()))
    }
}
