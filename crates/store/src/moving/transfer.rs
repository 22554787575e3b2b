//! Rows on their way: copied in pieces, compared, and found out about when they are not what they were.

use super::{Doing, MoveError, Progress, Seen, key_of};
use crate::tables::{Cells, Copied, Destination, Mark, ROWS_AT_ONCE, TABLES, Table, Tables};
use lango_core::StoreError;

/// The two databases, and what was copied from one to the other.
pub(super) struct Transfer<'a> {
    pub source: &'a dyn Tables,
    pub target: &'a dyn Destination,
    /// For each table that was begun.
    pub copied: Vec<Copied>,
}

/// How much of the source was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// All of the tables before the last one that was begun, and the first rows of that one.
    SoFar,
    /// Everything.
    All,
}

impl Transfer<'_> {
    /// Copies the rows of a table after a key.
    pub(super) async fn copy(
        &mut self,
        index: usize,
        table: &'static Table,
        mut after: Option<Cells>,
        seen: Seen<'_>,
    ) -> Result<(), MoveError> {
        let total = self.source.count_rows(table).await?;
        loop {
            let mut copied = self.copied.clone();
            copied.resize(copied.len().max(index + 1), Copied::default());
            let own = &mut copied[index];
            seen(Progress {
                doing: Doing::Copying(table.name),
                done: own.rows,
                total: total.max(own.rows),
            });
            let rows = self.source.page(table, after.take(), ROWS_AT_ONCE).await?;
            let Some(last) = rows.last() else {
                return Ok(());
            };
            after = Some(key_of(table, last));
            rows.iter().for_each(|row| own.take(row));
            let mark = Mark {
                source: self.source.place(),
                table: index,
                after: after.clone(),
                copied: copied.clone(),
            };
            match self.target.arrive(table, rows, mark).await {
                Ok(()) => self.copied = copied,
                Err(error @ StoreError::Failed { .. }) => {
                    // Rows that do not fit those before them: one side may have changed.
                    self.must_be_as_copied(Extent::SoFar, seen).await?;
                    return Err(error.into());
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sees that both have the same rows of a table; gives how many.
    pub(super) async fn compare(
        &self,
        table: &'static Table,
        seen: Seen<'_>,
    ) -> Result<u64, MoveError> {
        let total = self.source.count_rows(table).await?;
        if self.target.count_rows(table).await? != total {
            return Err(self.blame(table, seen).await?);
        }
        let (mut done, mut after) = (0, None);
        loop {
            seen(Progress {
                doing: Doing::Comparing(table.name),
                done,
                total,
            });
            let rows = self.source.page(table, after.take(), ROWS_AT_ONCE).await?;
            let Some(last) = rows.last() else {
                return Ok(done);
            };
            after = Some(key_of(table, last));
            done += rows.len() as u64;
            let keys = rows.iter().map(|row| key_of(table, row)).collect();
            let arrived = self.target.rows_of(table, keys).await?;
            let is_same = rows.into_iter().map(Some).eq(arrived);
            if !is_same {
                return Err(self.blame(table, seen).await?);
            }
        }
    }

    /// Which of the two is not what it was, now that they are not the same.
    async fn blame(&self, table: &'static Table, seen: Seen<'_>) -> Result<MoveError, MoveError> {
        self.must_be_as_copied(Extent::All, seen).await?;
        Ok(MoveError::Differs {
            table: table.name,
            from: self.source.place(),
            to: self.target.place(),
        })
    }

    /// Sees that the destination has what was copied and nothing else, and that the source still has it.
    pub(super) async fn must_be_as_copied(
        &self,
        extent: Extent,
        seen: Seen<'_>,
    ) -> Result<(), MoveError> {
        let target = self.target as &dyn Tables;
        for (index, table) in TABLES.iter().enumerate() {
            let copied = self.copied.get(index).cloned().unwrap_or_default();
            seen(Progress {
                doing: Doing::Comparing(table.name),
                done: 0,
                total: copied.rows,
            });
            let is_begun = index < self.copied.len();
            let is_last = extent == Extent::SoFar && index + 1 == self.copied.len();
            let is_same = !is_begun || {
                let most = if is_last { copied.rows } else { u64::MAX };
                rows_of(self.source, table, most, &copied).await?
            };
            let changed = if !rows_of(target, table, u64::MAX, &copied).await? {
                target
            } else if !is_same {
                self.source
            } else {
                continue;
            };
            return Err(MoveError::Changed {
                table: table.name,
                place: changed.place(),
            });
        }
        Ok(())
    }
}

/// Whether a table has these rows, looking at so many at most.
async fn rows_of(
    store: &dyn Tables,
    table: &'static Table,
    most: u64,
    expected: &Copied,
) -> Result<bool, StoreError> {
    let (mut found, mut after) = (Copied::default(), None);
    loop {
        let rows = store.page(table, after.take(), ROWS_AT_ONCE).await?;
        let Some(last) = rows.last() else {
            return Ok(found == *expected);
        };
        after = Some(key_of(table, last));
        for row in &rows {
            if found.rows >= most {
                return Ok(found == *expected);
            }
            found.take(row);
        }
        if found.rows > expected.rows {
            return Ok(false);
        }
    }
}
