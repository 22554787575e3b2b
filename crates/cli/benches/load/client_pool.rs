//! Concurrent clients of all replicas.
//!
//! Each client has a connection to every replica and alternates between them. A conversation therefore moves from
//! replica to replica, which has to acquire the session's lease.

use super::common::rpc_client::{RpcClient, is_over, state};
use super::connection::{Connection, WaitFor};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Number of conversations that a client cycles through.
const CONVERSATIONS: usize = 8;

/// Messages of a burst for each replica, below the server's limit of 64 running tasks.
const BURST: usize = 48;

/// How long an acknowledged task may take.
const TASK_TIMEOUT: Duration = Duration::from_secs(60);

/// A rate and its latencies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Throughput {
    pub per_second: f64,
    pub p50: Duration,
    pub p99: Duration,
}

impl Throughput {
    fn of(mut times: Vec<Duration>, elapsed: Duration) -> Self {
        times.sort_unstable();
        let at = |percent: usize| times[(times.len() - 1) * percent / 100];
        Self {
            per_second: times.len() as f64 / elapsed.as_secs_f64(),
            p50: at(50),
            p99: at(99),
        }
    }

    /// Returns the better value of two measurements in each field.
    pub(crate) fn better(self, other: Self) -> Self {
        Self {
            per_second: self.per_second.max(other.per_second),
            p50: self.p50.min(other.p50),
            p99: self.p99.min(other.p99),
        }
    }
}

/// Clients with connections to all replicas. The name makes their messages and conversations unique.
pub(crate) struct ClientPool {
    clients: Vec<Client>,
    replicas: usize,
    name: String,
}

struct Client {
    connections: Vec<Connection>,
    number: usize,
}

impl ClientPool {
    pub(crate) async fn connect(replicas: &[RpcClient], clients: usize, name: &str) -> Self {
        let mut pool = Vec::new();
        for number in 0..clients {
            let mut connections = Vec::new();
            for replica in replicas {
                connections.push(Connection::open(replica).await);
            }
            pool.push(Client {
                connections,
                number,
            });
        }
        Self {
            clients: pool,
            replicas: replicas.len(),
            name: name.to_owned(),
        }
    }

    /// Lets each client send this many messages, one after the other. Returns the rate of completed turns.
    pub(crate) async fn turns(&mut self, each: usize) -> Throughput {
        let started = Instant::now();
        let mut running = Vec::new();
        for mut client in std::mem::take(&mut self.clients) {
            let name = self.name.clone();
            running.push(tokio::spawn(async move {
                let times = client.send_messages(&name, each).await;
                (client, times)
            }));
        }
        let mut all = Vec::new();
        for client in running {
            let (client, times) = client.await.unwrap();
            self.clients.push(client);
            all.extend(times);
        }
        Throughput::of(all, started.elapsed())
    }

    /// Sends bursts of messages and waits only for their acknowledgements; after each burst, checks that every
    /// acknowledged task completes. Returns the rate of acknowledgements.
    pub(crate) async fn acknowledgements(&mut self, bursts: usize) -> Throughput {
        let (mut times, mut elapsed) = (Vec::new(), Duration::ZERO);
        for burst in 0..bursts {
            let started = Instant::now();
            let next = Arc::new(AtomicUsize::new(0));
            let count = BURST * self.replicas;
            let mut sending = Vec::new();
            for mut client in std::mem::take(&mut self.clients) {
                let (next, name) = (Arc::clone(&next), self.name.clone());
                sending.push(tokio::spawn(async move {
                    let tasks = client.send_burst(&name, burst, &next, count).await;
                    (client, tasks)
                }));
            }
            let mut tasks = Vec::new();
            for client in sending {
                let (client, sent) = client.await.unwrap();
                self.clients.push(client);
                tasks.extend(sent);
            }
            elapsed += started.elapsed();
            times.extend(tasks.iter().map(|(_, took)| *took));
            for (at, (task, _)) in tasks.iter().enumerate() {
                let connection = &mut self.clients[0].connections[at % self.replicas];
                wait_for_completion(connection, task).await;
            }
        }
        Throughput::of(times, elapsed)
    }
}

impl Client {
    async fn send_messages(&mut self, name: &str, messages: usize) -> Vec<Duration> {
        let mut times = Vec::with_capacity(messages);
        for at in 0..messages {
            let replica = (self.number + at + at / CONVERSATIONS) % self.connections.len();
            let conversation = format!("{name}-{}-{}", self.number, at % CONVERSATIONS);
            let message = format!("{name}-{}-{at}", self.number);
            let connection = &mut self.connections[replica];
            let (task, took) = connection
                .send_hello(&conversation, &message, WaitFor::Completion)
                .await;
            assert_eq!(state(&task), "COMPLETED", "{task}");
            times.push(took);
        }
        times
    }

    /// Sends messages until `count` are sent by all clients together. Returns the tasks.
    async fn send_burst(
        &mut self,
        name: &str,
        burst: usize,
        next: &AtomicUsize,
        count: usize,
    ) -> Vec<(String, Duration)> {
        let mut tasks = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return tasks;
            }
            let replica = (number + burst) % self.connections.len();
            let conversation = format!("{name}-burst-{number}");
            let message = format!("{name}-burst-{burst}-{number}");
            let connection = &mut self.connections[replica];
            let wait_for = WaitFor::Acknowledgement;
            let (task, took) = connection
                .send_hello(&conversation, &message, wait_for)
                .await;
            tasks.push((task["id"].as_str().unwrap().to_owned(), took));
        }
    }
}

async fn wait_for_completion(connection: &mut Connection, id: &str) {
    let deadline = Instant::now() + TASK_TIMEOUT;
    loop {
        let task = connection.task(id).await;
        if is_over(&task) {
            assert_eq!(state(&task), "COMPLETED", "{task}");
            return;
        }
        assert!(
            Instant::now() < deadline,
            "an acknowledged task did not complete: {task}"
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
