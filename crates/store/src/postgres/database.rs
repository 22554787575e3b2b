//! A database on a PostgreSQL server: a pool of connections, opened when they are first needed.
//!
//! Work is run again when the connection breaks or the server restarts, for a bounded time. Work that writes learns whether an
//! earlier attempt may have been committed, and makes sure that nothing happens twice.

use super::address::Address;
use super::failure::Failure;
use super::statements::start::set_up;
use super::{PostgresOptions, migrations, pgvector};
use crate::engine::{Input, Mode, Output, Result, Row, Sql, Tx, Value, Work};
use crate::stored::failed;
use crate::tables::{OpenMode, checkpoint};
use deadpool_postgres::{
    ClientWrapper, Hook, HookError, Manager, ManagerConfig, Object, Pool, QueueMode,
    RecyclingMethod, Runtime,
};
use lango_core::StoreError;
use std::time::{Duration, Instant};
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tokio_postgres::IsolationLevel;
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
    pool: Pool,
    is_open: OnceCell<()>,
    pub(crate) options: PostgresOptions,
}

impl Database {
    pub(super) fn at(address: Address, options: PostgresOptions) -> Result<Self, StoreError> {
        let method = ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        };
        let manager = Manager::from_config(address.config.clone(), address.tls.clone(), method);
        let statements = set_up(options.lease);
        let set_up = Hook::async_fn(move |client: &mut ClientWrapper, _| {
            let statements = statements.clone();
            Box::pin(async move {
                let done = client.batch_execute(&statements).await;
                done.map_err(HookError::Backend)
            })
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
        let opened = self.is_open.get_or_try_init(|| async {
            let mut retry = Retry::within(FIRST_CONNECTION);
            loop {
                match self.try_open().await {
                    Ok(()) => return Ok(()),
                    Err(failure) => retry.after(failure).await?,
                }
            }
        });
        match opened.await {
            Ok(()) => Ok(()),
            Err(failure) => Err(self.with_hint(self.error(failure))),
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

    /// Adds why no password was found to an error about a password.
    fn with_hint(&self, error: StoreError) -> StoreError {
        match (error, &self.address.hint) {
            (StoreError::Unreadable { place, detail }, Some(hint))
                if detail.contains("password") =>
            {
                let detail = format!("{detail}; {hint}");
                StoreError::Unreadable { place, detail }
            }
            (error, _) => error,
        }
    }

    /// Fails if a newer version of lango has migrated the schema.
    pub(super) async fn check_schema(&self) -> Result<(), StoreError> {
        let check = async {
            let client = self.connection().await?;
            migrations::refuse_newer(&client, &self.address.place).await
        };
        let checked = in_time(self.options.lease, check).await;
        checked.map_err(|failure| self.error(failure))
    }

    /// Returns a connection for work that takes longer than an attempt may.
    pub(super) async fn connection(&self) -> Result<Object> {
        Ok(self.pool.get().await?)
    }

    /// Runs work, again if it fails in a way that may pass.
    pub(crate) async fn run<A: Input, T: Output>(
        &self,
        mode: Mode,
        given: A,
        work: Work<A, T>,
    ) -> Result<T, StoreError> {
        self.open().await?;
        let mut retry = Retry::within(self.options.lease);
        loop {
            let attempt = self.attempt(mode, &given, work, retry.is_uncertain);
            match attempt.await {
                Ok(result) => return Ok(result),
                Err(failure) => {
                    let next = retry.after(failure).await;
                    next.map_err(|failure| self.error(failure))?;
                }
            }
        }
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
            // This leaves time for another attempt while a lease lasts.
            Mode::Log(_) => (self.options.lease / 3).max(Duration::from_secs(1)),
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
        match &result {
            Err(Failure::Timeout) => self.discard(client),
            // The next connection may lead to the primary.
            Err(failure) if failure.is_standby() => self.discard(client),
            _ => {}
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

    /// Closes a connection that did not answer, since the server may still be busy with its work, or that leads to a standby,
    /// and all idle ones: each of them would cost another attempt.
    fn discard(&self, connection: Object) {
        drop(Object::take(connection));
        self.pool.retain(|_, _| false);
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

pub(super) async fn in_time<T>(
    limit: Duration,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    timeout(limit, work).await.unwrap_or(Err(Failure::Timeout))
}

/// Attempts of one piece of work, over a bounded time.
struct Retry {
    end: Instant,
    pause: Duration,
    /// Whether one of them may have been committed although it failed.
    is_uncertain: bool,
}

impl Retry {
    fn within(limit: Duration) -> Self {
        Self {
            end: Instant::now() + limit,
            pause: PAUSES[0],
            is_uncertain: false,
        }
    }

    /// Waits before the next attempt, or returns the failure if there must not be one.
    async fn after(&mut self, failure: Failure) -> Result<()> {
        self.is_uncertain |= failure.is_uncertain();
        if !failure.may_pass() || Instant::now() + self.pause > self.end {
            return Err(failure);
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSES[1]);
        Ok(())
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
