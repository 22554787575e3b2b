//! Concurrent payments of replicas over one PostgreSQL, killed at random moments, and checked against the chain.

use super::chain::{Chain, Transfer};
use super::common::random::Random;
use super::replica::{Job, MAX_CONCURRENT, RaceConfig, ReplicaProcess, Report, is_end};
use super::wallet::KnownKey;
use lango_core::{Payment, PaymentQuery, PaymentState, TotalsQuery};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

const REPLICAS: usize = 3;

/// The parameters of a race.
pub(crate) struct Race {
    pub payments: u64,
    pub kills: u64,
    /// The guard to remove: `limits` or `keys`.
    pub removed_guard: Option<&'static str>,
    /// The number of the wallet.
    pub wallet: u8,
}

/// The counts of a race.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub reports: BTreeMap<String, u64>,
    pub kills: u64,
    pub retried: u64,
    pub abandoned: u64,
    /// Jobs that two replicas got at the same time.
    pub duplicated: u64,
}

/// Runs a race and returns the violations. There are none if all guards work.
pub(crate) fn run(
    race: &Race,
    chain: &Chain,
    database: String,
    random: &mut Random,
) -> Vec<String> {
    let key = KnownKey::funded(race.wallet, chain);
    let jobs = jobs(race.payments, random);
    let requested: u64 = jobs.iter().map(|job| job.units).sum();
    let config = RaceConfig {
        database,
        rpc: chain.url(),
        key: key.0.clone(),
        // Less than requested, so that payments reach the limits.
        day: requested * 6 / 10,
        recipient: requested / 55,
        purpose: requested / 11,
        removed_guard: race.removed_guard.map(str::to_owned),
    };
    let started = Instant::now();
    let counts = Runner::new(&config, race, random).run(jobs);
    let elapsed = started.elapsed();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (payments, next) = runtime.block_on(settle(&config, &key, chain));
    let transfers = chain.transfers(&key.address());
    report(&config, &counts, &payments, &transfers, elapsed);
    let mut violations = check(&config, &payments, &transfers);
    let mined = chain.transactions(&key.address());
    if mined != next {
        violations.push(format!(
            "the wallet has {mined} transactions, but the ledger has assigned {next} nonces"
        ));
    }
    violations
}

/// Returns payments of random amounts to random recipients.
fn jobs(count: u64, random: &mut Random) -> VecDeque<Job> {
    let job = |number| Job {
        number,
        units: 1 + random.below(1000),
        recipient: random.below(40),
        attempt: 0,
    };
    (0..count).map(job).collect()
}

struct Runner<'a> {
    config: &'a RaceConfig,
    random: &'a mut Random,
    replicas: Vec<ReplicaProcess>,
    started: usize,
    sender: Sender<(usize, Report)>,
    reports: Receiver<(usize, Report)>,
    /// Average number of jobs between two kills.
    per_kill: u64,
    counts: Counts,
}

impl<'a> Runner<'a> {
    fn new(config: &'a RaceConfig, race: &Race, random: &'a mut Random) -> Self {
        let (sender, reports) = channel();
        Self {
            config,
            random,
            replicas: Vec::new(),
            started: 0,
            sender,
            reports,
            per_kill: race.payments / (race.kills + 1),
            counts: Counts::default(),
        }
    }

    fn start_replica(&mut self) {
        self.started += 1;
        let replica = ReplicaProcess::start(self.config, self.started, &self.sender);
        self.replicas.push(replica);
    }

    fn run(mut self, mut queue: VecDeque<Job>) -> Counts {
        for _ in 0..REPLICAS {
            self.start_replica();
        }
        let (mut done, mut until_kill) = (BTreeSet::new(), self.random.below(self.per_kill) + 1);
        let total = queue.len();
        while done.len() < total {
            self.assign_jobs(&mut queue);
            let (id, report) = match self.reports.recv_timeout(Duration::from_secs(120)) {
                Ok(received) => received,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!(
                        "no replica sends a report; {} of {total} jobs are done",
                        done.len()
                    )
                }
            };
            // The jobs of a killed replica have already been reassigned.
            let Some(replica) = self.replicas.iter_mut().find(|replica| replica.id == id) else {
                continue;
            };
            let at = replica
                .jobs
                .iter()
                .position(|job| job.number == report.number);
            let Some(job) = at.map(|at| replica.jobs.swap_remove(at)) else {
                continue;
            };
            if is_end(&report) {
                *self.counts.reports.entry(report.outcome).or_default() += 1;
                done.insert(report.number);
            } else {
                *self
                    .counts
                    .reports
                    .entry(shortened(&report.outcome))
                    .or_default() += 1;
                self.retry(&mut queue, job);
            }
            until_kill -= 1;
            if until_kill == 0 {
                until_kill = self.random.below(self.per_kill.max(2) * 2) + 1;
                self.kill_one(&mut queue, &mut done);
            }
        }
        for replica in std::mem::take(&mut self.replicas) {
            replica.kill();
        }
        self.counts
    }

    fn assign_jobs(&mut self, queue: &mut VecDeque<Job>) {
        let duplicate_percent = if self.config.removed_guard.is_some() {
            30
        } else {
            5
        };
        for at in 0..self.replicas.len() {
            while self.replicas[at].jobs.len() < MAX_CONCURRENT {
                let Some(job) = queue.pop_front() else {
                    return;
                };
                self.replicas[at].assign(job);
                // Sometimes another replica gets the same payment at the same time.
                let other = (at + 1) % self.replicas.len();
                if job.attempt == 0 && self.random.chance(duplicate_percent) {
                    self.counts.duplicated += 1;
                    let duplicate = Job { attempt: 1, ..job };
                    self.replicas[other].assign(duplicate);
                }
            }
        }
    }

    /// Queues a job again that may or may not have been paid.
    fn retry(&mut self, queue: &mut VecDeque<Job>, job: Job) {
        self.counts.retried += 1;
        queue.push_back(Job {
            attempt: job.attempt + 2,
            ..job
        });
    }

    fn kill_one(&mut self, queue: &mut VecDeque<Job>, done: &mut BTreeSet<u64>) {
        let at = usize::try_from(self.random.below(self.replicas.len() as u64)).expect("an index");
        // Kill at any moment of the running payments, not only right after a report.
        std::thread::sleep(self.random.within(Duration::from_millis(60)));
        let jobs = self.replicas.swap_remove(at).kill();
        self.counts.kills += 1;
        for job in jobs {
            // Some jobs are not retried, so that reconciling has to find out what happened.
            if self.random.chance(30) && job.attempt == 0 {
                self.counts.abandoned += 1;
                done.insert(job.number);
            } else {
                self.retry(queue, job);
            }
        }
        self.start_replica();
    }
}

/// Reconciles until no payment is open. Returns the ledger and the next account nonce.
async fn settle(config: &RaceConfig, key: &KnownKey, chain: &Chain) -> (Vec<Payment>, u64) {
    let payments = config.payments();
    let store = config.store();
    for round in 0..20 {
        let result = payments.reconcile().await.expect("the chain answers");
        if round == 0 {
            println!(
                "  reconciled after the race: {} settled, {} failed, {} open",
                result.settled, result.failed, result.open
            );
        }
        if result.open == 0 {
            break;
        }
        // A payment that a killed replica reserved but did not sign fails once it has expired.
        if round > 2 {
            chain.advance_time(700);
        }
    }
    let all = store.payments(PaymentQuery::Newest(key.account()), 1_000_000);
    let query = TotalsQuery {
        account: key.account(),
        day: 0,
        recipient: "".into(),
        purpose: "".into(),
    };
    let status = store.payment_account(query).await.expect("a database");
    (all.await.expect("a database"), status.next_nonce)
}

fn report(
    config: &RaceConfig,
    counts: &Counts,
    payments: &[Payment],
    on_chain: &[Transfer],
    elapsed: Duration,
) {
    println!(
        "  {:.1} s, {} kills, {} retried, {} abandoned, {} sent to two replicas; reports: {:?}",
        elapsed.as_secs_f64(),
        counts.kills,
        counts.retried,
        counts.abandoned,
        counts.duplicated,
        counts.reports
    );
    let count = |state| {
        let in_state = payments.iter().filter(|payment| payment.state == state);
        in_state.count()
    };
    let paid: u64 = on_chain.iter().map(|transfer| transfer.amount).sum();
    println!(
        "  ledger: {} settled, {} failed; chain: {} transfers, {paid} of at most {} units",
        count(PaymentState::Settled),
        count(PaymentState::Failed),
        on_chain.len(),
        config.day
    );
}

/// Compares the ledger with the chain, and both with the limits. Returns the violations.
fn check(config: &RaceConfig, payments: &[Payment], on_chain: &[Transfer]) -> Vec<String> {
    let mut violations = Vec::new();
    let open = payments.iter().filter(|payment| payment.state.is_open());
    for payment in open {
        violations.push(format!(
            "{} is still {}",
            payment.session,
            payment.state.name()
        ));
    }
    let settled = payments
        .iter()
        .filter(|payment| payment.state == PaymentState::Settled);
    let mut ledger: Vec<Transfer> = settled
        .clone()
        .map(|payment| Transfer {
            id: payment.id.to_string(),
            recipient: payment.recipient.to_string(),
            amount: payment.amount,
        })
        .collect();
    let mut chain = on_chain.to_vec();
    ledger.sort();
    chain.sort();
    if ledger != chain {
        violations.push("the ledger and the chain differ".to_owned());
    }
    let mut by_job: BTreeMap<&str, u64> = BTreeMap::new();
    for payment in settled {
        *by_job.entry(payment.session.as_str()).or_default() += 1;
    }
    let twice = by_job.values().filter(|count| **count > 1).count();
    if twice > 0 {
        violations.push(format!("{twice} jobs were paid more than once"));
    }
    // For each day of the ledger, because a race may cross midnight.
    let days: BTreeSet<u64> = payments.iter().map(|payment| payment.day).collect();
    for day in days {
        let of_day = payments.iter().filter(|payment| payment.day == day);
        let paid: BTreeMap<&str, &Transfer> = on_chain
            .iter()
            .map(|transfer| (transfer.id.as_str(), transfer))
            .collect();
        let paid = of_day.filter_map(|payment| Some((payment, *paid.get(&*payment.id)?)));
        let (mut total, mut recipients, mut purposes) = (0, BTreeMap::new(), BTreeMap::new());
        for (payment, transfer) in paid {
            total += transfer.amount;
            *recipients.entry(&transfer.recipient).or_default() += transfer.amount;
            *purposes.entry(&payment.purpose).or_default() += transfer.amount;
        }
        let max = |sum: Option<&u64>| sum.copied().unwrap_or(0);
        let max_recipient = max(recipients.values().max());
        let max_purpose = max(purposes.values().max());
        println!(
            "  paid in a day: {total} of {}; at most {max_recipient} of {} to one recipient, {max_purpose} of {} for one purpose",
            config.day, config.recipient, config.purpose
        );
        let rows = [
            ("a day", total, config.day),
            ("a recipient", max_recipient, config.recipient),
            ("a purpose", max_purpose, config.purpose),
        ];
        for (name, paid, limit) in rows {
            if paid > limit {
                violations.push(format!(
                    "the limit for {name} was exceeded by {}",
                    paid - limit
                ));
            }
        }
    }
    violations
}

fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}
