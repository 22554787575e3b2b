//! Three copies of `lango serve` over one PostgreSQL, and faults: `cargo bench -p lango-cli --bench cluster -- 100`.
//!
//! Two hundred sessions have turns under way with a slow model while copies are killed or stopped for longer than their
//! lease, the database is stopped in the middle and started again, and connections are cut. Clients talk to any copy. At
//! the end the oracle says what was lost or done twice, and how long a session stood still after its lease had lapsed.
//! Ends with 1 unless nothing was lost or done twice and every take-over was in time.

#![allow(clippy::unwrap_used, reason = "in a harness, a panic is the report")]

#[path = "../common/mod.rs"]
#[allow(dead_code, reason = "the other harnesses use the rest")]
mod common;
mod copies;
mod faults;
mod takeover;

use common::client::Clients;
use common::evidence::{Evidence, Log};
use common::oracle::judge;
use common::person::Person;
use common::place::Place;
use common::planted::{plant_what_is_wanted, unseen};
use common::random::Random;
use common::script::ScriptedProvider;
use common::settling::settle;
use copies::Copies;
use faults::Faults;
use lango_store::Store;
use lango_testkit::postgres::Cluster;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use takeover::{IN_TIME, Lapses, TakeOvers};

/// How long everything may take to settle.
const SETTLE: Duration = Duration::from_secs(180);

/// How much is under way, and how slowly.
struct Load {
    clients: u64,
    open_per_client: usize,
    /// How long a reply of the model takes.
    reply: [Duration; 2],
    /// How long a copy that is not heard of keeps a session.
    lease: Duration,
}

impl Load {
    /// A few faults are over soon, with fewer sessions and a quicker model.
    fn of(faults: usize) -> Self {
        let milliseconds = |[least, most]: [u64; 2]| [least, most].map(Duration::from_millis);
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
        "cluster: {faults} faults, 3 copies, {} sessions at work, a lease of {} s, seed {seed}",
        load.sessions(),
        load.lease.as_secs()
    );
    let began = Instant::now();
    let mut random = Random::new(seed);
    let provider = ScriptedProvider::start(load.reply[0], load.reply[1]);
    let database = Cluster::start(&["fsync=on"]);
    let more = format!(
        "[session]\nstore = '{}'\nlease = '{}s'\n",
        database.address(),
        load.lease.as_secs()
    );
    let place = Place::new(provider.url(), &more);
    let (mut evidence, done, take_overs) = run(&place, database, faults, &load, &mut random);
    plant_what_is_wanted(&mut evidence);
    let verdict = judge(&evidence);
    println!(
        "faults            {done} in {} s",
        began.elapsed().as_secs()
    );
    println!("answers killed    {}", evidence.answers.kills);
    verdict.print();
    take_overs.print();
    let unseen = unseen(&evidence);
    println!("planted, unseen   {} {unseen:?}", unseen.len());
    match verdict.is_good() && unseen.is_empty() && take_overs.are_in_time() {
        true => ExitCode::SUCCESS,
        false => {
            println!("the workspace is kept in {}", place.keep().display());
            ExitCode::FAILURE
        }
    }
}

fn run(
    place: &Place,
    database: Cluster,
    count: usize,
    load: &Load,
    random: &mut Random,
) -> (Evidence, String, TakeOvers) {
    let copies = Copies::start(place, random);
    let callers = copies.callers();
    let address = database.address();
    let clients = Clients::start(load.clients, load.open_per_client, callers.clone(), random);
    let person = Person::new(Random::new(random.next()), 20);
    let is_over = AtomicBool::new(false);
    let mut faults = Faults::new(copies, database, load.lease, Random::new(random.next()));
    let (person, lapses) = thread::scope(|scope| {
        let person = scope.spawn(|| person.work(place, &is_over));
        let lapses = scope.spawn(|| Lapses::watch(&address, &is_over));
        // So that there is something to break.
        while clients.open() < load.sessions() / 2 {
            thread::sleep(Duration::from_millis(100));
        }
        for fault in 0..count {
            faults.cause_one(place);
            if (fault + 1) % 10 == 0 {
                println!(
                    "    {} faults, {} acknowledged",
                    fault + 1,
                    clients.acknowledged()
                );
            }
        }
        // What the last one left behind is taken over while it is still watched.
        thread::sleep(load.lease + IN_TIME);
        is_over.store(true, Ordering::Relaxed);
        (person.join().unwrap(), lapses.join().unwrap())
    });
    let ledger = clients.finish();
    let (mut copies, database, history, done) = faults.finish(place);
    let mut person = person.calmly();
    settle(place, &callers, &ledger, &mut person, SETTLE);
    copies.restart_in_order(place);
    let tasks = settle(place, &callers, &ledger, &mut person, Duration::ZERO);
    let crashes = copies.end();
    let log = read_log(place, &database.address());
    let take_overs = TakeOvers::of(&lapses, &history, &log);
    let evidence = Evidence {
        ledger,
        tasks,
        effects: place.effects(),
        written: place.written(),
        answers: person.answers,
        log,
        authors: place.authors(),
        crashes,
    };
    (evidence, done, take_overs)
}

fn read_log(place: &Place, address: &str) -> Log {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let log = runtime.block_on(async {
        let store = Store::at(address, "lango-orchestrator".into()).unwrap();
        Log::read(&store).await
    });
    log.verified_by(place)
}
