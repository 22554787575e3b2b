//! Clients that send jobs, retry until a server acknowledges them, and record what was acknowledged.

use super::random::Random;
use super::rpc_client::{RpcClient, RpcError, is_over, state};
use super::script::question;
use lango_a2a::server::first_attempt;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long a client polls its oldest task before it continues with new jobs.
const POLL_TIMEOUT: Duration = Duration::from_secs(20);

const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);

/// What the clients have sent and received.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    /// The jobs that were sent, acknowledged or not.
    pub sent: BTreeSet<u64>,
    /// The task of each job that a server acknowledged.
    pub acknowledged: BTreeMap<u64, String>,
    /// Jobs whose message, sent again after its acknowledgement, created an unrelated task.
    pub other_tasks: Vec<u64>,
    /// The errors with which servers refused a message for good.
    pub refusals: Vec<String>,
}

/// All clients of a run.
pub(crate) struct Clients {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    servers: Vec<RpcClient>,
    next_number: AtomicU64,
    is_over: AtomicBool,
    max_open: usize,
    open: AtomicUsize,
    ledger: Mutex<Ledger>,
}

impl Clients {
    /// Starts `count` clients with at most `max_open` open tasks each. Each request goes to a random server.
    pub(crate) fn start(
        count: u64,
        max_open: usize,
        servers: Vec<RpcClient>,
        random: &mut Random,
    ) -> Self {
        let shared = Arc::new(Shared {
            servers,
            next_number: AtomicU64::new(1),
            is_over: AtomicBool::new(false),
            max_open,
            open: AtomicUsize::new(0),
            ledger: Mutex::default(),
        });
        let client = |name: u64| {
            let client = Client {
                shared: Arc::clone(&shared),
                random: Random::new(random.next()),
                name,
                contexts: 0,
                open: VecDeque::new(),
            };
            thread::spawn(move || client.work())
        };
        Self {
            threads: (0..count).map(client).collect(),
            shared,
        }
    }

    /// Returns the number of tasks that no client has seen end.
    pub(crate) fn open(&self) -> usize {
        self.shared.open.load(Ordering::Relaxed)
    }

    pub(crate) fn acknowledged(&self) -> usize {
        self.shared.ledger().acknowledged.len()
    }

    /// Lets every client finish its current message, and returns what they recorded.
    pub(crate) fn finish(self) -> Ledger {
        self.shared.is_over.store(true, Ordering::Relaxed);
        for client in self.threads {
            client.join().expect("a client does not panic");
        }
        self.shared.ledger().clone()
    }
}

impl Shared {
    fn ledger(&self) -> std::sync::MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

struct Client {
    shared: Arc<Shared>,
    random: Random,
    name: u64,
    contexts: u64,
    /// Tasks that it has not seen end, oldest first.
    open: VecDeque<String>,
}

impl Client {
    fn work(mut self) {
        while !self.shared.is_over() {
            let number = self.shared.next_number.fetch_add(1, Ordering::Relaxed);
            self.send(number);
            if self.open.len() >= self.shared.max_open {
                self.poll_oldest_task();
            }
        }
    }

    fn server(&mut self) -> RpcClient {
        self.random.pick(&self.shared.servers).clone()
    }

    /// Sends a job until it is acknowledged. Some jobs continue the previous conversation, whose turn may still be
    /// running.
    fn send(&mut self, number: u64) {
        if self.contexts == 0 || self.random.chance(70) {
            self.contexts += 1;
        }
        let message = json!({
            "message": {
                "messageId": format!("m-{number}"),
                "contextId": format!("conversation-{}-{}", self.name, self.contexts),
                "role": "ROLE_USER",
                "parts": [{ "text": question(number) }],
            },
            "configuration": { "returnImmediately": self.random.chance(60) },
        });
        self.shared.ledger().sent.insert(number);
        let Some(mut task) = self.send_until_acknowledged(&message) else {
            return;
        };
        // Send it again, as a client does whose connection broke before it read the acknowledgement.
        if self.random.chance(10)
            && let Some(again) = self.send_until_acknowledged(&message)
        {
            if first_attempt(&again) != first_attempt(&task) {
                self.shared.ledger().other_tasks.push(number);
            }
            // If nothing had run, the repeated message started another attempt.
            task = again;
        }
        let mut ledger = self.shared.ledger();
        ledger.acknowledged.insert(number, task.clone());
        drop(ledger);
        self.open.push_back(task);
        self.shared.open.fetch_add(1, Ordering::Relaxed);
    }

    fn send_until_acknowledged(&mut self, message: &Value) -> Option<String> {
        loop {
            let sent = self
                .server()
                .rpc("SendMessage", message.clone(), REQUEST_TIMEOUT);
            match sent {
                Ok(result) => {
                    let id = result["task"]["id"].as_str();
                    return Some(id.unwrap_or_else(|| panic!("no task: {result}")).to_owned());
                }
                Err(RpcError::Disconnected) => {
                    thread::sleep(self.random.within(Duration::from_millis(20)))
                }
                // The server is at its task limit, is shutting down, or cannot reach its database.
                Err(RpcError::Refused(-32000 | -32603 | 429 | 503, _)) => {
                    thread::sleep(self.random.within(Duration::from_millis(200)));
                }
                Err(RpcError::Refused(_, error)) => {
                    self.shared.ledger().refusals.push(error);
                    return None;
                }
            }
        }
    }

    /// Polls the oldest task until it has ended or waits for the user.
    fn poll_oldest_task(&mut self) {
        let Some(oldest) = self.open.pop_front() else {
            return;
        };
        self.shared.open.fetch_sub(1, Ordering::Relaxed);
        let deadline = Instant::now() + POLL_TIMEOUT;
        while Instant::now() < deadline && !self.shared.is_over() {
            match self.server().task(&oldest) {
                Some(task) if is_over(&task) || state(&task) == "AUTH_REQUIRED" => return,
                _ => thread::sleep(Duration::from_millis(20)),
            }
        }
    }
}
