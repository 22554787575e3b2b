//! The rows of any table, read and inserted with statements that are made from its description, and the checkpoint of a
//! transfer. Pages of both databases have the same order: texts are compared byte by byte.

use super::{Cell, ColumnType, RowOrder, TABLES, Table, TableRow, TransferCheckpoint};
use crate::Answer;
use crate::archive::PAGE_BYTES;
use crate::engine::{Engine, Failure, Result, Row, Sql, ToValue as _, Tx, Value, sql, values};
use crate::library::index_words;
use crate::store::Store;
use lango_core::StoreError;
use std::collections::HashMap;
use std::sync::LazyLock;

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
        let statement = statements(table).count;
        let count = self.engine.query_opt(statement, &[], |row| row.get(0));
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
                let statements = statements(table);
                let (statement, key) = match after {
                    Some(key) => (statements.next_page, &key[..]),
                    None => (statements.first_page, &[][..]),
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
        if !table.is_numbered() {
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

    /// Reads the checkpoint of an unfinished transfer.
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
            Box::pin(insert(tx, table, rows, checkpoint))
        })
    }

    /// Makes the next ids of tables greater than these and than the ids of all rows.
    pub fn raise_row_ids(&self, last: Vec<(&'static Table, i64)>) -> Answer<'_, ()> {
        self.engine.write_twice(last, |tx, last| {
            Box::pin(async move {
                for table in TABLES.iter().filter(|table| table.is_numbered()) {
                    let id = last.iter().find(|(named, _)| named.name == table.name);
                    let id = id.map(|(_, id)| *id);
                    if !tx.is_sqlite() {
                        let (raise, id) =
                            (statements(table).raise_sequence, id.unwrap_or_default());
                        tx.exists(raise, values![table.name, id]).await?;
                    } else if id.is_some() {
                        tx.execute(ADD_SEQUENCE, values![table.name, id]).await?;
                        tx.execute(RAISE_SEQUENCE, values![table.name, id]).await?;
                    }
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

async fn insert(
    tx: &mut Tx<'_>,
    table: &'static Table,
    rows: &[TableRow],
    checkpoint: &TransferCheckpoint,
) -> Result<()> {
    tx.execute(CREATE_CHECKPOINT, &[]).await?;
    let values: Vec<_> = rows.iter().map(|row| row_values(row)).collect();
    tx.execute_many(statements(table).insert, &values).await?;
    if table.name == "library_chunks" {
        index_chunks(tx, table, rows).await?;
    }
    let after = checkpoint.after.as_ref().map(serde_json::to_string);
    let after = after.transpose().map_err(unusable)?;
    let copied = serde_json::to_string(&checkpoint.copied).map_err(unusable)?;
    let values = values![checkpoint.source, checkpoint.table, after, copied];
    tx.execute(SET_CHECKPOINT, values).await?;
    Ok(())
}

/// Indexes the words of chunks in PostgreSQL. SQLite's triggers do it there.
async fn index_chunks(tx: &mut Tx<'_>, table: &Table, rows: &[TableRow]) -> Result<()> {
    let column = |name| table.columns.iter().position(|(column, _)| *column == name);
    let (Some(heading), Some(text)) = (column("heading"), column("text")) else {
        return Ok(());
    };
    let (mut keys, mut texts) = (Vec::new(), Vec::new());
    for row in rows {
        if let (Cell::Integer(key), Cell::Text(heading), Cell::Text(text)) =
            (&row[0], &row[heading], &row[text])
        {
            keys.push(*key);
            texts.push(format!("{heading}\n{text}"));
        }
    }
    index_words(tx, &keys, texts.into_iter()).await
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

struct Statements {
    count: Sql,
    first_page: Sql,
    next_page: Sql,
    insert: Sql,
    /// Only PostgreSQL's.
    raise_sequence: Sql,
}

fn statements(table: &Table) -> &'static Statements {
    static STATEMENTS: LazyLock<HashMap<&str, Statements>> = LazyLock::new(|| {
        let all = TABLES
            .iter()
            .map(|table| (table.name, Statements::of(table)));
        all.collect()
    });
    &STATEMENTS[table.name]
}

impl Statements {
    fn of(table: &Table) -> Self {
        let quoted = |(name, _): &(&str, ColumnType)| format!("\"{name}\"");
        let columns: Vec<String> = table.columns.iter().map(quoted).collect();
        let columns = columns.join(", ");
        let name = table.name;
        let insert = format!(
            "INSERT INTO {name} ({columns}) VALUES ({})",
            places(table.columns.len())
        );
        let raise_sequence = format!(
            "SELECT setval(pg_get_serial_sequence($1, 'id')::regclass,
                           greatest($2, (SELECT coalesce(max(id), 0) FROM {name}), 1))"
        );
        Self {
            count: both(format!("SELECT count(*) FROM {name}")),
            first_page: page_statement(table, &columns, 0),
            next_page: page_statement(table, &columns, table.key),
            insert: both(insert),
            raise_sequence: Sql::only_postgres(raise_sequence.leak()),
        }
    }
}

/// Rows in the order of their keys, after the key in the first `after` values. See [`Tx::query_page`].
fn page_statement(table: &Table, columns: &str, after: usize) -> Sql {
    let (sign, direction) = match table.order {
        RowOrder::Ascending => (">", "ASC"),
        RowOrder::Descending => ("<", "DESC"),
    };
    let key = table.columns.iter().take(table.key);
    let key: Vec<String> = key.map(|(name, _)| format!("\"{name}\"")).collect();
    let condition = if after > 0 {
        format!("WHERE ({}) {sign} ({})", key.join(", "), places(after))
    } else {
        String::new()
    };
    let order = key.join(&format!(" {direction}, "));
    let order = format!("ORDER BY {order} {direction}");
    let rows = format!(
        "FROM {} {condition} {order} LIMIT ${}",
        table.name,
        after + 1
    );
    let sizes = table.columns.iter().map(|(name, kind)| match kind {
        ColumnType::Text | ColumnType::Bytes => format!("coalesce(octet_length(\"{name}\"), 0)"),
        ColumnType::Integer | ColumnType::Real => "8".to_owned(),
    });
    let size = sizes.collect::<Vec<_>>().join(" + ");
    let limited = format!(
        "SELECT {columns} FROM (
            SELECT {columns}, sum(size_of_row) OVER ({order}) - size_of_row AS bytes_before FROM (
                SELECT {columns}, {size} AS size_of_row {rows}) AS page) AS page
          WHERE bytes_before < ${}::bigint {order}",
        after + 2
    );
    let simple = format!("SELECT {columns} {rows}").replace('$', "?");
    sql!(sqlite: simple.leak(), postgres: limited.leak())
}

fn places(count: usize) -> String {
    let places: Vec<String> = (1..=count).map(|place| format!("${place}")).collect();
    places.join(", ")
}

fn both(text: String) -> Sql {
    sql!(sqlite: text.replace('$', "?").leak(), postgres: text.leak())
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
    use super::*;
    use crate::engine::plans::{ManyRows, sqlite_plan};
    use crate::tables::CACHES;

    #[tokio::test]
    async fn every_table_of_sqlite_is_known_with_all_its_columns_and_its_key() {
        const COLUMNS: &str = "SELECT tables.name, columns.name, columns.type, columns.pk
            FROM pragma_table_list AS tables, pragma_table_info(tables.name) AS columns
           WHERE tables.schema = 'main' AND tables.type = 'table' AND tables.name NOT LIKE 'sqlite_%'
           ORDER BY 1, 2";
        let folder = tempfile::tempdir().unwrap();
        let store = Store::sqlite(folder.path().join("lango.db"), "root".into()).unwrap();
        let columns = store.engine.read((), |tx, ()| {
            Box::pin(async move {
                let columns = sql!(sqlite: COLUMNS, postgres: "");
                tx.query(columns, &[], |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
                })
                .await
            })
        });
        let mut columns: Vec<(String, String, String, usize)> = columns.await.unwrap();
        columns.retain(|(table, ..)| !CACHES.contains(&table.as_str()));
        let mut known = Vec::new();
        for table in TABLES {
            for (at, (name, kind)) in table.columns.iter().enumerate() {
                let kind = match kind {
                    ColumnType::Text => "TEXT",
                    ColumnType::Integer => "INTEGER",
                    ColumnType::Real => "REAL",
                    ColumnType::Bytes => "BLOB",
                };
                let key = if at < table.key { at + 1 } else { 0 };
                known.push((table.name.into(), (*name).into(), kind.into(), key));
            }
        }
        known.sort();
        assert_eq!(columns, known, "`tables/list.rs` must have every table");
    }

    #[tokio::test]
    async fn pages_are_found_without_a_scan_or_a_sort() {
        for table in TABLES {
            let plan = sqlite_plan(statements(table).next_page);
            assert!(plan.starts_with("SEARCH"), "{plan}");
            for statement in [statements(table).first_page, statements(table).next_page] {
                let plan = sqlite_plan(statement);
                assert!(!plan.contains("TEMP B-TREE"), "{plan}");
            }
        }
        let postgres = ManyRows::open("").await;
        for table in TABLES.iter().filter(|table| table.name == "events") {
            for statement in [statements(table).first_page, statements(table).next_page] {
                let plan = postgres.plan(statement).await;
                assert!(!plan.contains("Seq Scan"), "{plan}");
            }
        }
    }
}
