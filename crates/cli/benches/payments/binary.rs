//! Payments through the real binary: callers of three servers ask for them, a person allows each with `lango approvals`, and
//! servers and answering processes are killed. The configuration allows every call by a rule, and payments are asked for
//! nevertheless.

use super::chain::Chain;
use super::common::caller::{Caller, is_over};
use super::common::place::Place;
use super::common::random::Random;
use super::common::serving::{Said, Serving, free_port};
use super::wallet::{KnownKey, recipient};
use lango_core::ModelReply;
use lango_testkit::model::{calls, delegate_and_finish, say};
use lango_testkit::postgres;
use lango_testkit::wire_server::{Recorded, WireServer};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

const REPLICAS: usize = 3;

/// How long a start may take on a busy machine.
const START: Duration = Duration::from_secs(60);

/// How long all payments may take, for each of them.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many tasks are under way at once.
const UNDER_WAY: usize = 24;

/// The servers.
struct Replicas {
    said: Said,
    servers: Vec<(PathBuf, u16, Serving)>,
    callers: Vec<Caller>,
}

/// Makes payments; returns what is wrong with what is left.
pub fn run(count: u64, chain: &Chain, random: &mut Random) -> Vec<String> {
    let key = KnownKey::funded(101, chain);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let model = runtime.block_on(WireServer::start(|request| reply(request).into()));
    let model = model.forgetful();
    let place = place(model.url(), chain, &key, count);
    let mut replicas = Replicas::start(&place, random);
    let started = Instant::now();
    let mut wrong = Vec::new();
    let kills = drive(count, &place, &mut replicas, random, &mut wrong);
    let _ = place.json(&["payments", "reconcile", "--json"]);
    println!(
        "  {:.1} s, {kills} processes killed",
        started.elapsed().as_secs_f64()
    );
    wrong.extend(judge(count, chain, &key, &place));
    wrong.extend(replicas.said.crashes());
    wrong
}

/// The orchestrator gives each job to the vault agent, who pays once and says what the tool said.
fn reply(request: &Recorded) -> ModelReply {
    let functions = request.functions();
    let can = |name: &str| functions.iter().any(|function| function == name);
    let messages = request.body["messages"].as_array().unwrap();
    let text = |message: &Value| message["content"].as_str().map(str::to_owned);
    let of_user = messages.iter().rev().filter(|one| one["role"] == "user");
    let number = of_user.filter_map(text).find_map(|text| job_in(&text));
    let number = number.unwrap_or_default();
    let result = messages.iter().rev().find(|one| one["role"] == "tool");
    match result.and_then(text) {
        Some(result) => say(&format!("job-{number}: {result}")),
        None if can("delegate") => delegate_and_finish("vault", &format!("pay for job-{number}.")),
        None => {
            let arguments = json!({
                "amount": amount(number),
                "recipient": recipient(number),
                "purpose": format!("job-{number}"),
            });
            calls([("payment_send", arguments)])
        }
    }
}

fn job_in(text: &str) -> Option<u64> {
    let (_, after) = text.rsplit_once("job-")?;
    let end = after.find(|c: char| !c.is_ascii_digit());
    after[..end.unwrap_or(after.len())].parse().ok()
}

fn amount(number: u64) -> String {
    format!("0.{:06}", number + 1)
}

/// A home whose configuration allows everything that a rule can allow, with the wallet in its vault.
fn place(model: &str, chain: &Chain, key: &KnownKey, count: u64) -> Place {
    let database = postgres::empty();
    let place = Place::new(
        model,
        &format!(
            "[session]\nstore = '{database}'\nlease = '2s'\n[vault]\nkeyFile = 'vault.key'\n\
             [payment]\nrpcUrl = '{}'\nwallet = 'secret:WALLET_KEY'\nmaxPerDay = '{}'\n\
             maxGasPerTransaction = '0.1 ETH'\n",
            chain.url(),
            (count * (count + 1)).div_ceil(1_000_000) + 1
        ),
    );
    let ran = place
        .lango()
        .args(["secrets", "init", "--key-file", "../home/vault.key"])
        .output();
    let ran = ran.unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let mut import = place
        .lango()
        .args(["payments", "wallet", "import"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = import.stdin.take().unwrap();
    stdin.write_all(key.0.as_bytes()).unwrap();
    drop(stdin);
    assert!(import.wait().unwrap().success());
    place
}

impl Replicas {
    fn start(place: &Place, random: &mut Random) -> Self {
        let mut replicas = Self {
            said: Said::default(),
            servers: Vec::new(),
            callers: Vec::new(),
        };
        for number in 0..REPLICAS {
            let home = match number {
                0 => place.home(),
                _ => place.home().with_file_name(format!("home-{number}")),
            };
            if number > 0 {
                fs::create_dir_all(&home).unwrap();
                for file in ["lango.toml", "server-token", "vault.key"] {
                    fs::copy(place.home().join(file), home.join(file)).unwrap();
                }
            }
            let port = free_port(random);
            let server = Serving::start(place, &home, port, &replicas.said);
            assert!(server.is_ready_within(START), "{:?}", replicas.said.last());
            replicas.callers.push(Caller::new(place, &home, port));
            replicas.servers.push((home, port, server));
        }
        replicas
    }

    fn kill_one(&mut self, place: &Place, random: &mut Random) {
        let at = usize::try_from(random.below(REPLICAS as u64)).unwrap();
        let (home, port, server) = &mut self.servers[at];
        server.kill();
        *server = Serving::start(place, home, *port, &self.said);
        assert!(server.is_ready_within(START), "{:?}", self.said.last());
    }

    fn caller(&self, random: &mut Random) -> &Caller {
        random.pick(&self.callers)
    }
}

/// Sends tasks, answers what is asked, and kills processes until all tasks are over; returns how many were killed.
fn drive(
    count: u64,
    place: &Place,
    replicas: &mut Replicas,
    random: &mut Random,
    wrong: &mut Vec<String>,
) -> u64 {
    let give_up = Instant::now() + START + PATIENCE * u32::try_from(count).unwrap();
    let mut tasks: BTreeMap<u64, String> = BTreeMap::new();
    let (mut next, mut kills, mut rounds) = (0, 0, 0);
    while next < count || !tasks.is_empty() {
        if Instant::now() > give_up {
            wrong.push(format!("{} tasks never ended", tasks.len()));
            break;
        }
        while next < count && tasks.len() < UNDER_WAY {
            let message = json!({
                "message": {
                    "messageId": format!("m-{next}"),
                    "role": "ROLE_USER",
                    "parts": [{ "text": format!("please pay for job-{next}.") }],
                },
                "configuration": { "returnImmediately": true },
            });
            let sent = replicas.caller(random).rpc("SendMessage", message, START);
            if let Ok(result) = sent
                && let Some(id) = result["task"]["id"].as_str()
            {
                tasks.insert(next, id.to_owned());
                next += 1;
            }
        }
        kills += answer_all(place, random);
        rounds += 1;
        if rounds % 3 == 0 {
            replicas.kill_one(place, random);
            kills += 1;
        }
        tasks.retain(|_, id| {
            let task = replicas.caller(random).task(id);
            !task.as_ref().is_some_and(is_over)
        });
        thread::sleep(Duration::from_millis(100));
    }
    kills
}

/// Allows everything that waits, several at once; returns how many answering processes were killed.
fn answer_all(place: &Place, random: &mut Random) -> u64 {
    let Some(listed) = place.json(&["approvals", "list", "--json"]) else {
        return 0;
    };
    let waiting = listed["waiting"].as_array().unwrap();
    let mut kills = 0;
    for some in waiting.chunks(6) {
        let mut answering = Vec::new();
        for question in some {
            assert_eq!(question["tool"], "payment_send", "{question}");
            let id = question["id"].as_str().unwrap();
            // `always` is no more than once for a payment.
            let word = *random.pick(&["once", "session", "always"]);
            let child = place
                .lango()
                .args(["approvals", "answer", id, word, "-q"])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
            answering.push(child.unwrap());
        }
        if random.chance(40) {
            thread::sleep(random.within(Duration::from_millis(1500)));
            if let Some(child) = answering.first_mut() {
                let is_alive = child.try_wait().is_ok_and(|ended| ended.is_none());
                kills += u64::from(is_alive);
                let _ = child.kill();
            }
        }
        for mut child in answering {
            let _ = child.wait();
        }
    }
    kills
}

/// Compares the chain with what was asked for: each job is paid once, and the right amount to the right recipient.
fn judge(count: u64, chain: &Chain, key: &KnownKey, place: &Place) -> Vec<String> {
    let mut wrong = Vec::new();
    let transfers = chain.transfers(&key.address());
    for number in 0..count {
        let to = recipient(number);
        let paid: Vec<u64> = transfers
            .iter()
            .filter(|transfer| transfer.recipient == to)
            .map(|transfer| transfer.amount)
            .collect();
        if paid != [number + 1] {
            wrong.push(format!("job-{number} was paid {paid:?}"));
        }
    }
    let limit = count.to_string();
    let history = place.json(&["payments", "history", "--limit", &limit, "--json"]);
    let history = history.unwrap_or_default();
    let rows = history.as_array().map_or(&[][..], Vec::as_slice);
    let settled = rows.iter().filter(|row| row["state"] == "settled").count();
    println!(
        "  chain: {} transfers; ledger: {settled} of {} settled",
        transfers.len(),
        rows.len()
    );
    if settled as u64 != count || transfers.len() as u64 != count {
        wrong.push("the chain and the ledger do not have each job once".to_owned());
    }
    let granted = place.json(&["approvals", "list", "--json"]);
    let granted = granted.map(|listed| listed["granted"].clone());
    if granted != Some(json!([])) {
        wrong.push(format!("something was granted for longer: {granted:?}"));
    }
    wrong
}
