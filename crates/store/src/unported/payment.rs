//! Dispatch to the two implementations of `payment` that there still are.

use crate::engine::Engine;
use crate::store::Store;
use lango_core::*;

impl PaymentStore for Store {
    fn reserve_payment(
        &self,
        reservation: Reservation,
    ) -> BoxFuture<'_, Result<Reserved, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => PaymentStore::reserve_payment(engine.as_ref(), reservation),
            Engine::Postgres(engine) => PaymentStore::reserve_payment(engine.as_ref(), reservation),
        }
    }

    fn change_payment(
        &self,
        change: PaymentChange,
    ) -> BoxFuture<'_, Result<PaymentChanged, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => PaymentStore::change_payment(engine.as_ref(), change),
            Engine::Postgres(engine) => PaymentStore::change_payment(engine.as_ref(), change),
        }
    }

    fn payments(
        &self,
        query: PaymentQuery,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Payment>, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => PaymentStore::payments(engine.as_ref(), query, limit),
            Engine::Postgres(engine) => PaymentStore::payments(engine.as_ref(), query, limit),
        }
    }

    fn payment_account(
        &self,
        query: TotalsQuery,
    ) -> BoxFuture<'_, Result<AccountStatus, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => PaymentStore::payment_account(engine.as_ref(), query),
            Engine::Postgres(engine) => PaymentStore::payment_account(engine.as_ref(), query),
        }
    }

    fn payment_budget(&self, key: BudgetKey) -> BoxFuture<'_, Result<u64, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => PaymentStore::payment_budget(engine.as_ref(), key),
            Engine::Postgres(engine) => PaymentStore::payment_budget(engine.as_ref(), key),
        }
    }
}
