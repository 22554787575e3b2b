//! Clients who send jobs, again and again until somebody takes them, and write down what was taken.

use super::caller::{Caller, Unanswered, is_over, state};
use super::random::Random;
use super::script::question;
use lango_a2a::server::first_attempt;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long a client looks after its oldest task before it goes on with something else.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long one request may take.
const LONGEST_REQUEST: Duration = Duration::from_secs(20);

/// What the clients know.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    /// The jobs that were sent, whether or not anybody answered.
    pub sent: BTreeSet<u64>,
    /// The task of each job that a server acknowledged.
    pub acknowledged: BTreeMap<u64, String>,
    /// Jobs whose message, sent again after it was acknowledged, opened unrelated work.
    pub other_tasks: Vec<u64>,
    /// What servers refused for good, in their words.
    pub refusals: Vec<String>,
}

/// All clients of a run.
pub struct Clients {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    servers: Vec<Caller>,
    next_number: AtomicU64,
    is_over: AtomicBool,
    most_open: usize,
    open: AtomicUsize,
    ledger: Mutex<Ledger>,
}

impl Clients {
    /// Starts this many, each with so many tasks under way. Each request goes to any of the servers.
    pub fn start(count: u64, most_open: usize, servers: Vec<Caller>, random: &mut Random) -> Self {
        let shared = Arc::new(Shared {
            servers,
            next_number: AtomicU64::new(1),
            is_over: AtomicBool::new(false),
            most_open,
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

    /// How many tasks nobody saw end.
    pub fn open(&self) -> usize {
        self.shared.open.load(Ordering::Relaxed)
    }

    pub fn acknowledged(&self) -> usize {
        self.shared.ledger().acknowledged.len()
    }

    /// Lets everybody finish the message they are at, and gives what they know.
    pub fn finish(self) -> Ledger {
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
    /// Its tasks that were not seen to end, the oldest first.
    open: VecDeque<String>,
}

impl Client {
    fn work(mut self) {
        while !self.shared.is_over() {
            let number = self.shared.next_number.fetch_add(1, Ordering::Relaxed);
            self.send(number);
            if self.open.len() >= self.shared.most_open {
                self.look_after_the_oldest();
            }
        }
    }

    fn server(&mut self) -> Caller {
        self.random.pick(&self.shared.servers).clone()
    }

    /// Sends a job until it is taken. Some go into the conversation of the one before, which may still be under way.
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
        let Some(mut task) = self.send_until_taken(&message) else {
            return;
        };
        // As a client does whose connection broke after all.
        if self.random.chance(10)
            && let Some(again) = self.send_until_taken(&message)
        {
            if first_attempt(&again) != first_attempt(&task) {
                self.shared.ledger().other_tasks.push(number);
            }
            // If nothing ran, the repeated message opened another attempt.
            task = again;
        }
        let mut ledger = self.shared.ledger();
        ledger.acknowledged.insert(number, task.clone());
        drop(ledger);
        self.open.push_back(task);
        self.shared.open.fetch_add(1, Ordering::Relaxed);
    }

    fn send_until_taken(&mut self, message: &Value) -> Option<String> {
        loop {
            let sent = self
                .server()
                .rpc("SendMessage", message.clone(), LONGEST_REQUEST);
            match sent {
                Ok(result) => {
                    let id = result["task"]["id"].as_str();
                    return Some(id.unwrap_or_else(|| panic!("no task: {result}")).to_owned());
                }
                Err(Unanswered::Broken) => {
                    thread::sleep(self.random.within(Duration::from_millis(20)))
                }
                // Too much is at work, the server stops, or its database is away.
                Err(Unanswered::Refused(-32000 | -32603 | 429 | 503, _)) => {
                    thread::sleep(self.random.within(Duration::from_millis(200)));
                }
                Err(Unanswered::Refused(_, words)) => {
                    self.shared.ledger().refusals.push(words);
                    return None;
                }
            }
        }
    }

    /// Asks for its oldest task until that has ended or waits for a person.
    fn look_after_the_oldest(&mut self) {
        let Some(oldest) = self.open.pop_front() else {
            return;
        };
        self.shared.open.fetch_sub(1, Ordering::Relaxed);
        let give_up = Instant::now() + PATIENCE;
        while Instant::now() < give_up && !self.shared.is_over() {
            match self.server().task(&oldest) {
                Some(task) if is_over(&task) || state(&task) == "AUTH_REQUIRED" => return,
                _ => thread::sleep(Duration::from_millis(20)),
            }
        }
    }
}
