//! Kills `lango serve` with SIGKILL at random moments: `cargo bench -p lango-cli --bench kill -- 1000`.
//!
//! Clients send jobs while the server is killed and restarted, and a simulated user answers approval requests. At the
//! end the oracle reports what was lost or done twice. Exits with 1 if anything was.

#![allow(clippy::unwrap_used, reason = "in a harness, a panic is the report")]

#[allow(dead_code, reason = "the other harnesses use the rest")]
mod common;

use common::client::Clients;
use common::evidence::{Evidence, Log};
use common::oracle::check_evidence;
use common::planted_faults::{plant_requested_fault, undetected_faults};
use common::random::Random;
use common::rpc_client::RpcClient;
use common::script::ScriptedProvider;
use common::server_process::{ServerLog, ServerProcess, free_port};
use common::settling::settle;
use common::simulated_user::SimulatedUser;
use common::test_env::TestEnv;
use lango_store::Store;
use rusqlite::Connection;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const CLIENTS: u64 = 8;

/// Maximum time that a server runs once it is ready.
const MAX_UPTIME: Duration = Duration::from_millis(300);

/// How long a start may take on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// How long all tasks may take to end.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(120);

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let kills = arguments.find_map(|argument| argument.parse().ok());
    let kills: u64 = kills.unwrap_or(20);
    let seed = Random::seed();
    println!("kill: {kills} kills, {CLIENTS} clients, seed {seed}");
    let started = Instant::now();
    let mut random = Random::new(seed);
    let provider = ScriptedProvider::start(Duration::ZERO, Duration::from_millis(10));
    let test_env = TestEnv::new(provider.url(), "");
    let mut evidence = run(&test_env, kills, &mut random);
    plant_requested_fault(&mut evidence);
    let report = check_evidence(&evidence);
    println!(
        "kills             {kills} in {} s",
        started.elapsed().as_secs()
    );
    println!("answers killed    {}", evidence.answers.kills);
    report.print();
    let undetected = undetected_faults(&evidence);
    println!("undetected faults {} {undetected:?}", undetected.len());
    if report.is_good() && undetected.is_empty() {
        ExitCode::SUCCESS
    } else {
        println!("the files of this run are in {}", test_env.keep().display());
        ExitCode::FAILURE
    }
}

fn run(test_env: &TestEnv, kills: u64, random: &mut Random) -> Evidence {
    let (server_log, home, port) = (ServerLog::default(), test_env.home(), free_port(random));
    let start = || ServerProcess::start(test_env, &home, port, &server_log);
    let mut server = start();
    let rpc_client = RpcClient::new(test_env, &home, port);
    let clients = Clients::start(CLIENTS, 3, vec![rpc_client.clone()], random);
    let user = SimulatedUser::new(Random::new(random.next()), 20);
    let is_over = AtomicBool::new(false);
    let user = thread::scope(|scope| {
        let user = scope.spawn(|| user.work(test_env, &is_over));
        for kill in 0..kills {
            // One in five is killed while it starts.
            if random.chance(20) {
                thread::sleep(random.within(Duration::from_millis(60)));
            } else {
                server.is_ready_within(START_TIMEOUT);
                thread::sleep(random.within(MAX_UPTIME));
            }
            server.kill();
            server = start();
            if (kill + 1) % 100 == 0 {
                println!(
                    "    {} kills, {} acknowledged",
                    kill + 1,
                    clients.acknowledged()
                );
            }
        }
        is_over.store(true, Ordering::Relaxed);
        user.join().unwrap()
    });
    let ledger = clients.finish();
    server.kill();
    server = start();
    assert!(
        server.is_ready_within(START_TIMEOUT),
        "{:?}",
        server_log.last()
    );
    let mut user = user.without_kills();
    settle(
        test_env,
        std::slice::from_ref(&rpc_client),
        &ledger,
        &mut user,
        SETTLE_TIMEOUT,
    );
    server.end(START_TIMEOUT);
    // Restart once more, so that the tasks come from the store and not from memory.
    server = start();
    assert!(
        server.is_ready_within(START_TIMEOUT),
        "{:?}",
        server_log.last()
    );
    let tasks = settle(test_env, &[rpc_client], &ledger, &mut user, Duration::ZERO);
    server.end(START_TIMEOUT);
    Evidence {
        ledger,
        tasks,
        effects: test_env.effects(),
        written: test_env.written(),
        answers: user.answers,
        log: read_log(test_env),
        authors: test_env.authors(),
        crashes: server_log.crashes(),
    }
}

fn read_log(test_env: &TestEnv) -> Log {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let store = Store::open_sqlite(test_env.database(), "lango-orchestrator".into()).unwrap();
    let mut log = runtime.block_on(Log::read(&store)).verify_with(test_env);
    let database = Connection::open(test_env.database()).unwrap();
    let found: String = database
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    if found != "ok" {
        log.damage.push(found);
    }
    log
}
