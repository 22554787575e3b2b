//! A database on a PostgreSQL server: a pool of connections, opened when they are first needed.
//!
//! Work is run again when the connection breaks or the server restarts, for a bounded time. Work that writes learns whether an
//! earlier attempt may have been committed, and makes sure that nothing happens twice.

use super::address::Address;
use super::failure::Failure;
use super::statements::set_up;
use super::{PostgresOptions, migrations, pgvector};
use crate::engine::{Input, Mode, Output, Result, Row, Sql, Tx, Value, Work};
use crate::stored::failed;
use crate::tables::{OpenMode, checkpoint};
use deadpool_postgres::{
    ClientWrapper, Hook, HookError, Manager, Object, Pool, QueueMode, Runtime,
};
use futures_util::TryFutureExt as _;
use lango_core::StoreError;
use std::time::{Duration, Instant};
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tokio_postgres::IsolationLevel;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;

/// How long one attempt may take.
const ATTEMPT: Duration = Duration::from_secs(30);

/// How long to try the first connection: a wrong address should fail soon.
const FIRST_CONNECTION: Duration = Duration::from_secs(3);

/// The first and the longest pause between two attempts.
const PAUSES: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(500)];

/// The values of a statement.
pub(super) type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

pub(crate) struct Database {
    pub(crate) address: Address,
    pub(super) pool: Pool,
    is_open: OnceCell<()>,
    pub(crate) options: PostgresOptions,
}

impl Database {
    pub(super) fn at(address: Address, options: PostgresOptions) -> Result<Self, StoreError> {
        let manager = Manager::new(address.config.clone(), address.tls.clone());
        let set_up = Hook::async_fn(move |client: &mut ClientWrapper, _| {
            Box::pin(set_up(client, options.lease).map_err(HookError::Backend))
        });
        let pool = Pool::builder(manager)
            .max_size(options.connections.max(1))
            // The connection that was used last has the most statements in its cache.
            .queue_mode(QueueMode::Lifo)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(options.lease))
            .create_timeout(Some(options.lease))
            .recycle_timeout(Some(options.lease))
            .post_create(set_up)
            .build()
            .map_err(|error| failed(error.to_string()))?;
        Ok(Self {
            address,
            pool,
            is_open: OnceCell::new(),
            options,
        })
    }

    /// Connects and migrates the schema, unless that has happened.
    pub(crate) async fn open(&self) -> Result<(), StoreError> {
        let open = || retry(FIRST_CONNECTION, |_| self.try_open());
        let opened = self.is_open.get_or_try_init(open).await;
        match (
            opened.map_err(|failure| self.error(failure)),
            &self.address.hint,
        ) {
            (Err(StoreError::Unreadable { place, detail }), Some(hint))
                if detail.contains("password") =>
            {
                let detail = format!("{detail}; {hint}");
                Err(StoreError::Unreadable { place, detail })
            }
            (opened, _) => opened.copied(),
        }
    }

    async fn try_open(&self) -> Result<()> {
        let mut client = self.pool.get().await?;
        let Address { place, shown, .. } = &self.address;
        migrations::migrate(&mut client, place).await?;
        if self.options.open_mode == OpenMode::Normal
            && let Some(transfer) = checkpoint(&mut Tx::client(&client, false)).await?
        {
            return Err(transfer.refusal(place.clone(), shown).into());
        }
        pgvector::prepare(&mut client, self.options.min_indexed_vectors).await
    }

    /// Fails with [`StoreError::TooNew`] if a newer version of lango has migrated the schema since it was opened.
    pub(crate) async fn check_schema(&self) -> Result<(), StoreError> {
        self.open().await?;
        let check = async {
            let client = self.pool.get().await?;
            migrations::schema(&**client, &self.address.place).await
        };
        let checked = in_time(self.options.lease, check).await;
        checked.map(drop).map_err(|failure| self.error(failure))
    }

    /// Runs work, again if it fails in a way that may pass.
    pub(crate) async fn run<A: Input, T: Output>(
        &self,
        mode: Mode,
        given: A,
        work: Work<A, T>,
    ) -> Result<T, StoreError> {
        self.open().await?;
        let attempt = |is_repeated| self.attempt(mode, &given, work, is_repeated);
        let result = retry(self.options.lease, attempt);
        result.await.map_err(|failure| self.error(failure))
    }

    /// Reads the first row of one statement, if there is one.
    pub(super) async fn query_opt<T: Output>(
        &self,
        mode: Mode,
        sql: Sql,
        values: Vec<Value<'static>>,
        read: fn(Row<'_>) -> Result<T>,
    ) -> Result<Option<T>, StoreError> {
        let work = self.run(mode, (sql, values, read), |tx, (sql, values, read)| {
            Box::pin(tx.query_opt(*sql, values, read))
        });
        work.await
    }

    async fn attempt<A: Input, T: Output>(
        &self,
        mode: Mode,
        given: &A,
        work: Work<A, T>,
        is_repeated: bool,
    ) -> Result<T> {
        let mut client = self.pool.get().await?;
        let limit = match mode {
            Mode::Log(_) => answer_limit(self.options.lease),
            _ => ATTEMPT,
        };
        let mut is_committing = false;
        let result = match mode {
            Mode::Lookup | Mode::Read | Mode::WriteOne | Mode::Log(_) => {
                in_time(limit, work(&mut Tx::client(&client, is_repeated), given)).await
            }
            Mode::Snapshot | Mode::Write | Mode::WriteTwice => {
                transaction(&mut client, mode, given, work, &mut is_committing).await
            }
        };
        if let Err(failure) = &result
            && (matches!(failure, Failure::Timeout)
                || failure.is(&SqlState::READ_ONLY_SQL_TRANSACTION))
        {
            // The server may still be busy with the work, or it is a standby. Idle connections would cost an attempt each.
            drop(Object::take(client));
            self.pool.retain(|_, _| false);
        }
        match result {
            // The transaction may have been committed.
            Err(failure) if mode == Mode::Write && is_committing && failure.is_uncertain() => {
                Err(Failure::Store(StoreError::Unreachable {
                    place: self.address.place.clone(),
                    detail: "it broke off while a change was made, which may be there or not"
                        .to_owned(),
                }))
            }
            result => result,
        }
    }

    pub(super) fn error(&self, failure: Failure) -> StoreError {
        failure.about(&self.address.place)
    }
}

/// Runs work in a transaction. A failure before `is_committing` is set rolled it back.
async fn transaction<A: Input, T: Output>(
    client: &mut Object,
    mode: Mode,
    given: &A,
    work: Work<A, T>,
    is_committing: &mut bool,
) -> Result<T> {
    let started = in_time(ATTEMPT, async {
        let mut builder = client.build_transaction();
        if mode == Mode::Snapshot {
            builder = builder
                .read_only(true)
                .isolation_level(IsolationLevel::RepeatableRead);
        }
        let transaction = builder.start().await?;
        let result = work(&mut Tx::transaction(&transaction), given).await?;
        Ok((transaction, result))
    });
    let (transaction, result) = started.await?;
    *is_committing = true;
    in_time(ATTEMPT, async { Ok(transaction.commit().await?) }).await?;
    Ok(result)
}

/// How long to wait for an answer so that there is time for another attempt while a lease lasts.
pub(super) fn answer_limit(lease: Duration) -> Duration {
    (lease / 3).max(Duration::from_secs(1))
}

pub(super) async fn in_time<T>(
    limit: Duration,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    timeout(limit, work).await.unwrap_or(Err(Failure::Timeout))
}

/// Repeats attempts that fail in a way that may pass, for a bounded time. An attempt learns whether an earlier one may have been
/// committed although it failed.
async fn retry<T, F: Future<Output = Result<T>>>(
    limit: Duration,
    attempt: impl Fn(bool) -> F,
) -> Result<T> {
    let end = Instant::now() + limit;
    let [mut pause, longest_pause] = PAUSES;
    let mut is_repeated = false;
    loop {
        let failure = match attempt(is_repeated).await {
            Ok(result) => return Ok(result),
            Err(failure) => failure,
        };
        if !failure.may_pass() || Instant::now() + pause > end {
            return Err(failure);
        }
        is_repeated |= failure.is_uncertain();
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(longest_pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lango_testkit::postgres;

    const INSERT: Sql = Sql::only_postgres("INSERT INTO slow VALUES (1)");

    #[tokio::test]
    async fn a_connection_whose_commit_was_not_answered_is_not_used_again() {
        const SLOW_COMMIT: &str = "CREATE TABLE slow (id INT);
            CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
                'BEGIN PERFORM pg_sleep(5); RETURN NULL; END';
            CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON slow DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION wait()";
        let address = Address::parse(&postgres::empty()).unwrap();
        let options = PostgresOptions {
            connections: 1,
            ..PostgresOptions::default()
        };
        let database = Database::at(address, options).unwrap();
        database.open().await.unwrap();
        let client = database.pool.get().await.unwrap();
        client.batch_execute(SLOW_COMMIT).await.unwrap();
        drop(client);
        let change = database.run(Mode::Write, (), |tx, ()| {
            Box::pin(async move {
                tx.execute(INSERT, &[]).await?;
                // Only the commit is under way now, so that the clock jumps to its timeout.
                tokio::time::pause();
                Ok(())
            })
        });
        let change = change.await;
        tokio::time::resume();
        assert!(
            matches!(change, Err(StoreError::Unreachable { .. })),
            "{change:?}"
        );
        assert_eq!(database.pool.status().size, 0);
    }
}
