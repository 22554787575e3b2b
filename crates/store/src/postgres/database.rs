//! A database on a PostgreSQL server: some connections to it, opened when they are first needed, and the patience to ride
//! out their loss.
//!
//! Whatever is asked is asked again when the connection breaks or the server restarts, for a bounded time. Whoever asks for
//! a change learns whether an earlier try may have been carried out, and sees to it that nothing happens twice.

use super::PostgresOptions;
use super::address::Address;
use super::failure::Failure;
use super::migrations;
use super::pgvector;
use super::statements::start::set_up;
use crate::engine::{Mode, Tx, Work};
use crate::tables::{OpenMode, checkpoint};
use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Object, Pool, QueueMode, RecyclingMethod, Runtime,
    Transaction,
};
use lango_core::{BoxFuture, StoreError};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tokio_postgres::IsolationLevel;
use tokio_postgres::types::ToSql;

/// How long one try may take.
const TRY: Duration = Duration::from_secs(30);

/// How long the first connection is tried for: a wrong address should not keep anybody waiting.
const FIRST: Duration = Duration::from_secs(3);

/// The pauses between two tries.
const PAUSES: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(500)];

/// The values of a statement.
pub(super) type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// The database, whether it is open yet or not.
pub(super) struct Database {
    address: Address,
    pool: Pool,
    is_open: OnceCell<()>,
    /// For how long what fails is tried again.
    patience: Duration,
    open_mode: OpenMode,
    /// Beyond how many vectors an index for them is of use.
    pub(super) min_indexed_vectors: u64,
}

/// What a transaction is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Several statements that see one moment.
    Look,
    /// A change.
    Change,
    /// A change that does no harm when it is made twice.
    RepeatableChange,
}

impl Database {
    /// The database at an address.
    pub(super) fn at(address: Address, options: PostgresOptions) -> Result<Self, StoreError> {
        let patience = options.lease;
        let method = ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        };
        let manager = Manager::from_config(address.config.clone(), address.tls.clone(), method);
        let begin = set_up(patience);
        let set_up = Hook::async_fn(move |client: &mut deadpool_postgres::ClientWrapper, _| {
            let begin = begin.clone();
            Box::pin(async move {
                let done = client.batch_execute(&begin).await;
                done.map_err(HookError::Backend)
            })
        });
        let pool = Pool::builder(manager)
            .max_size(options.connections.max(1))
            // The one that was used last knows the statements best.
            .queue_mode(QueueMode::Lifo)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(patience))
            .create_timeout(Some(patience))
            .recycle_timeout(Some(patience))
            .post_create(set_up)
            .build()
            .map_err(|error| StoreError::Failed {
                detail: error.to_string(),
            })?;
        Ok(Self {
            address,
            pool,
            is_open: OnceCell::new(),
            patience,
            open_mode: options.open_mode,
            min_indexed_vectors: options.min_indexed_vectors,
        })
    }

    /// What errors call it.
    pub(super) fn place(&self) -> &str {
        &self.address.place
    }

    /// The address without a password.
    pub(super) fn shown(&self) -> &str {
        &self.address.shown
    }

    /// Connects and brings the schema up to date, unless that has happened.
    pub(super) async fn open(&self) -> Result<(), StoreError> {
        let opened = self.is_open.get_or_try_init(|| async {
            let mut tries = Tries::within(FIRST);
            loop {
                let opened = async {
                    let mut client = self.pool.get().await?;
                    migrations::migrate(&mut client, self.place()).await?;
                    if self.open_mode == OpenMode::Normal {
                        self.must_be_whole(&client).await?;
                    }
                    pgvector::prepare(&mut client, self.min_indexed_vectors).await
                };
                match opened.await {
                    Ok(()) => return Ok(()),
                    Err(failure) => tries.after(failure).await?,
                }
            }
        });
        let opened = opened
            .await
            .map_err(|failure: Failure| self.with_hint(failure.about(self.place())));
        opened.copied()
    }

    /// Refuses the target of an unfinished transfer.
    async fn must_be_whole(&self, client: &Object) -> Result<(), Failure> {
        match checkpoint(&mut Tx::client(client, false)).await? {
            Some(found) => Err(found.refusal(self.place().to_owned(), self.shown()).into()),
            None => Ok(()),
        }
    }

    /// Whoever is not let in for want of a password is told why none was found.
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

    /// A connection for what takes longer than a try may.
    pub(super) async fn connection(&self) -> Result<Object, Failure> {
        Ok(self.pool.get().await?)
    }

    /// Runs work on a connection, again if it has to be.
    pub(super) async fn run<A, T>(
        &self,
        mode: Mode,
        given: A,
        work: Work<A, T>,
    ) -> Result<T, StoreError>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        let given = &Arc::new(given);
        let purpose = match mode {
            Mode::Read | Mode::WriteOne | Mode::Log(_) => {
                let most = match mode {
                    // Time is left for another try while a lease lasts.
                    Mode::Log(_) => (self.patience / 3).max(Duration::from_secs(1)),
                    _ => TRY,
                };
                let each = self.each(most, move |client, is_repeated| {
                    let given = Arc::clone(given);
                    Box::pin(
                        async move { work(&mut Tx::client(client, is_repeated), &given).await },
                    )
                });
                return each.await;
            }
            Mode::Snapshot => Purpose::Look,
            Mode::Write => Purpose::Change,
            Mode::WriteTwice => Purpose::RepeatableChange,
        };
        let transaction = self.transaction(purpose, move |transaction| {
            let given = Arc::clone(given);
            Box::pin(async move { work(&mut Tx::transaction(transaction), &given).await })
        });
        transaction.await
    }

    /// Runs statements that each stand alone. All of it is done again when one fails in a way that may pass; the work is
    /// given a connection, and whether an earlier try may have been carried out. A try takes `most` at most.
    async fn each<T, W>(&self, most: Duration, work: W) -> Result<T, StoreError>
    where
        T: Send,
        W: for<'t> Fn(&'t Object, bool) -> BoxFuture<'t, Result<T, Failure>> + Send + Sync,
    {
        self.open().await?;
        let mut tries = Tries::within(self.patience);
        loop {
            match self.try_each(most, &work, tries.is_uncertain).await {
                Ok(result) => return Ok(result),
                Err(failure) => tries
                    .after(failure)
                    .await
                    .map_err(|failure| self.error(failure))?,
            }
        }
    }

    async fn try_each<T, W>(
        &self,
        most: Duration,
        work: &W,
        is_repeated: bool,
    ) -> Result<T, Failure>
    where
        T: Send,
        W: for<'t> Fn(&'t Object, bool) -> BoxFuture<'t, Result<T, Failure>> + Send + Sync,
    {
        let client = self.pool.get().await?;
        let done = timeout(most, work(&client, is_repeated)).await;
        done.unwrap_or_else(|_| {
            self.discard(client);
            Err(Failure::Silent)
        })
    }

    /// Runs several statements in one transaction. What fails before the end of it is tried again from its beginning; when
    /// the answer to its end is lost, nobody can know, and that is the error.
    async fn transaction<T, W>(&self, purpose: Purpose, work: W) -> Result<T, StoreError>
    where
        T: Send,
        W: for<'t, 'c> Fn(&'t Transaction<'c>) -> BoxFuture<'t, Result<T, Failure>> + Send + Sync,
    {
        self.open().await?;
        let mut tries = Tries::within(self.patience);
        loop {
            match self.try_transaction(purpose, &work).await {
                Ok(result) => return Ok(result),
                Err(failure) => tries
                    .after(failure)
                    .await
                    .map_err(|failure| self.error(failure))?,
            }
        }
    }

    async fn try_transaction<T, W>(&self, purpose: Purpose, work: &W) -> Result<T, Failure>
    where
        T: Send,
        W: for<'t, 'c> Fn(&'t Transaction<'c>) -> BoxFuture<'t, Result<T, Failure>> + Send + Sync,
    {
        let mut client = self.pool.get().await?;
        let done = run(&mut client, purpose, work).await;
        if matches!(done, Err(Failure::Silent) | Ok((_, Err(Failure::Silent)))) {
            self.discard(client);
        }
        match done? {
            (result, Ok(())) => Ok(result),
            (_, Err(failure)) if purpose == Purpose::Change && failure.is_uncertain() => {
                Err(Failure::Said(StoreError::Unreachable {
                    place: self.place().to_owned(),
                    detail: "it broke off while a change was made, which may be there or not"
                        .to_owned(),
                }))
            }
            (_, Err(failure)) => Err(failure),
        }
    }

    /// Parts with a connection that gave no answer: whatever it is still at, it is no use to anybody else. And with those
    /// that are not in use: where the way to the server was lost without a word, each would cost another try.
    fn discard(&self, silent: Object) {
        drop(Object::take(silent));
        self.pool.retain(|_, _| false);
    }

    /// A failure as callers know it.
    pub(super) fn error(&self, failure: Failure) -> StoreError {
        failure.about(self.place())
    }
}

/// Runs the work of a transaction, and tells apart what failed before its end, and undid all of it, from what failed at its
/// end.
async fn run<T, W>(
    client: &mut Object,
    purpose: Purpose,
    work: &W,
) -> Result<(T, Result<(), Failure>), Failure>
where
    T: Send,
    W: for<'t, 'c> Fn(&'t Transaction<'c>) -> BoxFuture<'t, Result<T, Failure>> + Send + Sync,
{
    let begun = timeout(TRY, async {
        let builder = client.build_transaction();
        let builder = match purpose {
            Purpose::Look => builder
                .read_only(true)
                .isolation_level(IsolationLevel::RepeatableRead),
            Purpose::Change | Purpose::RepeatableChange => builder,
        };
        let transaction = builder.start().await?;
        let result = work(&transaction).await?;
        Ok((transaction, result))
    });
    let (transaction, result) = begun.await.unwrap_or(Err(Failure::Silent))?;
    let ended = match timeout(TRY, transaction.commit()).await {
        Ok(ended) => ended.map_err(Failure::from),
        Err(_) => Err(Failure::Silent),
    };
    Ok((result, ended))
}

/// Tries of one thing, over a bounded time.
struct Tries {
    end: Instant,
    pause: Duration,
    /// Whether one of them may have been carried out although it failed.
    is_uncertain: bool,
}

impl Tries {
    /// None so far.
    fn within(patience: Duration) -> Self {
        Self {
            end: Instant::now() + patience,
            pause: PAUSES[0],
            is_uncertain: false,
        }
    }

    /// Waits before the next try, or gives the failure back if there is to be none.
    async fn after(&mut self, failure: Failure) -> Result<(), Failure> {
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

    /// A commit that the server is still at when patience ends.
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
        let change = database.transaction(Purpose::Change, |transaction| {
            Box::pin(async move {
                transaction
                    .execute("INSERT INTO slow VALUES (1)", &[])
                    .await?;
                // Nothing is under way but the commit, so that the clock jumps to where patience ends.
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
