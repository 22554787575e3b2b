//! Dispatch to the two implementations of `tables` that there still are.

use crate::engine::Engine;
use crate::store::Store;
use crate::tables::{Cells, Destination, Mark, Table, Tables};
use lango_core::*;

impl Tables for Store {
    fn place(&self) -> String {
        match &self.engine {
            Engine::Sqlite(engine) => Tables::place(engine.as_ref()),
            Engine::Postgres(engine) => Tables::place(engine.as_ref()),
        }
    }

    fn count_rows(&self, table: &'static Table) -> BoxFuture<'_, Result<u64, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => Tables::count_rows(engine.as_ref(), table),
            Engine::Postgres(engine) => Tables::count_rows(engine.as_ref(), table),
        }
    }

    fn page(
        &self,
        table: &'static Table,
        after: Option<Cells>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Cells>, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => Tables::page(engine.as_ref(), table, after, limit),
            Engine::Postgres(engine) => Tables::page(engine.as_ref(), table, after, limit),
        }
    }

    fn rows_of(
        &self,
        table: &'static Table,
        keys: Vec<Cells>,
    ) -> BoxFuture<'_, Result<Vec<Option<Cells>>, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => Tables::rows_of(engine.as_ref(), table, keys),
            Engine::Postgres(engine) => Tables::rows_of(engine.as_ref(), table, keys),
        }
    }

    fn last_number(&self, table: &'static Table) -> BoxFuture<'_, Result<Option<i64>, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => Tables::last_number(engine.as_ref(), table),
            Engine::Postgres(engine) => Tables::last_number(engine.as_ref(), table),
        }
    }

    fn held(&self) -> BoxFuture<'_, Result<usize, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => Tables::held(engine.as_ref()),
            Engine::Postgres(engine) => Tables::held(engine.as_ref()),
        }
    }
}

impl Destination for Store {
    fn mark(&self) -> BoxFuture<'_, Result<Option<Mark>, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => Destination::mark(engine.as_ref()),
            Engine::Postgres(engine) => Destination::mark(engine.as_ref()),
        }
    }

    fn arrive(
        &self,
        table: &'static Table,
        rows: Vec<Cells>,
        mark: Mark,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => Destination::arrive(engine.as_ref(), table, rows, mark),
            Engine::Postgres(engine) => Destination::arrive(engine.as_ref(), table, rows, mark),
        }
    }

    fn go_on_from(
        &self,
        numbers: Vec<(&'static Table, i64)>,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => Destination::go_on_from(engine.as_ref(), numbers),
            Engine::Postgres(engine) => Destination::go_on_from(engine.as_ref(), numbers),
        }
    }

    fn arrived(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => Destination::arrived(engine.as_ref()),
            Engine::Postgres(engine) => Destination::arrived(engine.as_ref()),
        }
    }
}
