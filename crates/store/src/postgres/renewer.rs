//! The renewer: one thread with one connection of its own that renews what this copy holds, lets go of what it gave up, and
//! tells and hears what changed.
//!
//! It is a thread so that a busy runtime loses no lease, and so that the end of the program can wait a moment for the last
//! words. When its connection breaks it makes another; meanwhile leases run out by themselves.

use super::address::Address;
use super::failure::Failure;
use super::leases::{Lease, LeaseTable, now};
use super::statements::leases::{LISTEN, NOTIFY, RELEASE, RENEW, RENEW_ALONE, WHO_WE_ARE};
use super::statements::start::set_up;
use super::tls::Encrypted;
use crate::engine::text::Words;
use lango_core::{Change, SessionId, StoreError, Text};
use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Connection, Notification, Socket, Statement};

/// Whose log grew.
pub(crate) const EVENTS: &str = "lango_events";
/// Which task changed.
pub(crate) const TASKS: &str = "lango_tasks";
/// Which session was let go of.
pub(super) const LEASES: &str = "lango_holds";

/// How many notifications can wait to be looked at; what comes beyond that is only known to have been something.
const RECEIVED: usize = 1024;

/// How long to wait between two tries to connect, or to get at what is locked.
const PAUSE: Duration = Duration::from_millis(200);

/// How long the end of the program waits for the last words.
const LAST_RELEASES: Duration = Duration::from_secs(2);

/// The handle to the thread, which is started when it is first needed. Dropping it waits for the last words.
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

    /// Starts the thread, unless it runs. One that ended before its time left everything that it saw to.
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
                // A name that is being looked up is not waited for.
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
            // One that panicked has nothing left to say.
            let _ = thread.join();
        }
    }
}

async fn run(leases: &LeaseTable, address: &Address) {
    let mut closing = leases.closing.subscribe();
    let last_releases = async {
        // The sender is in what we were lent.
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
                && connected.attend().await.is_ok()
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
    client: Client,
    received: mpsc::Receiver<Notification>,
    /// Whether more was said than could be received.
    is_behind: Arc<AtomicBool>,
    /// Who we are to the server, which tells us our own words too.
    own: i32,
    renew: Statement,
    renew_alone: Statement,
    release: Statement,
    notify: Statement,
}

impl<'a> Connected<'a> {
    async fn open(address: &Address, leases: &'a LeaseTable) -> Result<Self, Failure> {
        bounded(leases, async {
            let (client, connection) = address.config.connect(address.tls.clone()).await?;
            let (sender, received) = mpsc::channel(RECEIVED);
            let is_behind = Arc::new(AtomicBool::new(false));
            tokio::spawn(listen(connection, sender, Arc::clone(&is_behind)));
            client.batch_execute(&set_up(leases.length)).await?;
            client.batch_execute(LISTEN).await?;
            let own = client.query_one(WHO_WE_ARE, &[]).await?.try_get(0)?;
            Ok(Self {
                leases,
                received,
                is_behind,
                own,
                renew: client.prepare(RENEW).await?,
                renew_alone: client.prepare(RENEW_ALONE).await?,
                release: client.prepare(RELEASE).await?,
                notify: client.prepare(NOTIFY).await?,
                client,
            })
        })
        .await
    }

    /// Sees to everything until the program ends, which is no failure, or the connection does.
    async fn attend(&mut self) -> Result<(), Failure> {
        // Nobody listened before.
        let _ = self.leases.changed.send(Change::Anything);
        let mut renewal = interval(self.leases.length / 3);
        renewal.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_left = self.release().await?;
            self.notify().await?;
            if self.leases.is_closing() && self.leases.releases().is_empty() {
                return Ok(());
            }
            if self.leases.is_renewal_due() {
                self.renew().await?;
            }
            tokio::select! {
                () = self.leases.wake.notified() => {}
                _ = renewal.tick() => self.renew().await?,
                () = tokio::time::sleep(PAUSE), if is_left || self.leases.is_renewal_due() => {}
                received = self.received.recv() => match received {
                    Some(said) => self.receive(&said),
                    None => return Err(Failure::Silent),
                },
            }
        }
    }

    /// Renews everything; what somebody has locked is waited for, each alone and not for long, and soon tried again.
    async fn renew(&self) -> Result<(), Failure> {
        let asked = now();
        let (leases, tickets) = self.leases.to_renew();
        let sessions: Vec<Words<'_>> = leases
            .iter()
            .map(|lease| Words(lease.session.as_str()))
            .collect();
        let fences: Vec<i64> = leases.iter().map(|lease| lease.fence).collect();
        let length = self.leases.length.as_secs_f64();
        let renewed = bounded(self.leases, async {
            let values: &[&(dyn ToSql + Sync)] = &[&sessions, &fences, &length, &tickets];
            Ok(self.client.query(&self.renew, values).await?)
        });
        let ours: Result<HashMap<i64, bool>, tokio_postgres::Error> = renewed
            .await?
            .iter()
            .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
            .collect();
        let locked = self.leases.renewed(leases, &ours?, asked);
        // All of them together take no more than a part of a lease.
        let share =
            self.leases.length / 10 / u32::try_from(locked.len()).unwrap_or(u32::MAX).max(1);
        for lease in locked {
            self.renew_alone(lease, share).await?;
        }
        Ok(())
    }

    async fn renew_alone(&self, lease: Arc<Lease>, patience: Duration) -> Result<(), Failure> {
        let asked = now();
        let (session, length) = (Words(lease.session.as_str()), self.leases.length);
        // Zero would be no bound.
        let patience = format!("{}ms", patience.as_millis().max(1));
        let renewed = bounded(self.leases, async {
            let values: &[&(dyn ToSql + Sync)] =
                &[&session, &lease.fence, &length.as_secs_f64(), &patience];
            Ok(self.client.query_opt(&self.renew_alone, values).await?)
        });
        let is_ours = match renewed.await {
            Ok(row) => row.is_some(),
            Err(failure) if failure.is_locked() => {
                self.leases.renew_soon();
                return Ok(());
            }
            Err(failure) => return Err(failure),
        };
        let renewed = HashMap::from_iter(is_ours.then_some((lease.fence, true)));
        self.leases.renewed(vec![lease], &renewed, asked);
        Ok(())
    }

    /// Lets go of what was given up; says whether something is left because somebody has locked it.
    async fn release(&self) -> Result<bool, Failure> {
        let mut gone = self.leases.releases();
        if gone.is_empty() {
            return Ok(false);
        }
        let holds = gone
            .iter()
            .filter_map(|gone| Some((gone.session.as_str(), gone.fence?)));
        let (sessions, fences): (Vec<Words<'_>>, Vec<i64>) = holds
            .clone()
            .map(|(session, fence)| (Words(session), fence))
            .unzip();
        let tickets: Vec<i64> = gone.iter().filter_map(|gone| gone.ticket).collect();
        let left = bounded(self.leases, async {
            let values: &[&(dyn ToSql + Sync)] = &[&sessions, &fences, &tickets];
            Ok(self.client.query(&self.release, values).await?)
        });
        let left: Result<HashSet<i64>, _> = left.await?.iter().map(|row| row.try_get(0)).collect();
        let left = left?;
        gone.retain(|gone| gone.fence.is_none_or(|fence| !left.contains(&fence)));
        for gone in &gone {
            self.leases.notify(LEASES, gone.session.as_str());
        }
        self.leases.settle(&gone);
        Ok(!left.is_empty())
    }

    async fn notify(&self) -> Result<(), Failure> {
        let notifications = self.leases.notifications();
        if notifications.is_empty() {
            return Ok(());
        }
        let (channels, what): (Vec<&str>, Vec<&str>) = notifications
            .iter()
            .map(|(channel, what)| (*channel, what.as_str()))
            .unzip();
        bounded(self.leases, async {
            let values: &[&(dyn ToSql + Sync)] = &[&channels, &what];
            Ok(self.client.execute(&self.notify, values).await?)
        })
        .await?;
        Ok(())
    }

    fn receive(&self, said: &Notification) {
        if self.is_behind.swap(false, Ordering::Relaxed) {
            let _ = self.leases.changed.send(Change::Anything);
        }
        if said.process_id() == self.own {
            return;
        }
        // That nobody listens here is nothing to mind.
        let _ = match (said.channel(), said.payload()) {
            (LEASES, session) => {
                let _ = self.leases.released.send(SessionId::from(session));
                return;
            }
            (_, "") => self.leases.changed.send(Change::Anything),
            (EVENTS, session) => self.leases.changed.send(Change::Session(session.into())),
            (TASKS, task) => self.leases.changed.send(Change::Task(Text::from(task))),
            _ => return,
        };
    }
}

/// Drives a connection, and passes on what it hears.
async fn listen(
    mut connection: Connection<Socket, Encrypted<Socket>>,
    received: mpsc::Sender<Notification>,
    is_behind: Arc<AtomicBool>,
) {
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        if let AsyncMessage::Notification(said) = message
            && received.try_send(said).is_err()
        {
            is_behind.store(true, Ordering::Relaxed);
        }
    }
}

/// What is not answered after a part of a lease is given up, so that there is time for another connection.
async fn bounded<T>(
    leases: &LeaseTable,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let most = (leases.length / 3).max(Duration::from_secs(1));
    let done = timeout(most, work).await;
    done.unwrap_or(Err(Failure::Silent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renewer_that_panicked_is_started_again() {
        let leases = Arc::new(LeaseTable::new("us".to_owned(), Duration::from_secs(15)));
        let address = Address::parse("postgres://us@127.0.0.1:1/none").unwrap();
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
