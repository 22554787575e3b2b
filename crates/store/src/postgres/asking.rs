//! How statements are asked, alone or several in one transaction, and how claims are read from their rows.

use super::PostgresEngine;
use super::database::{Database, Purpose, Values};
use super::failure::Failure;
use crate::database::Answer;
use deadpool_postgres::{Object, Transaction};
use lango_core::BoxFuture;
use std::future::Future;
use std::sync::Arc;
use tokio_postgres::Row;

/// What is done in a transaction with what was given for it. It may be done again from the beginning.
pub(super) type Work<A, T> =
    for<'t, 'c> fn(&'t Transaction<'c>, &'t A) -> BoxFuture<'t, Result<T, Failure>>;

/// Whom a statement can be asked of.
pub(super) trait Ask: Sync {
    /// The rows of a statement.
    fn rows(
        &self,
        statement: &str,
        values: Values<'_>,
    ) -> impl Future<Output = Result<Vec<Row>, Failure>> + Send;
}

/// One statement among others, as of the moment of all of them.
impl Ask for Transaction<'_> {
    async fn rows(&self, statement: &str, values: Values<'_>) -> Result<Vec<Row>, Failure> {
        let statement = self.prepare_cached(statement).await?;
        Ok(self.query(&statement, values).await?)
    }
}

/// One statement on a connection that is being made ready.
impl Ask for Object {
    async fn rows(&self, statement: &str, values: Values<'_>) -> Result<Vec<Row>, Failure> {
        let statement = self.prepare_cached(statement).await?;
        Ok(self.query(&statement, values).await?)
    }
}

/// One statement that stands alone and changes nothing. No transaction is begun or ended for it.
impl Ask for Arc<Database> {
    async fn rows(&self, statement: &str, values: Values<'_>) -> Result<Vec<Row>, Failure> {
        Ok(Database::query(self, statement, values).await?)
    }
}

impl PostgresEngine {
    /// Looks something up, all of it as of one moment.
    pub(super) fn look<A, T>(&self, given: A, work: Work<A, T>) -> Answer<'_, T>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.transact(Purpose::Look, Arc::new(given), work)
    }

    /// Changes something, all of it or nothing.
    pub(super) fn change<A, T>(&self, given: A, work: Work<A, T>) -> Answer<'_, T>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.transact(Purpose::Change, Arc::new(given), work)
    }

    /// Changes something that may be changed twice, all of it or nothing.
    pub(super) fn repeatable_change<A, T>(&self, given: A, work: Work<A, T>) -> Answer<'_, T>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.transact(Purpose::RepeatableChange, Arc::new(given), work)
    }

    fn transact<A, T>(&self, purpose: Purpose, given: Arc<A>, work: Work<A, T>) -> Answer<'_, T>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        Box::pin(async move {
            let database = &self.database;
            database
                .transaction(purpose, move |transaction| {
                    let given = Arc::clone(&given);
                    Box::pin(async move { work(transaction, &given).await })
                })
                .await
        })
    }
}

/// The rows of a statement.
pub(super) async fn rows(
    asked: &impl Ask,
    statement: &str,
    values: Values<'_>,
) -> Result<Vec<Row>, Failure> {
    asked.rows(statement, values).await
}

/// The only row of a statement, if there is one.
pub(super) async fn row(
    asked: &impl Ask,
    statement: &str,
    values: Values<'_>,
) -> Result<Option<Row>, Failure> {
    let rows = asked.rows(statement, values).await?;
    Ok(rows.into_iter().next())
}

/// Carries a statement out; gives how many rows it touched.
pub(super) async fn execute(
    transaction: &Transaction<'_>,
    statement: &str,
    values: Values<'_>,
) -> Result<u64, Failure> {
    let statement = transaction.prepare_cached(statement).await?;
    Ok(transaction.execute(&statement, values).await?)
}

/// The number in the first column of the only row, if there is one.
pub(super) async fn number(
    transaction: &Transaction<'_>,
    statement: &str,
    values: Values<'_>,
) -> Result<Option<i64>, Failure> {
    let row = row(transaction, statement, values).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

/// The numbers in the first column.
pub(super) async fn numbers(
    transaction: &Transaction<'_>,
    statement: &str,
    values: Values<'_>,
) -> Result<Vec<i64>, Failure> {
    let rows = rows(transaction, statement, values).await?;
    let numbers = rows.iter().map(|row| row.try_get(0));
    Ok(numbers.collect::<Result<_, _>>()?)
}

/// A claim, stored as 0 or 1.
pub(super) fn claim(row: &Row, column: usize) -> Result<bool, Failure> {
    Ok(row.try_get::<_, i64>(column)? != 0)
}
