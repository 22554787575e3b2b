//! Tests of knowledge with real databases. All databases must pass the same tests.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]
#![allow(
    clippy::duplicate_mod,
    reason = "the same tests run over every kind of database"
)]

#[path = "../../../store/tests/it/database.rs"]
#[allow(dead_code, reason = "the tests of the store use the rest")]
mod database;
mod model2vec;

#[path = "."]
mod on_sqlite {
    mod graph;
    mod graph_limits;
    mod graph_walk;
    mod library;
    mod memory;
    mod wiping;

    const KIND: crate::database::DatabaseKind = crate::database::DatabaseKind::Sqlite;
}

#[path = "."]
mod on_postgres {
    mod graph;
    mod graph_limits;
    mod graph_walk;
    mod library;
    mod memory;

    const KIND: crate::database::DatabaseKind = crate::database::DatabaseKind::Postgres;
}
