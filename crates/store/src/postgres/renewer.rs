//! The lease renewer: one thread with one connection that renews and releases the leases of this replica, and sends and receives
//! notifications.
//!
//! It has its own thread, so that a busy runtime does not make leases expire, and so that the program can wait briefly for the last
//! releases when it exits. If its connection breaks it opens another one; leases may expire in between.

use super::PostgresBackend;
use super::address::Address;
use super::database::{Values, answer_limit, in_time};
use super::error::BackendError;
use super::leases::{Lease, LeaseTable, Moment, now};
use super::statements::{
    ATTACH_SERVER, CLOCK, NOTIFY, RELEASE, RENEW, RENEW_ALONE, SHORTEN, set_up,
};
use super::tls::EncryptedStream;
use crate::backend::text::SqlText;
use crate::decode::failed;
use deadpool_postgres::ClientWrapper;
use lango_core::{SessionId, StoreChange, StoreError, Text};
use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{MissedTickBehavior, interval};
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Connection, Row, Socket};

/// The channel that announces sessions whose log has grown.
pub(crate) const EVENTS: &str = "lango_events";
/// The channel that announces changed tasks.
pub(crate) const TASKS: &str = "lango_tasks";
/// The channel that announces sessions whose lease was released.
pub(super) const LEASES: &str = "lango_holds";

/// Pause between attempts to connect, or to renew or release a locked row.
const PAUSE: Duration = Duration::from_millis(200);

/// Seconds that the database's clock may fall behind between two renewals before lango assumes that it was set back.
const MAX_DRIFT: f64 = 0.5;

/// How long a notification waits for others, so that they are sent together.
const NOTIFY_DELAY: Duration = Duration::from_millis(5);

/// How long dropping the store waits for the last releases.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

impl PostgresBackend {
    /// Starts the thread that renews leases and notifies other replicas, unless it is running. Replaces a thread that panicked.
    pub(crate) fn start(&self) -> Result<(), StoreError> {
        let mut thread = self.renewer.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return Ok(());
        }
        let failed = |error: io::Error| failed(format!("cannot start the lease renewer: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let (leases, address) = (Arc::clone(&self.leases), self.database.address.clone());
        let started = thread::Builder::new()
            .name("lango-renewer".to_owned())
            .spawn(move || {
                runtime.block_on(run(&leases, &address));
                // This does not wait for a pending name lookup.
                runtime.shutdown_background();
            })
            .map_err(failed)?;
        *thread = Some(started);
        Ok(())
    }
}

impl Drop for PostgresBackend {
    fn drop(&mut self) {
        self.leases.closing.send_replace(true);
        self.leases.wake.notify_one();
        let thread = self.renewer.get_mut();
        if let Some(thread) = thread.unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join();
        }
    }
}

async fn run(leases: &Arc<LeaseTable>, address: &Address) {
    let mut closing = leases.closing.subscribe();
    let last_releases = async {
        // The sender is in `leases`, so this cannot fail.
        let _ = closing.wait_for(|is_closing| *is_closing).await;
        // Even if nothing is left to send, a reply may still be pending.
        let limit = if leases.is_done() {
            PAUSE
        } else {
            SHUTDOWN_TIMEOUT
        };
        tokio::time::sleep(limit).await;
    };
    let work = async {
        loop {
            if let Ok(mut connected) = RenewerConnection::open(address, leases).await
                && connected.serve().await.is_ok()
            {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::select! {
        () = work => {}
        () = last_releases => {}
    }
}

/// The renewer's connection to the database.
struct RenewerConnection<'a> {
    leases: &'a LeaseTable,
    client: ClientWrapper,
    /// Resolves when the connection is lost.
    lost: oneshot::Receiver<()>,
    /// Seconds by which the database's clock is ahead of [`now`].
    clock: Option<f64>,
    /// When the clock was first read, or last found to be set back.
    clock_set: Moment,
}

impl<'a> RenewerConnection<'a> {
    async fn open(address: &Address, leases: &'a Arc<LeaseTable>) -> Result<Self, BackendError> {
        let open = async {
            let (client, connection) = address.config.connect(address.tls.clone()).await?;
            let (is_open, lost) = oneshot::channel();
            let listener = tokio::spawn(listen(connection, Arc::clone(leases), is_open));
            let client = ClientWrapper::new(client, listener);
            set_up(&client, leases.length).await?;
            let own = client.query_one("SELECT pg_backend_pid()", &[]).await?;
            leases.connection.store(own.try_get(0)?, Ordering::Relaxed);
            let listen = format!("LISTEN {EVENTS}; LISTEN {TASKS}; LISTEN {LEASES}");
            client.batch_execute(&listen).await?;
            // These are prepared now, so that the first release takes one round trip.
            for statement in [RENEW, RENEW_ALONE, RELEASE, NOTIFY] {
                client.prepare_cached(statement).await?;
            }
            Ok(Self {
                leases,
                client,
                lost,
                clock: None,
                clock_set: Moment::ZERO,
            })
        };
        in_time(answer_limit(leases.length), open).await
    }

    async fn query(&self, statement: &str, values: Values<'_>) -> Result<Vec<Row>, BackendError> {
        let query = async {
            let statement = self.client.prepare_cached(statement).await?;
            Ok(self.client.query(&statement, values).await?)
        };
        in_time(answer_limit(self.leases.length), query).await
    }

    /// Renews, releases and notifies until the store is dropped. Fails when the connection is lost.
    async fn serve(&mut self) -> Result<(), BackendError> {
        // Notifications may have been missed while there was no connection.
        let _ = self.leases.changed.send(StoreChange::Anything);
        let mut renewal = interval(self.leases.length / 3);
        renewal.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_attached = false;
        loop {
            let is_left = self.release().await?;
            self.notify().await?;
            if self.leases.is_done() {
                return Ok(());
            }
            if self.leases.state().is_renewal_due {
                self.renew().await?;
            }
            let must_attach = self.leases.is_server() && !is_attached;
            if must_attach {
                let locked = self.query(ATTACH_SERVER, &[]).await?;
                is_attached = locked.first().is_some_and(|row| row.get(0));
            }
            tokio::select! {
                () = self.leases.wake.notified() => {}
                _ = renewal.tick() => {
                    self.check_clock().await?;
                    self.renew().await?;
                }
                () = tokio::time::sleep(PAUSE), if is_left || must_attach || self.leases.state().is_renewal_due => {}
                _ = &mut self.lost => return Err(BackendError::Timeout),
            }
        }
    }

    /// Shortens leases that end too late because the database's clock was set back. Also does this after the first
    /// reading, because the clock may have been set back before.
    async fn check_clock(&mut self) -> Result<(), BackendError> {
        let requested = now();
        let read: f64 = match self.query(CLOCK, &[]).await?.first() {
            Some(row) => row.try_get(0)?,
            None => return Ok(()),
        };
        let ahead = read - requested.as_secs_f64();
        let before = self.clock.replace(ahead);
        if before.is_none_or(|before| ahead <= before - MAX_DRIFT) {
            self.clock_set = requested;
        }
        // This is repeated for a while, because locked rows are skipped.
        let length = self.leases.length;
        if requested.saturating_sub(self.clock_set) <= length {
            self.query(SHORTEN, &[&length.as_secs_f64()]).await?;
        }
        Ok(())
    }

    /// Renews all leases and tickets. Waits briefly for each lease whose row is locked, and retries it soon if that fails.
    async fn renew(&self) -> Result<(), BackendError> {
        let (requested, length) = (now(), self.leases.length);
        let (leases, tickets) = self.leases.to_renew();
        let (sessions, fences): (Vec<SqlText<'_>>, Vec<i64>) = leases
            .iter()
            .map(|lease| (SqlText(lease.session.as_str()), lease.fence))
            .unzip();
        let values: Values<'_> = &[&sessions, &fences, &length.as_secs_f64(), &tickets];
        let mut is_renewed = HashMap::new();
        for row in self.query(RENEW, values).await? {
            is_renewed.insert(row.try_get::<_, i64>(0)?, row.try_get(1)?);
        }
        let mut locked = Vec::new();
        for lease in &leases {
            match is_renewed.get(&lease.fence) {
                Some(true) => lease.set_end(Some(requested + length)),
                Some(false) => locked.push(lease),
                None => lease.set_end(None),
            }
        }
        // All of them together wait at most a tenth of a lease.
        let count = u32::try_from(locked.len()).unwrap_or(u32::MAX);
        let wait = length / 10 / count.max(1);
        for lease in locked {
            self.renew_alone(lease, wait).await?;
        }
        Ok(())
    }

    async fn renew_alone(&self, lease: &Lease, wait: Duration) -> Result<(), BackendError> {
        let (requested, length) = (now(), self.leases.length);
        let session = SqlText(lease.session.as_str());
        // Zero would mean no limit.
        let wait = format!("{}ms", wait.as_millis().max(1));
        let values: Values<'_> = &[&session, &lease.fence, &length.as_secs_f64(), &wait];
        match self.query(RENEW_ALONE, values).await {
            Ok(rows) if rows.is_empty() => lease.set_end(None),
            Ok(_) => lease.set_end(Some(requested + length)),
            Err(failure) if failure.has_code(&SqlState::LOCK_NOT_AVAILABLE) => {
                self.leases.state().is_renewal_due = true;
            }
            Err(failure) => return Err(failure),
        }
        Ok(())
    }

    /// Releases leases and tickets. Returns whether a lease is left because its row is locked.
    async fn release(&self) -> Result<bool, BackendError> {
        let mut releases = self.leases.state().releases.clone();
        if releases.is_empty() {
            return Ok(false);
        }
        let (sessions, fences): (Vec<SqlText<'_>>, Vec<i64>) = releases
            .iter()
            .filter_map(|release| Some((SqlText(release.session.as_str()), release.fence?)))
            .unzip();
        let tickets: Vec<i64> = releases
            .iter()
            .filter_map(|release| release.ticket)
            .collect();
        let left = self.query(RELEASE, &[&sessions, &fences, &tickets]).await?;
        let left: Result<HashSet<i64>, _> = left.iter().map(|row| row.try_get(0)).collect();
        let left = left?;
        releases.retain(|release| release.fence.is_none_or(|fence| !left.contains(&fence)));
        for release in &releases {
            self.leases.notify(LEASES, release.session.as_str());
        }
        let pending = &mut self.leases.state().releases;
        pending.retain(|pending| !releases.contains(pending));
        Ok(!left.is_empty())
    }

    /// Sends all queued notifications, and those queued within [`NOTIFY_DELAY`], with one statement. If it fails, they are lost.
    async fn notify(&self) -> Result<(), BackendError> {
        if self.leases.state().notifications.is_empty() {
            return Ok(());
        }
        tokio::time::sleep(NOTIFY_DELAY).await;
        let notifications = std::mem::take(&mut self.leases.state().notifications);
        let (channels, subjects): (Vec<&str>, Vec<&str>) = notifications
            .iter()
            .map(|(channel, subject)| (*channel, subject.as_str()))
            .unzip();
        self.query(NOTIFY, &[&channels, &subjects]).await?;
        Ok(())
    }
}

/// Drives a connection and forwards the notifications of other replicas to subscribers.
async fn listen(
    mut connection: Connection<Socket, EncryptedStream>,
    leases: Arc<LeaseTable>,
    _is_open: oneshot::Sender<()>,
) {
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        let AsyncMessage::Notification(notification) = message else {
            continue;
        };
        if notification.process_id() == leases.connection.load(Ordering::Relaxed) {
            continue;
        }
        let change = match (notification.channel(), notification.payload()) {
            (LEASES, session) => {
                let _ = leases.released.send(SessionId::from(session));
                continue;
            }
            (_, "") => StoreChange::Anything,
            (EVENTS, session) => StoreChange::Session(session.into()),
            (TASKS, task) => StoreChange::Task(Text::from(task)),
            _ => continue,
        };
        // This fails if there are no subscribers.
        let _ = leases.changed.send(change);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::PostgresOptions;

    #[test]
    fn a_renewer_that_panicked_is_started_again() {
        let address = "postgres://ann@127.0.0.1:1/none";
        let backend = PostgresBackend::at(address, PostgresOptions::default()).unwrap();
        let panicked = thread::spawn(|| panic!("the renewer panics"));
        while !panicked.is_finished() {
            thread::yield_now();
        }
        *backend.renewer.lock().unwrap() = Some(panicked);
        backend.start().unwrap();
        let thread = backend.renewer.lock().unwrap();
        assert!(!thread.as_ref().unwrap().is_finished());
    }
}
