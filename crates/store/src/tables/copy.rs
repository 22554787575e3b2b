//! The rows of any table, read and inserted with statements that are made from its description, and the checkpoint of a
//! transfer. Pages of both databases have the same order: texts are compared byte by byte.

use super::{Cell, Table, TableRow, TransferCheckpoint};
use crate::Answer;
use crate::archive::PAGE_BYTES;
use crate::engine::{Engine, Failure, Result, Row, Sql, ToValue as _, Tx, Value, sql, values};
use crate::library::index_words;
use crate::store::Store;
use lango_core::StoreError;

/// Copies tables as they are stored. The target of a transfer stores the checkpoint in the transactions that insert rows.
impl Store {
    /// Returns where the database is, without secrets.
    pub fn place(&self) -> String {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.shown_place(),
            Engine::Postgres(postgres) => postgres.database.address.shown.clone(),
        }
    }

    pub async fn count_rows(&self, table: &'static Table) -> Result<u64, StoreError> {
        let count = self.engine.query_opt(table.count, &[], |row| row.get(0));
        Ok(count.await?.unwrap_or_default())
    }

    /// Reads rows of a table in its order, after a key. A page of large rows has fewer than `limit`, but at least one if
    /// there is one.
    pub fn table_page(
        &self,
        table: &'static Table,
        after: Option<TableRow>,
        limit: usize,
    ) -> Answer<'_, Vec<TableRow>> {
        let given = (table, after, limit);
        self.engine.read(given, |tx, (table, after, limit)| {
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

    /// Returns the last id that a table gave a row, for tables that never reuse one.
    pub async fn last_row_id(&self, table: &'static Table) -> Result<Option<i64>, StoreError> {
        if !table.is_numbered {
            return Ok(None);
        }
        let values = values![table.name];
        let id = self.engine.query_opt(LAST_ROW_ID, values, |row| row.get(0));
        Ok(id.await?.flatten())
    }

    /// Counts the sessions that a process has locked or leased.
    pub async fn count_leases(&self) -> Result<usize, StoreError> {
        if let Engine::Sqlite(sqlite) = &self.engine {
            return sqlite.count_locks().await;
        }
        let count = self.engine.query_opt(COUNT_LEASES, &[], |row| row.get(0));
        Ok(count.await?.unwrap_or_default())
    }

    pub fn checkpoint(&self) -> Answer<'_, Option<TransferCheckpoint>> {
        self.engine.snapshot((), |tx, ()| Box::pin(checkpoint(tx)))
    }

    /// Inserts rows into a table and stores the checkpoint, in one transaction.
    pub fn insert_rows(
        &self,
        table: &'static Table,
        rows: Vec<TableRow>,
        checkpoint: TransferCheckpoint,
    ) -> Answer<'_, ()> {
        let given = (table, rows, checkpoint);
        self.engine.write(given, |tx, (table, rows, checkpoint)| {
            Box::pin(async move {
                tx.execute(CREATE_CHECKPOINT, &[]).await?;
                let values: Vec<_> = rows.iter().map(|row| row_values(row)).collect();
                tx.execute_many(table.insert, &values).await?;
                if table.name == "library_chunks" {
                    index_chunks(tx, rows).await?;
                }
                let after = checkpoint.after.as_ref().map(serde_json::to_string);
                let after = after.transpose().map_err(unusable)?;
                let copied = serde_json::to_string(&checkpoint.copied).map_err(unusable)?;
                let values = values![checkpoint.source, checkpoint.table, after, copied];
                tx.execute(SET_CHECKPOINT, values).await.map(drop)
            })
        })
    }

    /// Makes the next id of a table greater than this one and than the ids of all rows.
    pub fn raise_row_id(&self, table: &'static Table, last: Option<i64>) -> Answer<'_, ()> {
        self.engine.write_twice((table, last), |tx, (table, last)| {
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
        self.engine.execute(DROP_CHECKPOINT, &[]).await.map(drop)
    }
}

fn row_values(row: &[Cell]) -> Vec<Value<'_>> {
    row.iter().map(|cell| cell.to_value()).collect()
}

/// Indexes the words of chunks in PostgreSQL. SQLite's triggers do it there.
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
            after: after.map_err(unusable)?,
            copied: serde_json::from_str(&copied).map_err(unusable)?,
        })
    };
    tx.query_opt(CHECKPOINT, &[], read).await
}

fn unusable(error: serde_json::Error) -> Failure {
    Failure::other(format!("the checkpoint of a move cannot be used: {error}"))
}

const LAST_ROW_ID: Sql = sql!(
    sqlite: "SELECT seq FROM sqlite_sequence WHERE name = ?1",
    postgres: "SELECT pg_sequence_last_value(pg_get_serial_sequence($1, 'id')::regclass)"
);

/// Adds the sequence of a table that never reuses ids and has given none yet.
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

/// The table of the checkpoint exists during a transfer.
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
    use crate::engine::plans::{ManyRows, sqlite_plan};
    use crate::tables::tables;

    #[tokio::test]
    async fn pages_are_found_without_a_scan_or_a_sort() {
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
