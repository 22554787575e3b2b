//! The renewer: one thread with one connection that renews and releases the leases of this replica, and sends and receives
//! notifications.
//!
//! It is a thread so that a busy runtime loses no lease, and so that the end of the program can wait a moment for the last
//! releases. When its connection breaks it opens another one; meanwhile leases may expire.

use super::address::Address;
use super::database::{Values, in_time};
use super::failure::Failure;
use super::leases::{Lease, LeaseTable, Moment, now};
use super::statements::leases::{
    ATTACH_SERVER, CLOCK, LISTEN, NOTIFY, PROCESS_ID, RELEASE, RENEW, RENEW_ALONE, SHORTEN,
};
use super::statements::start::set_up;
use super::tls::Encrypted;
use crate::engine::text::Words;
use deadpool_postgres::ClientWrapper;
use lango_core::{Change, SessionId, StoreError, Text};
use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use tokio_postgres::{AsyncMessage, Connection, Notification, Row, Socket};

/// The channel with the sessions whose log grew.
pub(crate) const EVENTS: &str = "lango_events";
/// The channel with the tasks that changed.
pub(crate) const TASKS: &str = "lango_tasks";
/// The channel with the sessions whose lease was released.
pub(super) const LEASES: &str = "lango_holds";

/// Number of received notifications that can be queued; further ones are replaced by [`Change::Anything`].
const RECEIVED: usize = 1024;

/// Pause between two attempts to connect, or to renew or release a locked row.
const PAUSE: Duration = Duration::from_millis(200);

/// How far the database's clock may fall behind between two renewals before it counts as set back.
const MAX_DRIFT: Duration = Duration::from_millis(500);

/// How long the end of the program waits for the last releases.
const LAST_RELEASES: Duration = Duration::from_secs(2);

/// The handle to the thread, which is started when it is first needed. Dropping it waits for the last releases.
pub(super) struct LeaseRenewer {
    pub leases: Arc<LeaseTable>,
    address: Address,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl LeaseRenewer {
    pub(super) fn new(leases: Arc<LeaseTable>, address: Address) -> Self {
        Self {
            leases,
            address,
            thread: Mutex::default(),
        }
    }

    /// Starts the thread, unless it runs. One that panicked is replaced.
    pub(super) fn start(&self) -> Result<(), StoreError> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return Ok(());
        }
        let failed = |error: std::io::Error| StoreError::Failed {
            detail: format!("cannot start the renewer of leases: {error}"),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let (leases, address) = (Arc::clone(&self.leases), self.address.clone());
        let started = thread::Builder::new()
            .name("lango-renewer".to_owned())
            .spawn(move || {
                runtime.block_on(run(&leases, &address));
                // Without waiting for a name that is being looked up.
                runtime.shutdown_background();
            })
            .map_err(failed)?;
        *thread = Some(started);
        Ok(())
    }
}

impl Drop for LeaseRenewer {
    fn drop(&mut self) {
        self.leases.close();
        let thread = self.thread.get_mut();
        if let Some(thread) = thread.unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join();
        }
    }
}

async fn run(leases: &LeaseTable, address: &Address) {
    let mut closing = leases.closing.subscribe();
    let last_releases = async {
        // The sender is in `leases`, so this cannot fail.
        let _ = closing.wait_for(|is_closing| *is_closing).await;
        tokio::time::sleep(LAST_RELEASES).await;
    };
    let work = async {
        loop {
            while leases.is_idle() {
                if leases.is_closing() {
                    return;
                }
                leases.wake.notified().await;
            }
            if let Ok(mut connected) = Connected::open(address, leases).await
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

/// The connection to the database.
struct Connected<'a> {
    leases: &'a LeaseTable,
    client: ClientWrapper,
    received: mpsc::Receiver<Notification>,
    /// Whether notifications were discarded because the queue was full.
    is_behind: Arc<AtomicBool>,
    /// The database's clock in seconds, and when it was read.
    clock: Option<(f64, Moment)>,
    /// When a step of the clock was last noticed, or the clock was first read.
    clock_set: Moment,
    /// The process id of this connection on the server, which also delivers notifications to their sender.
    own: i32,
}

impl<'a> Connected<'a> {
    async fn open(address: &Address, leases: &'a LeaseTable) -> Result<Self, Failure> {
        let open = async {
            let (client, connection) = address.config.connect(address.tls.clone()).await?;
            let (sender, received) = mpsc::channel(RECEIVED);
            let is_behind = Arc::new(AtomicBool::new(false));
            let listener = tokio::spawn(listen(connection, sender, Arc::clone(&is_behind)));
            let client = ClientWrapper::new(client, listener);
            client.batch_execute(&set_up(leases.length)).await?;
            client.batch_execute(LISTEN).await?;
            let own = client.query_one(PROCESS_ID, &[]).await?.try_get(0)?;
            // Prepared now, so that the first release takes one round trip.
            for statement in [RENEW, RENEW_ALONE, RELEASE, NOTIFY] {
                client.prepare_cached(statement).await?;
            }
            Ok(Self {
                leases,
                client,
                received,
                is_behind,
                clock: None,
                clock_set: Moment::ZERO,
                own,
            })
        };
        in_time(limit(leases), open).await
    }

    async fn query(&self, statement: &str, values: Values<'_>) -> Result<Vec<Row>, Failure> {
        let query = async {
            let statement = self.client.prepare_cached(statement).await?;
            Ok(self.client.query(&statement, values).await?)
        };
        in_time(limit(self.leases), query).await
    }

    /// Renews, releases and notifies until the store is dropped, or fails when the connection is lost.
    async fn serve(&mut self) -> Result<(), Failure> {
        // Earlier notifications were missed.
        let _ = self.leases.changed.send(Change::Anything);
        let mut renewal = interval(self.leases.length / 3);
        renewal.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_attached = false;
        loop {
            let is_left = self.release().await?;
            self.notify().await?;
            if self.leases.is_closing() && self.leases.releases().is_empty() {
                return Ok(());
            }
            if self.leases.state().is_renewal_due {
                self.renew().await?;
            }
            if self.leases.is_server() && !is_attached {
                let locked = self.query(ATTACH_SERVER, &[]).await?;
                is_attached = locked.first().is_some_and(|row| row.get(0));
            }
            let must_attach = self.leases.is_server() && !is_attached;
            tokio::select! {
                () = self.leases.wake.notified() => {}
                _ = renewal.tick() => {
                    self.check_clock().await?;
                    self.renew().await?;
                }
                () = tokio::time::sleep(PAUSE), if is_left || must_attach || self.leases.state().is_renewal_due => {}
                received = self.received.recv() => match received {
                    Some(notification) => self.receive(&notification),
                    None => return Err(Failure::Timeout),
                },
            }
        }
    }

    /// Shortens leases that end too late because the database's clock was set back. Also does so after the first reading, since the
    /// clock may have been set back before.
    async fn check_clock(&mut self) -> Result<(), Failure> {
        let asked = now();
        let read: f64 = match self.query(CLOCK, &[]).await?.first() {
            Some(row) => row.try_get(0)?,
            None => return Ok(()),
        };
        let before = self.clock.replace((read, asked));
        let is_steady = before.is_some_and(|(clock, moment)| {
            let passed = asked.saturating_sub(moment).as_secs_f64();
            read - clock > passed - MAX_DRIFT.as_secs_f64()
        });
        if !is_steady {
            self.clock_set = asked;
        }
        // More than once, because rows that are locked are skipped.
        let length = self.leases.length;
        if asked.saturating_sub(self.clock_set) <= length {
            self.query(SHORTEN, &[&length.as_secs_f64()]).await?;
        }
        Ok(())
    }

    /// Renews everything. Waits a short time for each row that is locked, and tries it again soon.
    async fn renew(&self) -> Result<(), Failure> {
        let (asked, length) = (now(), self.leases.length);
        let (leases, tickets) = self.leases.to_renew();
        let (sessions, fences): (Vec<Words<'_>>, Vec<i64>) = leases
            .iter()
            .map(|lease| (Words(lease.session.as_str()), lease.fence))
            .unzip();
        let values: Values<'_> = &[&sessions, &fences, &length.as_secs_f64(), &tickets];
        let mut is_renewed = HashMap::new();
        for row in self.query(RENEW, values).await? {
            is_renewed.insert(row.try_get::<_, i64>(0)?, row.try_get(1)?);
        }
        let mut locked = Vec::new();
        for lease in &leases {
            match is_renewed.get(&lease.fence) {
                Some(true) => lease.renew(asked + length),
                Some(false) => locked.push(lease),
                None => lease.lose(),
            }
        }
        // All of them together wait for a tenth of a lease at most.
        let count = u32::try_from(locked.len()).unwrap_or(u32::MAX);
        let wait = length / 10 / count.max(1);
        for lease in locked {
            self.renew_alone(lease, wait).await?;
        }
        Ok(())
    }

    async fn renew_alone(&self, lease: &Lease, wait: Duration) -> Result<(), Failure> {
        let (asked, length) = (now(), self.leases.length);
        let session = Words(lease.session.as_str());
        // Zero would be no limit.
        let wait = format!("{}ms", wait.as_millis().max(1));
        let values: Values<'_> = &[&session, &lease.fence, &length.as_secs_f64(), &wait];
        match self.query(RENEW_ALONE, values).await {
            Ok(rows) if rows.is_empty() => lease.lose(),
            Ok(_) => lease.renew(asked + length),
            Err(failure) if failure.is_locked() => self.leases.state().is_renewal_due = true,
            Err(failure) => return Err(failure),
        }
        Ok(())
    }

    /// Releases leases and tickets; returns whether a lease is left because its row is locked.
    async fn release(&self) -> Result<bool, Failure> {
        let mut releases = self.leases.releases();
        if releases.is_empty() {
            return Ok(false);
        }
        let (sessions, fences): (Vec<Words<'_>>, Vec<i64>) = releases
            .iter()
            .filter_map(|release| Some((Words(release.session.as_str()), release.fence?)))
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

    /// Sends all notifications. They are lost if that fails.
    async fn notify(&self) -> Result<(), Failure> {
        let notifications = std::mem::take(&mut self.leases.state().notifications);
        if notifications.is_empty() {
            return Ok(());
        }
        let (channels, subjects): (Vec<&str>, Vec<&str>) = notifications
            .iter()
            .map(|(channel, subject)| (*channel, subject.as_str()))
            .unzip();
        self.query(NOTIFY, &[&channels, &subjects]).await?;
        Ok(())
    }

    fn receive(&self, notification: &Notification) {
        // Sending fails if there is no listener.
        let send = |change| drop(self.leases.changed.send(change));
        if self.is_behind.swap(false, Ordering::Relaxed) {
            send(Change::Anything);
        }
        if notification.process_id() == self.own {
            return;
        }
        match (notification.channel(), notification.payload()) {
            (LEASES, session) => drop(self.leases.released.send(SessionId::from(session))),
            (_, "") => send(Change::Anything),
            (EVENTS, session) => send(Change::Session(session.into())),
            (TASKS, task) => send(Change::Task(Text::from(task))),
            _ => {}
        }
    }
}

/// Drives a connection, and queues its notifications.
async fn listen(
    mut connection: Connection<Socket, Encrypted<Socket>>,
    received: mpsc::Sender<Notification>,
    is_behind: Arc<AtomicBool>,
) {
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        if let AsyncMessage::Notification(notification) = message
            && received.try_send(notification).is_err()
        {
            is_behind.store(true, Ordering::Relaxed);
        }
    }
}

/// How long to wait for an answer, which leaves time for another connection while a lease lasts.
fn limit(leases: &LeaseTable) -> Duration {
    (leases.length / 3).max(Duration::from_secs(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renewer_that_panicked_is_started_again() {
        let leases = Arc::new(LeaseTable::new("r_1".to_owned(), Duration::from_secs(15)));
        let address = Address::parse("postgres://ann@127.0.0.1:1/none").unwrap();
        let renewer = LeaseRenewer::new(leases, address);
        let panicked = thread::spawn(|| panic!("the renewer trips"));
        while !panicked.is_finished() {
            thread::yield_now();
        }
        *renewer.thread.lock().unwrap() = Some(panicked);
        renewer.start().unwrap();
        let thread = renewer.thread.lock().unwrap();
        assert!(!thread.as_ref().unwrap().is_finished());
    }
}
