//! `kill -9` of `lango serve` at random moments: `cargo bench -p lango-cli --bench kill -- 1000`.
//!
//! Clients send jobs while the server is killed and started again, a person answers what is asked, and at the end the oracle
//! says what was lost or done twice. Ends with 1 unless nothing was.

#![allow(clippy::unwrap_used, reason = "in a harness, a panic is the report")]

#[allow(dead_code, reason = "the other harnesses use the rest")]
mod common;

use common::caller::Caller;
use common::client::Clients;
use common::evidence::{Evidence, Log};
use common::oracle::judge;
use common::person::Person;
use common::place::Place;
use common::planted::{plant_what_is_wanted, unseen};
use common::random::Random;
use common::script::ScriptedProvider;
use common::serving::{Said, Serving, free_port};
use common::settling::settle;
use lango_store::Store;
use rusqlite::Connection;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const CLIENTS: u64 = 8;

/// The longest that a server lives after it serves.
const LIFE: Duration = Duration::from_millis(300);

/// How long a start may take on a busy machine, and how long everything may take to settle.
const START: Duration = Duration::from_secs(30);
const SETTLE: Duration = Duration::from_secs(120);

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let kills = arguments.find_map(|argument| argument.parse().ok());
    let kills: u64 = kills.unwrap_or(20);
    let seed = Random::seed();
    println!("kill: {kills} kills, {CLIENTS} clients, seed {seed}");
    let began = Instant::now();
    let mut random = Random::new(seed);
    let provider = ScriptedProvider::start(Duration::ZERO, Duration::from_millis(10));
    let place = Place::new(provider.url(), "");
    let mut evidence = run(&place, kills, &mut random);
    plant_what_is_wanted(&mut evidence);
    let verdict = judge(&evidence);
    println!(
        "kills             {kills} in {} s",
        began.elapsed().as_secs()
    );
    println!("answers killed    {}", evidence.answers.kills);
    verdict.print();
    let unseen = unseen(&evidence);
    println!("planted, unseen   {} {unseen:?}", unseen.len());
    match verdict.is_good() && unseen.is_empty() {
        true => ExitCode::SUCCESS,
        false => {
            println!("everything is kept in {}", place.keep().display());
            ExitCode::FAILURE
        }
    }
}

fn run(place: &Place, kills: u64, random: &mut Random) -> Evidence {
    let (said, home, port) = (Said::default(), place.home(), free_port(random));
    let start = || Serving::start(place, &home, port, &said);
    let mut server = start();
    let caller = Caller::new(place, &home, port);
    let clients = Clients::start(CLIENTS, 3, vec![caller.clone()], random);
    let person = Person::new(Random::new(random.next()), 20);
    let is_over = AtomicBool::new(false);
    let person = thread::scope(|scope| {
        let person = scope.spawn(|| person.work(place, &is_over));
        for kill in 0..kills {
            // Every fifth dies while it starts.
            match random.chance(20) {
                true => thread::sleep(random.within(Duration::from_millis(60))),
                false => {
                    server.is_ready_within(START);
                    thread::sleep(random.within(LIFE));
                }
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
        person.join().unwrap()
    });
    let ledger = clients.finish();
    server.kill();
    server = start();
    assert!(server.is_ready_within(START), "{:?}", said.last());
    let mut person = person.calmly();
    settle(
        place,
        std::slice::from_ref(&caller),
        &ledger,
        &mut person,
        SETTLE,
    );
    server.end(START);
    // What is told after one more start is what is stored.
    server = start();
    assert!(server.is_ready_within(START), "{:?}", said.last());
    let tasks = settle(place, &[caller], &ledger, &mut person, Duration::ZERO);
    server.end(START);
    Evidence {
        ledger,
        tasks,
        effects: place.effects(),
        written: place.written(),
        answers: person.answers,
        log: read_log(place),
        authors: place.authors(),
        crashes: said.crashes(),
    }
}

fn read_log(place: &Place) -> Log {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let store = Store::open_sqlite(place.database(), "lango-orchestrator".into()).unwrap();
    let mut log = runtime.block_on(Log::read(&store)).verified_by(place);
    let database = Connection::open(place.database()).unwrap();
    let found: String = database
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    if found != "ok" {
        log.damage.push(found);
    }
    log
}
