//! How SQLite goes about a statement, for tests.

pub(crate) mod tests {
    use crate::sqlite::connection::open_writer;

    pub(crate) fn plan_of(statement: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let connection = open_writer(&folder.path().join("lango.db")).unwrap();
        let mut plan = connection
            .prepare(&format!("EXPLAIN QUERY PLAN {statement}"))
            .unwrap();
        let unbound = vec![rusqlite::types::Null; plan.parameter_count()];
        let lines = plan
            .query_map(rusqlite::params_from_iter(unbound), |row| {
                row.get::<_, String>("detail")
            })
            .unwrap();
        lines.collect::<Result<Vec<_>, _>>().unwrap().join("\n")
    }
}
