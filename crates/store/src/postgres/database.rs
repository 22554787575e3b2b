//! A PostgreSQL database: a pool of connections, opened on demand.
//!
//! Work is retried for a bounded time when the connection breaks or the server restarts. Work that writes can ask whether an
//! earlier attempt may have been committed, and must make sure that nothing is written twice.

use super::address::Address;
use super::error::BackendError;
use super::statements::set_up;
use super::{PostgresOptions, migrations, pgvector};
use crate::backend::{Input, Output, Result, Row, Sql, Tx, Value, Work, WorkMode};
use crate::decode::failed;
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

/// Time limit of one attempt.
const ATTEMPT: Duration = Duration::from_secs(30);

/// How long to retry the first connection. It is short, so that a wrong address fails soon.
const FIRST_CONNECTION: Duration = Duration::from_secs(3);

/// The first and the longest pause between attempts.
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
            // The most recently used connection has the most statements in its cache.
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

    /// Connects and migrates the schema, unless that has already happened.
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

    /// Runs work, and retries it after transient failures.
    pub(crate) async fn run<A: Input, T: Output>(
        &self,
        mode: WorkMode,
        args: A,
        work: Work<A, T>,
    ) -> Result<T, StoreError> {
        self.open().await?;
        let attempt = |is_repeated| self.attempt(mode, &args, work, is_repeated);
        let result = retry(self.options.lease, attempt);
        result.await.map_err(|failure| self.error(failure))
    }

    /// Reads the first row of one statement, or `None` if it has no rows.
    pub(super) async fn query_opt<T: Output>(
        &self,
        mode: WorkMode,
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
        mode: WorkMode,
        args: &A,
        work: Work<A, T>,
        is_repeated: bool,
    ) -> Result<T> {
        let mut client = self.pool.get().await?;
        let limit = match mode {
            WorkMode::Log(_) => answer_limit(self.options.lease),
            _ => ATTEMPT,
        };
        let mut is_committing = false;
        let result = match mode {
            WorkMode::Lookup | WorkMode::Read | WorkMode::WriteAutocommit | WorkMode::Log(_) => {
                in_time(limit, work(&mut Tx::client(&client, is_repeated), args)).await
            }
            WorkMode::Snapshot | WorkMode::Write | WorkMode::WriteIdempotent => {
                transaction(&mut client, mode, args, work, &mut is_committing).await
            }
        };
        if let Err(failure) = &result
            && (matches!(failure, BackendError::Timeout)
                || failure.has_code(&SqlState::READ_ONLY_SQL_TRANSACTION))
        {
            // The server may still be busy with the work, or it is a standby. Every idle connection would cost a failed attempt, so
            // all of them are closed.
            drop(Object::take(client));
            self.pool.retain(|_, _| false);
        }
        match result {
            // The transaction may have been committed.
            Err(failure) if mode == WorkMode::Write && is_committing && failure.may_be_committed() => {
                Err(BackendError::Store(StoreError::Unreachable {
                    place: self.address.place.clone(),
                    detail: "the connection was lost during a commit, so the change may or may not be stored"
                        .to_owned(),
                }))
            }
            result => result,
        }
    }

    pub(super) fn error(&self, failure: BackendError) -> StoreError {
        failure.about(&self.address.place)
    }
}

/// Runs work in a transaction. If it fails before `is_committing` is set, the transaction was rolled back.
async fn transaction<A: Input, T: Output>(
    client: &mut Object,
    mode: WorkMode,
    args: &A,
    work: Work<A, T>,
    is_committing: &mut bool,
) -> Result<T> {
    let started = in_time(ATTEMPT, async {
        let mut builder = client.build_transaction();
        if mode == WorkMode::Snapshot {
            builder = builder
                .read_only(true)
                .isolation_level(IsolationLevel::RepeatableRead);
        }
        let transaction = builder.start().await?;
        let result = work(&mut Tx::transaction(&transaction), args).await?;
        Ok((transaction, result))
    });
    let (transaction, result) = started.await?;
    *is_committing = true;
    in_time(ATTEMPT, async { Ok(transaction.commit().await?) }).await?;
    Ok(result)
}

/// Returns how long to wait for an answer, so that there is time for another attempt before a lease expires.
pub(super) fn answer_limit(lease: Duration) -> Duration {
    (lease / 3).max(Duration::from_secs(1))
}

pub(super) async fn in_time<T>(
    limit: Duration,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    timeout(limit, work)
        .await
        .unwrap_or(Err(BackendError::Timeout))
}

/// Retries after transient failures, for a bounded time. `attempt` is told whether an earlier attempt may have been committed
/// although it failed.
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
        if !failure.is_transient() || Instant::now() + pause > end {
            return Err(failure);
        }
        is_repeated |= failure.may_be_committed();
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
    async fn a_connection_whose_commit_timed_out_is_not_reused() {
        const SLOW_COMMIT: &str = "CREATE TABLE slow (id INT);
            CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
                'BEGIN PERFORM pg_sleep(5); RETURN NULL; END';
            CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON slow DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION wait()";
        let address = Address::parse(&postgres::fresh_schema()).unwrap();
        let options = PostgresOptions {
            connections: 1,
            ..PostgresOptions::default()
        };
        let database = Database::at(address, options).unwrap();
        database.open().await.unwrap();
        let client = database.pool.get().await.unwrap();
        client.batch_execute(SLOW_COMMIT).await.unwrap();
        drop(client);
        let change = database.run(WorkMode::Write, (), |tx, ()| {
            Box::pin(async move {
                tx.execute(INSERT, &[]).await?;
                // From here on only the commit is pending, so the paused clock jumps to its timeout.
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
