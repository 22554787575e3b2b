//! The SQL over any table, made from its description; and that of how far a move is. Names are quoted, because some of them
//! are words of PostgreSQL's own.

use crate::tables::{Kind, Order, Table};

/// How many rows.
pub(super) fn count(table: &Table) -> String {
    format!("SELECT count(*) FROM {}", table.name)
}

/// Rows in the order of their keys, after one: `$1` of them at most, until they have `$2` bytes together.
pub(in crate::postgres) fn page(table: &Table, is_after: bool) -> String {
    let (sign, direction) = match table.order {
        Order::Ascending => (">", "ASC"),
        Order::Descending => ("<", "DESC"),
    };
    let key: Vec<String> = key(table).collect();
    let after = match is_after {
        true => {
            let places: Vec<String> = (3..3 + table.key)
                .map(|place| format!("${place}"))
                .collect();
            format!("WHERE ({}) {sign} ({})", key.join(", "), places.join(", "))
        }
        false => String::new(),
    };
    let order: Vec<String> = key
        .iter()
        .map(|name| format!("{name} {direction}"))
        .collect();
    let (order, columns) = (order.join(", "), columns(table));
    let size: Vec<String> = table
        .columns
        .iter()
        .filter(|(_, kind)| matches!(kind, Kind::Text | Kind::Bytes))
        .map(|(name, _)| format!("coalesce(octet_length(\"{name}\"), 0)"))
        .collect();
    let size = if size.is_empty() {
        "8".to_owned()
    } else {
        size.join(" + ")
    };
    format!(
        "SELECT {columns} FROM (
            SELECT {columns}, sum(size_of_row) OVER (ORDER BY {order}) - size_of_row AS bytes_before FROM (
                SELECT {columns}, {size} AS size_of_row FROM {} {after} ORDER BY {order} LIMIT $1) AS page) AS page
          WHERE bytes_before < $2::bigint ORDER BY {order}",
        table.name
    )
}

/// The rows with these keys, in the order of the keys, and whether each is there.
pub(in crate::postgres) fn by_keys(table: &Table) -> String {
    let columns: Vec<String> = table
        .columns
        .iter()
        .map(|(name, _)| format!("found.\"{name}\""))
        .collect();
    let key: Vec<String> = key(table).collect();
    let same: Vec<String> = key
        .iter()
        .map(|name| format!("found.{name} = wanted.{name}"))
        .collect();
    format!(
        "SELECT {}, found.{} IS NOT NULL FROM unnest({}) WITH ORDINALITY AS wanted ({}, place)
           LEFT JOIN {} AS found ON {} ORDER BY wanted.place",
        columns.join(", "),
        key[0],
        arrays(table, table.key),
        key.join(", "),
        table.name,
        same.join(" AND ")
    )
}

/// Rows as they were.
pub(super) fn insert(table: &Table) -> String {
    let columns = columns(table);
    format!(
        "INSERT INTO {} ({columns}) SELECT * FROM unnest({})",
        table.name,
        arrays(table, table.columns.len())
    )
}

/// Whether a table numbers its rows.
pub(super) fn is_numbered(table: &Table) -> bool {
    table.key == 1 && table.columns.first() == Some(&("id", Kind::Integer))
}

fn columns(table: &Table) -> String {
    let names: Vec<String> = table
        .columns
        .iter()
        .map(|(name, _)| format!("\"{name}\""))
        .collect();
    names.join(", ")
}

fn key(table: &Table) -> impl Iterator<Item = String> {
    let key = table.columns.iter().take(table.key);
    key.map(|(name, _)| format!("\"{name}\""))
}

fn arrays(table: &Table, count: usize) -> String {
    let array = |(at, (_, kind)): (usize, &(&str, Kind))| {
        let kind = match kind {
            Kind::Text => "text",
            Kind::Integer => "bigint",
            Kind::Real => "double precision",
            Kind::Bytes => "bytea",
        };
        format!("${}::{kind}[]", at + 1)
    };
    let arrays: Vec<String> = table
        .columns
        .iter()
        .take(count)
        .enumerate()
        .map(array)
        .collect();
    arrays.join(", ")
}

/// The last number that a table gave a row.
pub(super) const LAST_NUMBER: &str =
    "SELECT pg_sequence_last_value(pg_get_serial_sequence($1, 'id')::regclass)";

/// The next number is greater than this one and than any that is there.
pub(super) fn go_on_from(table: &Table) -> String {
    format!(
        "SELECT setval(pg_get_serial_sequence($1, 'id')::regclass,
                       greatest($2, (SELECT coalesce(max(id), 0) FROM {}), 1))",
        table.name
    )
}

/// How many sessions somebody holds.
pub(super) const HELD: &str = "SELECT count(*) FROM holds WHERE until > clock_timestamp()";

/// How far a move is. The table is there while there is one.
pub(super) const MAKE_MARK: &str = "CREATE TABLE IF NOT EXISTS move_under_way (
         \"only\" BIGINT PRIMARY KEY CHECK (\"only\" = 1), source TEXT NOT NULL, \"table\" BIGINT NOT NULL, after TEXT,
         copied TEXT NOT NULL)";
pub(super) const HAS_MARK: &str = "SELECT to_regclass('move_under_way') IS NOT NULL";
pub(super) const MARK: &str = "SELECT source, \"table\", after, copied FROM move_under_way";
pub(super) const SET_MARK: &str =
    "INSERT INTO move_under_way (\"only\", source, \"table\", after, copied)
     VALUES (1, $1, $2, $3, $4)
     ON CONFLICT (\"only\") DO UPDATE SET source = excluded.source, \"table\" = excluded.\"table\",
        after = excluded.after, copied = excluded.copied";
pub(super) const FORGET_MARK: &str = "DROP TABLE IF EXISTS move_under_way";
