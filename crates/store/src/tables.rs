//! Descriptions of all tables, so that the same code copies each of them from one database to another.
//!
//! They are read from a new SQLite database. Indices, including the library's full-text index, are not copied but rebuilt in the
//! target.

mod copy;

use crate::backend::{Sql, records, sql};
use crate::store::Store;
pub(crate) use copy::checkpoint;
use lango_core::StoreError;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::sync::OnceCell;

/// Tables that are not moved, because their contents can be fetched again.
pub const CACHES: &[&str] = &["web_pages"];

#[derive(Debug)]
pub struct Table {
    pub name: String,
    /// Number of columns in the key. They are the first columns.
    pub key: usize,
    pub columns: Vec<Column>,
    /// Whether the database generates the ids of rows.
    is_numbered: bool,
    count: Sql,
    first_page: Sql,
    next_page: Sql,
    insert: Sql,
    /// Only for PostgreSQL.
    raise_sequence: Sql,
}

/// Returns all tables except the [caches](CACHES), in the order in which migrations create them. So a table comes after those that
/// its rows refer to.
pub async fn tables() -> Result<&'static [Table], StoreError> {
    static TABLES: OnceCell<Vec<Table>> = OnceCell::const_new();
    let tables = TABLES.get_or_try_init(|| async {
        let schema = Store::in_memory();
        let mut columns = schema
            .backend
            .query(COLUMNS, &[], |row| row.read::<Column>())
            .await?;
        columns.retain(|column| !CACHES.contains(&column.table.as_str()));
        let tables = columns.chunk_by(|one, next| one.table == next.table);
        Ok(tables.map(Table::from_columns).collect())
    });
    Ok(tables.await?)
}

#[derive(Debug, Clone)]
pub struct Column {
    table: String,
    pub name: String,
    /// The column's type in SQLite.
    pub kind: String,
    is_key: bool,
    /// Whether rows of the table can refer to other rows of the same table.
    refers_to_itself: bool,
}

records! {
    Column { table, name, kind, is_key, refers_to_itself }
}

/// Selects the columns of each table, key columns first.
const COLUMNS: Sql = sql!(
    sqlite: r#"SELECT tables.name, columns.name, columns.type, columns.pk > 0,
            EXISTS (SELECT 1 FROM pragma_foreign_key_list(tables.name) AS keys WHERE keys."table" = tables.name)
       FROM sqlite_schema AS tables, pragma_table_list(tables.name) AS kinds, pragma_table_info(tables.name) AS columns
      WHERE tables.type = 'table' AND kinds.type = 'table' AND tables.name NOT LIKE 'sqlite_%'
      ORDER BY tables.rowid, columns.pk = 0, columns.pk, columns.cid"#,
    postgres: ""
);

impl Table {
    fn from_columns(columns: &[Column]) -> Self {
        let first = &columns[0];
        let name = &first.table;
        let key = columns.iter().filter(|column| column.is_key).count();
        let (all, placeholders) = (quoted(columns), placeholders(columns.len()));
        let insert = format!("INSERT INTO {name} ({all}) VALUES ({placeholders})");
        let raise_sequence = format!(
            "SELECT setval(pg_get_serial_sequence($1, 'id')::regclass, greatest($2, (SELECT max(id) FROM {name}), 1))"
        );
        Self {
            key,
            is_numbered: key == 1 && first.name == "id" && first.kind == "INTEGER",
            count: sql_for_both(format!("SELECT count(*) FROM {name}")),
            first_page: page_statement(columns, key, 0),
            next_page: page_statement(columns, key, key),
            insert: sql_for_both(insert),
            raise_sequence: Sql::only_postgres(raise_sequence.leak()),
            columns: columns.to_vec(),
            name: name.clone(),
        }
    }
}

/// Builds the statement that selects a page of rows in the order of their keys, after the key in the first `after` values. See
/// [`Tx::query_page`](crate::backend::Tx::query_page).
fn page_statement(columns: &[Column], key: usize, after: usize) -> Sql {
    // In a table that refers to itself, rows refer to later rows, which must be inserted first. Its key is one column.
    let (sign, direction) = if columns[0].refers_to_itself {
        ("<", "DESC")
    } else {
        (">", "ASC")
    };
    let (table, all, key) = (&columns[0].table, quoted(columns), quoted(&columns[..key]));
    let order = format!("ORDER BY {key} {direction}");
    let condition = match after {
        0 => String::new(),
        after => format!("WHERE ({key}) {sign} ({})", placeholders(after)),
    };
    let rows = format!("FROM {table} {condition} {order} LIMIT ${}", after + 1);
    let sizes = columns.iter().map(|column| match column.kind.as_str() {
        "TEXT" | "BLOB" => format!("coalesce(octet_length(\"{}\"), 0)", column.name),
        _ => "8".to_owned(),
    });
    let size = sizes.collect::<Vec<_>>().join(" + ");
    let limited = format!(
        "SELECT {all} FROM (
            SELECT {all}, sum(size_of_row) OVER ({order}) - size_of_row AS bytes_before FROM (
                SELECT {all}, {size} AS size_of_row {rows}) AS page) AS page
          WHERE bytes_before < ${}::bigint {order}",
        after + 2
    );
    let simple = format!("SELECT {all} {rows}").replace('$', "?");
    sql!(sqlite: simple.leak(), postgres: limited.leak())
}

fn quoted(columns: &[Column]) -> String {
    let names = columns.iter().map(|column| format!("\"{}\"", column.name));
    names.collect::<Vec<_>>().join(", ")
}

fn placeholders(count: usize) -> String {
    let placeholders: Vec<String> = (1..=count).map(|number| format!("${number}")).collect();
    placeholders.join(", ")
}

fn sql_for_both(text: String) -> Sql {
    sql!(sqlite: text.replace('$', "?").leak(), postgres: text.leak())
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Cell {
    Null,
    Text(String),
    Integer(i64),
    Real(f64),
    Bytes(Vec<u8>),
}

impl Cell {
    /// Returns the approximate size in bytes.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
            Self::Null | Self::Integer(_) | Self::Real(_) => 8,
        }
    }
}

/// The cells of a row, in the order of the table's columns.
pub type TableRow = Vec<Cell>;

/// Maximum number of rows read and written together.
pub const ROWS_PER_PAGE: usize = 500;

/// A digest of a table's copied rows, in order. Comparing digests at the end of a transfer shows whether a database was changed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RowDigest {
    pub rows: u64,
    /// The hash of the last row, which covers the hash of the row before it.
    hash: Vec<u8>,
}

impl RowDigest {
    pub fn add(&mut self, row: &[Cell]) {
        let mut hasher = Sha256::new();
        hasher.update(&self.hash);
        let mut field = |kind: u8, bytes: &[u8]| {
            hasher.update([kind]);
            hasher.update((bytes.len() as u64).to_be_bytes());
            hasher.update(bytes);
        };
        for cell in row {
            match cell {
                Cell::Null => field(0, &[]),
                Cell::Text(text) => field(1, text.as_bytes()),
                Cell::Integer(number) => field(2, &number.to_be_bytes()),
                // Adding zero removes the sign of zero, which not every database preserves.
                Cell::Real(number) => field(3, &(number + 0.0).to_bits().to_be_bytes()),
                Cell::Bytes(bytes) => field(4, bytes),
            }
        }
        self.hash = hasher.finalize().to_vec();
        self.rows += 1;
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct TransferCheckpoint {
    pub source: String,
    /// The index in [`tables`] of the table that is being copied.
    pub table: usize,
    /// The key of the last copied row.
    pub after: Option<TableRow>,
    /// The digest of the copied rows of each table.
    pub copied: Vec<RowDigest>,
}

/// The purpose of opening a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OpenMode {
    /// Fails if the database is the target of an unfinished transfer.
    #[default]
    Normal,
    TransferTarget,
}

impl TransferCheckpoint {
    /// Returns the error for opening a database that contains this checkpoint. `place` names the database in the error,
    /// `target` in the suggested command.
    pub(crate) fn refusal(&self, place: String, target: &str) -> StoreError {
        let detail = format!(
            "a move from {} to it is not finished; resume it with: lango store move '{}' '{target}'",
            self.source, self.source
        );
        StoreError::Unreadable { place, detail }
    }
}
