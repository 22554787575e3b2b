//! The SQL over any table, made from its description; and that of how far a move is.

use crate::tables::{Order, Table};

/// How many rows.
pub(super) fn count(table: &Table) -> String {
    format!("SELECT count(*) FROM {}", table.name)
}

/// Rows in the order of their keys, after one.
pub(super) fn page(table: &Table, is_after: bool) -> String {
    let (sign, direction) = match table.order {
        Order::Ascending => (">", "ASC"),
        Order::Descending => ("<", "DESC"),
    };
    let key: Vec<&str> = key(table).collect();
    let after = match is_after {
        true => format!(
            "WHERE ({}) {sign} ({})",
            key.join(", "),
            places(1, table.key)
        ),
        false => String::new(),
    };
    let order: Vec<String> = key
        .iter()
        .map(|name| format!("{name} {direction}"))
        .collect();
    let last = if is_after { table.key + 1 } else { 1 };
    format!(
        "SELECT {} FROM {} {after} ORDER BY {} LIMIT ?{last}",
        columns(table),
        table.name,
        order.join(", ")
    )
}

/// The row with a key.
pub(super) fn by_key(table: &Table) -> String {
    let places = places(1, table.key);
    let key: Vec<&str> = key(table).collect();
    format!(
        "SELECT {} FROM {} WHERE ({}) = ({places})",
        columns(table),
        table.name,
        key.join(", ")
    )
}

/// A row as it was.
pub(super) fn insert(table: &Table) -> String {
    format!(
        "INSERT INTO {} ({}) VALUES ({})",
        table.name,
        columns(table),
        places(1, table.columns.len())
    )
}

fn columns(table: &Table) -> String {
    let names: Vec<&str> = table.columns.iter().map(|(name, _)| *name).collect();
    names.join(", ")
}

fn key(table: &Table) -> impl Iterator<Item = &'static str> {
    table.columns.iter().take(table.key).map(|(name, _)| *name)
}

fn places(first: usize, count: usize) -> String {
    let places: Vec<String> = (first..first + count)
        .map(|place| format!("?{place}"))
        .collect();
    places.join(", ")
}

/// The last number that a table gave a row.
pub(super) const LAST_NUMBER: &str = "SELECT seq FROM sqlite_sequence WHERE name = ?1";

/// The same is kept for a table that has given none yet, if it gives none twice; and raised where it is too low.
pub(super) const KEEP_NUMBER: &str = "INSERT INTO sqlite_sequence (name, seq)
     SELECT ?1, ?2 FROM sqlite_schema WHERE name = ?1 AND sql LIKE '%AUTOINCREMENT%'
        AND NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = ?1)";
pub(super) const SET_NUMBER: &str = "UPDATE sqlite_sequence SET seq = max(seq, ?2) WHERE name = ?1";

/// How far a move is. The table is there while there is one.
pub(super) const MAKE_MARK: &str = "CREATE TABLE IF NOT EXISTS move_under_way (
         only INTEGER PRIMARY KEY CHECK (only = 1), source TEXT NOT NULL, \"table\" INTEGER NOT NULL, after TEXT,
         copied TEXT NOT NULL
     ) STRICT";
pub(super) const HAS_MARK: &str =
    "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'move_under_way'";
pub(super) const MARK: &str = "SELECT source, \"table\", after, copied FROM move_under_way";
pub(super) const SET_MARK: &str =
    "INSERT INTO move_under_way (only, source, \"table\", after, copied)
     VALUES (1, ?1, ?2, ?3, ?4)
     ON CONFLICT (only) DO UPDATE SET source = excluded.source, \"table\" = excluded.\"table\",
        after = excluded.after, copied = excluded.copied";
pub(super) const FORGET_MARK: &str = "DROP TABLE IF EXISTS move_under_way";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::connection::open_writer;
    use crate::sqlite::statements::tests::plan_of;
    use crate::tables::{CACHES, Kind, TABLES};

    #[test]
    fn every_table_of_the_file_is_known_with_all_its_columns_and_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let connection = open_writer(&folder.path().join("lango.db")).unwrap();
        let query = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'
                      AND name NOT LIKE 'sqlite_%' ORDER BY name";
        let mut names = connection.prepare(query).unwrap();
        let names: Vec<String> = names
            .query_map([], |row| row.get(0))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        let mut known: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
        known.extend(CACHES);
        known.sort_unstable();
        assert_eq!(names, known, "a table has to be added to `tables/list.rs`");
        for table in TABLES {
            let query = "SELECT name, type, pk FROM pragma_table_info(?1) ORDER BY cid";
            let mut found = connection.prepare(query).unwrap();
            let mut found: Vec<(String, String, i64)> = found
                .query_map([table.name], |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
                })
                .unwrap()
                .collect::<Result<_, _>>()
                .unwrap();
            let kind = |kind: &Kind| match kind {
                Kind::Text => "TEXT",
                Kind::Integer => "INTEGER",
                Kind::Real => "REAL",
                Kind::Bytes => "BLOB",
            };
            let place = |at: usize| if at < table.key { at as i64 + 1 } else { 0 };
            let mut expected: Vec<(String, String, i64)> = table
                .columns
                .iter()
                .enumerate()
                .map(|(at, (name, of))| ((*name).to_owned(), kind(of).to_owned(), place(at)))
                .collect();
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{}", table.name);
        }
    }

    #[test]
    fn pages_and_keys_of_every_table_are_found_without_a_scan_or_a_sort() {
        for table in TABLES {
            for statement in [page(table, true), by_key(table)] {
                let plan = plan_of(&statement);
                assert!(
                    plan.starts_with("SEARCH") && !plan.contains("TEMP B-TREE"),
                    "{statement}\n{plan}"
                );
            }
            let plan = plan_of(&page(table, false));
            assert!(!plan.contains("TEMP B-TREE"), "{plan}");
        }
    }
}
