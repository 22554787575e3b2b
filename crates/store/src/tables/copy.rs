//! Reads and inserts rows of any table with statements built from its description, and stores the checkpoint of a transfer.
//! Pages have the same order in both databases, because text is compared byte by byte.

use super::{Cell, Table, TableRow, TransferCheckpoint};
use crate::StoreFuture;
use crate::archive::PAGE_BYTES;
use crate::backend::{
    Backend, BackendError, Result, Row, Sql, ToValue as _, Tx, Value, sql, values,
};
use crate::library::index_words;
use crate::store::Store;
use lango_core::StoreError;

/// Access to tables for transfers. The target stores the checkpoint in the transactions that insert rows.
impl Store {
    /// Returns the address of the database, without the password.
    pub fn place(&self) -> String {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.shown_place(),
            Backend::Postgres(postgres) => postgres.database.address.shown.clone(),
        }
    }

    pub async fn count_rows(&self, table: &'static Table) -> Result<u64, StoreError> {
        let count = self.backend.query_opt(table.count, &[], |row| row.get(0));
        Ok(count.await?.unwrap_or_default())
    }

    /// Reads rows of a table in the order of their keys, after the given key. A page of large rows has fewer rows than
    /// `limit`, but at least one unless the table has ended.
    pub fn table_page(
        &self,
        table: &'static Table,
        after: Option<TableRow>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<TableRow>> {
        let args = (table, after, limit);
        self.backend.read(args, |tx, (table, after, limit)| {
            Box::pin(async move {
                let (statement, key) = match after {
                    Some(key) => (table.next_page, &key[..]),
                    None => (table.first_page, &[][..]),
                };
                let mut values = row_values(key);
                values.push(limit.to_value());
                let read = |row: Row<'_>| {
                    let cells = (0..table.columns.len()).map(|column| row.get(column));
                    let cells: TableRow = cells.collect::<Result<_, _>>()?;
                    let size = cells.iter().map(Cell::size).sum();
                    Ok((cells, size))
                };
                tx.query_page(statement, &values, PAGE_BYTES, read).await
            })
        })
    }

    /// Returns the last id that was generated for a table. Returns `None` for tables that may reuse ids.
    pub async fn last_row_id(&self, table: &'static Table) -> Result<Option<i64>, StoreError> {
        if !table.is_numbered {
            return Ok(None);
        }
        let values = values![table.name];
        let id = self
            .backend
            .query_opt(LAST_ROW_ID, values, |row| row.get(0));
        Ok(id.await?.flatten())
    }

    /// Counts the sessions that a process has locked or leased.
    pub async fn count_leases(&self) -> Result<usize, StoreError> {
        if let Backend::Sqlite(sqlite) = &self.backend {
            return sqlite.count_locks().await;
        }
        let count = self.backend.query_opt(COUNT_LEASES, &[], |row| row.get(0));
        Ok(count.await?.unwrap_or_default())
    }

    pub fn checkpoint(&self) -> StoreFuture<'_, Option<TransferCheckpoint>> {
        self.backend.snapshot((), |tx, ()| Box::pin(checkpoint(tx)))
    }

    /// Inserts rows into a table and stores the checkpoint, in one transaction.
    pub fn insert_rows(
        &self,
        table: &'static Table,
        rows: Vec<TableRow>,
        checkpoint: TransferCheckpoint,
    ) -> StoreFuture<'_, ()> {
        let args = (table, rows, checkpoint);
        self.backend.write(args, |tx, (table, rows, checkpoint)| {
            Box::pin(async move {
                tx.execute(CREATE_CHECKPOINT, &[]).await?;
                let values: Vec<_> = rows.iter().map(|row| row_values(row)).collect();
                tx.execute_many(table.insert, &values).await?;
                if table.name == "library_chunks" {
                    index_chunks(tx, rows).await?;
                }
                let after = checkpoint.after.as_ref().map(serde_json::to_string);
                let after = after.transpose().map_err(checkpoint_error)?;
                let copied = serde_json::to_string(&checkpoint.copied).map_err(checkpoint_error)?;
                let values = values![checkpoint.source, checkpoint.table, after, copied];
                tx.execute(SET_CHECKPOINT, values).await.map(drop)
            })
        })
    }

    /// Makes the next generated id of a table greater than `last` and the ids of all rows.
    pub fn raise_row_id(&self, table: &'static Table, last: Option<i64>) -> StoreFuture<'_, ()> {
        self.backend
            .write_idempotent((table, last), |tx, (table, last)| {
                Box::pin(async move {
                    let values = values![table.name, last];
                    if !tx.is_sqlite() && table.is_numbered {
                        tx.exists(table.raise_sequence, values).await?;
                    } else if last.is_some() {
                        tx.execute(ADD_SEQUENCE, values).await?;
                        tx.execute(RAISE_SEQUENCE, values).await?;
                    }
                    Ok(())
                })
            })
    }

    pub async fn finish_transfer(&self) -> Result<(), StoreError> {
        self.backend.execute(DROP_CHECKPOINT, &[]).await.map(drop)
    }
}

fn row_values(row: &[Cell]) -> Vec<Value<'_>> {
    row.iter().map(|cell| cell.to_value()).collect()
}

/// Adds the words of chunks to the full-text index of PostgreSQL. In SQLite triggers do this.
async fn index_chunks(tx: &mut Tx<'_>, rows: &[TableRow]) -> Result<()> {
    let chunks = rows.iter().filter_map(|row| match &row[..] {
        [Cell::Integer(id), .., Cell::Text(heading), Cell::Text(text)] => {
            Some((*id, format!("{heading}\n{text}")))
        }
        _ => None,
    });
    let (ids, texts): (Vec<i64>, Vec<String>) = chunks.unzip();
    index_words(tx, &ids, texts.into_iter()).await
}

/// Reads the checkpoint of an unfinished transfer into this database.
pub(crate) async fn checkpoint(tx: &mut Tx<'_>) -> Result<Option<TransferCheckpoint>> {
    let exists = tx.value(HAS_CHECKPOINT, &[]).await?;
    if !exists.unwrap_or(false) {
        return Ok(None);
    }
    let read = |row: Row<'_>| {
        let (after, copied): (Option<String>, String) = (row.get(2)?, row.get(3)?);
        let after = after.map(|key| serde_json::from_str(&key)).transpose();
        Ok(TransferCheckpoint {
            source: row.get(0)?,
            table: row.get(1)?,
            after: after.map_err(checkpoint_error)?,
            copied: serde_json::from_str(&copied).map_err(checkpoint_error)?,
        })
    };
    tx.query_opt(CHECKPOINT, &[], read).await
}

fn checkpoint_error(error: serde_json::Error) -> BackendError {
    BackendError::other(format!(
        "the checkpoint of a move cannot be read or written: {error}"
    ))
}

const LAST_ROW_ID: Sql = sql!(
    sqlite: "SELECT seq FROM sqlite_sequence WHERE name = ?1",
    postgres: "SELECT pg_sequence_last_value(pg_get_serial_sequence($1, 'id')::regclass)"
);

/// Adds the sequence of a table that never reuses ids and has not generated any yet.
const ADD_SEQUENCE: Sql = sql!(
    sqlite: "INSERT INTO sqlite_sequence (name, seq)
     SELECT ?1, ?2 FROM sqlite_schema WHERE name = ?1 AND sql LIKE '%AUTOINCREMENT%'
        AND NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = ?1)",
    postgres: ""
);
const RAISE_SEQUENCE: Sql = sql!(
    sqlite: "UPDATE sqlite_sequence SET seq = max(seq, ?2) WHERE name = ?1",
    postgres: ""
);

const COUNT_LEASES: Sql =
    Sql::only_postgres("SELECT count(*) FROM holds WHERE until > clock_timestamp()");

/// Creates the table of the checkpoint, which exists only during a transfer.
const CREATE_CHECKPOINT: Sql = sql!(
    r#"CREATE TABLE IF NOT EXISTS move_under_way (
         "only" /*sqlite INTEGER*/ /*postgres BIGINT*/ PRIMARY KEY CHECK ("only" = 1), source TEXT NOT NULL,
         "table" /*sqlite INTEGER*/ /*postgres BIGINT*/ NOT NULL, after TEXT, copied TEXT NOT NULL) /*sqlite STRICT*/"#
);
const HAS_CHECKPOINT: Sql = sql!(
    sqlite: "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'move_under_way'",
    postgres: "SELECT to_regclass('move_under_way') IS NOT NULL"
);
const CHECKPOINT: Sql = sql!(r#"SELECT source, "table", after, copied FROM move_under_way"#);
const SET_CHECKPOINT: Sql = sql!(
    r#"INSERT INTO move_under_way ("only", source, "table", after, copied) VALUES (1, $1, $2, $3, $4)
     ON CONFLICT ("only") DO UPDATE SET source = excluded.source, "table" = excluded."table",
        after = excluded.after, copied = excluded.copied"#
);
const DROP_CHECKPOINT: Sql = sql!("DROP TABLE IF EXISTS move_under_way");

#[cfg(test)]
mod tests {
    use crate::backend::plans::{ManyRows, sqlite_plan};
    use crate::tables::tables;

    #[tokio::test]
    async fn reading_a_page_of_a_table_neither_scans_nor_sorts() {
        let tables = tables().await.unwrap();
        for table in tables {
            let plan = sqlite_plan(table.next_page);
            assert!(plan.starts_with("SEARCH"), "{plan}");
            for statement in [table.first_page, table.next_page] {
                let plan = sqlite_plan(statement);
                assert!(!plan.contains("TEMP B-TREE"), "{plan}");
            }
        }
        let postgres = ManyRows::open("").await;
        for table in tables.iter().filter(|table| table.name == "events") {
            for statement in [table.first_page, table.next_page] {
                let plan = postgres.plan(statement).await;
                assert!(!plan.contains("Seq Scan"), "{plan}");
            }
        }
    }
}
