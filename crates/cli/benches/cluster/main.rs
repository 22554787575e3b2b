//! Three replicas of `lango serve` over one PostgreSQL, with faults: `cargo bench -p lango-cli --bench cluster -- 100`.
//!
//! Two hundred sessions have running turns with a slow model. Meanwhile replicas are killed or suspended for longer
//! than their lease, the database is stopped immediately and restarted, and connections are terminated. Clients use any
//! replica. At the end the oracle reports what was lost or done twice, and how long sessions were idle after their
//! lease had expired. Exits with 1 if anything was lost or done twice, or a take-over was too late.

#![allow(clippy::unwrap_used, reason = "in a harness, a panic is the report")]

#[path = "../common/mod.rs"]
#[allow(dead_code, reason = "the other harnesses use the rest")]
mod common;
mod faults;
mod replicas;
mod takeover;

use common::client::Clients;
use common::evidence::{Evidence, Log};
use common::oracle::check_evidence;
use common::planted_faults::{plant_requested_fault, undetected_faults};
use common::random::Random;
use common::script::ScriptedProvider;
use common::settling::settle;
use common::simulated_user::SimulatedUser;
use common::test_env::TestEnv;
use faults::Faults;
use lango_store::Store;
use lango_testkit::postgres::Cluster;
use replicas::Replicas;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use takeover::{ExpiredLeases, TAKEOVER_LIMIT, TakeOvers};

/// How long all tasks may take to end.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(180);

/// The load of a run.
struct Load {
    clients: u64,
    open_per_client: usize,
    /// Minimum and maximum time of a model reply.
    reply: [Duration; 2],
    /// `session.lease` of the replicas.
    lease: Duration,
}

impl Load {
    /// Returns the load for a number of faults. A short run has fewer sessions and a faster model.
    fn of(faults: usize) -> Self {
        let milliseconds = |[min, max]: [u64; 2]| [min, max].map(Duration::from_millis);
        match faults {
            0..20 => Self {
                clients: 12,
                open_per_client: 4,
                reply: milliseconds([200, 800]),
                lease: Duration::from_secs(2),
            },
            _ => Self {
                clients: 25,
                open_per_client: 8,
                reply: milliseconds([1000, 3000]),
                lease: Duration::from_secs(3),
            },
        }
    }

    fn sessions(&self) -> usize {
        usize::try_from(self.clients).unwrap() * self.open_per_client
    }
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let faults = arguments.find_map(|argument| argument.parse().ok());
    let faults: usize = faults.unwrap_or(6);
    let seed = Random::seed();
    let load = Load::of(faults);
    println!(
        "cluster: {faults} faults, 3 replicas, {} active sessions, a lease of {} s, seed {seed}",
        load.sessions(),
        load.lease.as_secs()
    );
    let started = Instant::now();
    let mut random = Random::new(seed);
    let provider = ScriptedProvider::start(load.reply[0], load.reply[1]);
    let database = Cluster::start(&["fsync=on"]);
    let more = format!(
        "[session]\nstore = '{}'\nlease = '{}s'\n",
        database.address(),
        load.lease.as_secs()
    );
    let test_env = TestEnv::new(provider.url(), &more);
    let (mut evidence, done, take_overs) = run(&test_env, database, faults, &load, &mut random);
    plant_requested_fault(&mut evidence);
    let report = check_evidence(&evidence);
    println!(
        "faults            {done} in {} s",
        started.elapsed().as_secs()
    );
    println!("answers killed    {}", evidence.answers.kills);
    report.print();
    take_overs.print();
    let undetected = undetected_faults(&evidence);
    println!("undetected faults {} {undetected:?}", undetected.len());
    if report.is_good() && undetected.is_empty() && take_overs.are_in_time() {
        ExitCode::SUCCESS
    } else {
        println!("the files of this run are in {}", test_env.keep().display());
        ExitCode::FAILURE
    }
}

fn run(
    test_env: &TestEnv,
    database: Cluster,
    count: usize,
    load: &Load,
    random: &mut Random,
) -> (Evidence, String, TakeOvers) {
    let replicas = Replicas::start(test_env, random);
    let rpc_clients = replicas.rpc_clients();
    let address = database.address();
    let clients = Clients::start(
        load.clients,
        load.open_per_client,
        rpc_clients.clone(),
        random,
    );
    let user = SimulatedUser::new(Random::new(random.next()), 20);
    let is_over = AtomicBool::new(false);
    let mut faults = Faults::new(replicas, database, load.lease, Random::new(random.next()));
    let (user, expired) = thread::scope(|scope| {
        let user = scope.spawn(|| user.work(test_env, &is_over));
        let expired = scope.spawn(|| ExpiredLeases::watch(&address, &is_over));
        // Wait for running turns, so that the faults interrupt some.
        while clients.open() < load.sessions() / 2 {
            thread::sleep(Duration::from_millis(100));
        }
        for fault in 0..count {
            faults.cause_one(test_env);
            if (fault + 1) % 10 == 0 {
                println!(
                    "    {} faults, {} acknowledged",
                    fault + 1,
                    clients.acknowledged()
                );
            }
        }
        // Keep watching until the sessions of the last fault have been taken over.
        thread::sleep(load.lease + TAKEOVER_LIMIT);
        is_over.store(true, Ordering::Relaxed);
        (user.join().unwrap(), expired.join().unwrap())
    });
    let ledger = clients.finish();
    let (mut replicas, database, history, done) = faults.finish(test_env);
    let mut user = user.without_kills();
    settle(test_env, &rpc_clients, &ledger, &mut user, SETTLE_TIMEOUT);
    replicas.restart_all(test_env);
    let tasks = settle(test_env, &rpc_clients, &ledger, &mut user, Duration::ZERO);
    let crashes = replicas.end();
    let log = read_log(test_env, &database.address());
    let take_overs = TakeOvers::of(&expired, &history, &log);
    let evidence = Evidence {
        ledger,
        tasks,
        effects: test_env.effects(),
        written: test_env.written(),
        answers: user.answers,
        log,
        authors: test_env.authors(),
        crashes,
    };
    (evidence, done, take_overs)
}

fn read_log(test_env: &TestEnv, address: &str) -> Log {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let log = runtime.block_on(async {
        let store = Store::at(address, "lango-orchestrator".into()).unwrap();
        Log::read(&store).await
    });
    log.verify_with(test_env)
}
