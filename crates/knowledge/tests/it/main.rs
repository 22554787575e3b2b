//! The knowledge, on real databases: what one promises, all do.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]
#![allow(
    clippy::duplicate_mod,
    reason = "the same tests run over every kind of database"
)]

mod model2vec;
#[path = "../../../store/tests/it/place.rs"]
#[allow(dead_code, reason = "the tests of the store use the rest")]
mod place;

#[path = "."]
mod on_sqlite {
    mod graph;
    mod graph_limits;
    mod graph_walk;
    mod library;
    mod memory;
    mod wiping;

    const KIND: crate::place::Kind = crate::place::Kind::Sqlite;
}

#[path = "."]
mod on_postgres {
    mod graph;
    mod graph_limits;
    mod graph_walk;
    mod library;
    mod memory;

    const KIND: crate::place::Kind = crate::place::Kind::Postgres;
}
