//! Racing payments: replicas over one PostgreSQL, killed at random moments, with the chain as the judge.

use super::chain::{Chain, Transfer};
use super::common::random::Random;
use super::replica::{AT_ONCE, Job, Report, Running, World, is_end};
use super::wallet::KnownKey;
use lango_core::{Payment, PaymentQuery, PaymentState, TotalsQuery};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

const REPLICAS: usize = 3;

/// What a race is.
pub struct Race {
    pub payments: u64,
    pub kills: u64,
    /// A guard that is taken away, `limits` or `keys`.
    pub plant: Option<&'static str>,
    /// The number of the wallet.
    pub wallet: u8,
}

/// What was counted in a race.
#[derive(Debug, Default)]
pub struct Counts {
    pub reports: BTreeMap<String, u64>,
    pub kills: u64,
    pub given_again: u64,
    pub abandoned: u64,
    pub twice_at_once: u64,
}

/// Runs a race; returns what is wrong with what it left, which is nothing if all guards hold.
pub fn run(race: &Race, chain: &Chain, database: String, random: &mut Random) -> Vec<String> {
    let key = KnownKey::funded(race.wallet, chain);
    let jobs = jobs(race.payments, random);
    let wanted: u64 = jobs.iter().map(|job| job.units).sum();
    let world = World {
        database,
        rpc: chain.url(),
        key: key.0.clone(),
        // Less than is wanted, so that the limits decide.
        day: wanted * 6 / 10,
        recipient: wanted / 55,
        purpose: wanted / 11,
        plant: race.plant.map(str::to_owned),
    };
    let started = Instant::now();
    let counts = Runner::new(&world, race, random).run(jobs);
    let raced = started.elapsed();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (payments, next) = runtime.block_on(settle(&world, &key, chain));
    let transfers = chain.transfers(&key.address());
    report(&world, &counts, &payments, &transfers, raced);
    let mut wrong = judge(&world, &payments, &transfers);
    let mined = chain.transactions(&key.address());
    if mined != next {
        wrong.push(format!(
            "the wallet has {mined} transactions, and the ledger gave out {next}"
        ));
    }
    wrong
}

/// Payments of many sizes to many recipients.
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
    world: &'a World,
    random: &'a mut Random,
    replicas: Vec<Running>,
    started: usize,
    sender: Sender<(usize, Report)>,
    reports: Receiver<(usize, Report)>,
    /// The jobs done between two kills.
    per_kill: u64,
    counts: Counts,
}

impl<'a> Runner<'a> {
    fn new(world: &'a World, race: &Race, random: &'a mut Random) -> Self {
        let (sender, reports) = channel();
        Self {
            world,
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
        let replica = Running::start(self.world, self.started, &self.sender);
        self.replicas.push(replica);
    }

    fn run(mut self, mut queue: VecDeque<Job>) -> Counts {
        for _ in 0..REPLICAS {
            self.start_replica();
        }
        let (mut done, mut until_kill) = (BTreeSet::new(), self.random.below(self.per_kill) + 1);
        let total = queue.len();
        while done.len() < total {
            self.give_out(&mut queue);
            let (id, report) = match self.reports.recv_timeout(Duration::from_secs(120)) {
                Ok(received) => received,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!(
                        "no replica reports anything; {} of {total} are done",
                        done.len()
                    )
                }
            };
            // What a killed one still said has been given to another already.
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
                self.again(&mut queue, job);
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

    fn give_out(&mut self, queue: &mut VecDeque<Job>) {
        let twins = if self.world.plant.is_some() { 30 } else { 5 };
        for at in 0..self.replicas.len() {
            while self.replicas[at].jobs.len() < AT_ONCE {
                let Some(job) = queue.pop_front() else {
                    return;
                };
                self.replicas[at].give(job);
                // Now and then two replicas are told to make the same payment at the same time.
                let other = (at + 1) % self.replicas.len();
                if job.attempt == 0 && self.random.chance(twins) {
                    self.counts.twice_at_once += 1;
                    let twin = Job { attempt: 1, ..job };
                    self.replicas[other].give(twin);
                }
            }
        }
    }

    /// Puts a job back that may or may not have been paid.
    fn again(&mut self, queue: &mut VecDeque<Job>, job: Job) {
        self.counts.given_again += 1;
        queue.push_back(Job {
            attempt: job.attempt + 2,
            ..job
        });
    }

    fn kill_one(&mut self, queue: &mut VecDeque<Job>, done: &mut BTreeSet<u64>) {
        let at = usize::try_from(self.random.below(self.replicas.len() as u64)).expect("an index");
        // Not just after a report, but at any moment of the payments under way.
        std::thread::sleep(self.random.within(Duration::from_millis(60)));
        let jobs = self.replicas.swap_remove(at).kill();
        self.counts.kills += 1;
        for job in jobs {
            // Nobody asks for some of them again: they are found out by reconciling.
            if self.random.chance(30) && job.attempt == 0 {
                self.counts.abandoned += 1;
                done.insert(job.number);
            } else {
                self.again(queue, job);
            }
        }
        self.start_replica();
    }
}

/// Reconciles until nothing is open; returns the ledger and the next account nonce.
async fn settle(world: &World, key: &KnownKey, chain: &Chain) -> (Vec<Payment>, u64) {
    let payments = world.payments();
    let store = world.store();
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
        // What was reserved by a replica that was killed, and not signed, is free after its time.
        if round > 2 {
            chain.pass(700);
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
    world: &World,
    counts: &Counts,
    payments: &[Payment],
    on_chain: &[Transfer],
    raced: Duration,
) {
    println!(
        "  {:.1} s, {} kills, {} given again, {} abandoned, {} given to two at once; reports: {:?}",
        raced.as_secs_f64(),
        counts.kills,
        counts.given_again,
        counts.abandoned,
        counts.twice_at_once,
        counts.reports
    );
    let count = |state| payments.iter().filter(|one| one.state == state).count();
    let paid: u64 = on_chain.iter().map(|transfer| transfer.amount).sum();
    println!(
        "  ledger: {} settled, {} failed; chain: {} transfers, {paid} of at most {} units",
        count(PaymentState::Settled),
        count(PaymentState::Failed),
        on_chain.len(),
        world.day
    );
}

/// Compares the ledger with the chain, and both with the limits.
fn judge(world: &World, payments: &[Payment], on_chain: &[Transfer]) -> Vec<String> {
    let mut wrong = Vec::new();
    let open = payments.iter().filter(|payment| payment.state.is_open());
    for payment in open {
        wrong.push(format!(
            "{} is still {}",
            payment.session,
            payment.state.name()
        ));
    }
    let settled = payments
        .iter()
        .filter(|one| one.state == PaymentState::Settled);
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
        wrong.push("the ledger and the chain differ".to_owned());
    }
    let mut by_job: BTreeMap<&str, u64> = BTreeMap::new();
    for payment in settled {
        *by_job.entry(payment.session.as_str()).or_default() += 1;
    }
    let twice = by_job.values().filter(|count| **count > 1).count();
    if twice > 0 {
        wrong.push(format!("{twice} jobs were paid more than once"));
    }
    // By the days of the ledger, since a race may cross midnight.
    let days: BTreeSet<u64> = payments.iter().map(|payment| payment.day).collect();
    for day in days {
        let of_day = payments.iter().filter(|payment| payment.day == day);
        let paid: BTreeMap<&str, &Transfer> =
            on_chain.iter().map(|one| (one.id.as_str(), one)).collect();
        let paid = of_day.filter_map(|payment| Some((payment, *paid.get(&*payment.id)?)));
        let (mut total, mut recipients, mut purposes) = (0, BTreeMap::new(), BTreeMap::new());
        for (payment, transfer) in paid {
            total += transfer.amount;
            *recipients.entry(&transfer.recipient).or_default() += transfer.amount;
            *purposes.entry(&payment.purpose).or_default() += transfer.amount;
        }
        let most = |sums: Option<&u64>| sums.copied().unwrap_or(0);
        let most_recipient = most(recipients.values().max());
        let most_purpose = most(purposes.values().max());
        println!(
            "  paid in a day: {total} of {}; to one recipient {most_recipient} of {}; for one purpose {most_purpose} of {}",
            world.day, world.recipient, world.purpose
        );
        let rows = [
            ("the day", total, world.day),
            ("a recipient", most_recipient, world.recipient),
            ("a purpose", most_purpose, world.purpose),
        ];
        for (name, paid, limit) in rows {
            if paid > limit {
                wrong.push(format!(
                    "the limit of {name} was exceeded by {}",
                    paid - limit
                ));
            }
        }
    }
    wrong
}

fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}
