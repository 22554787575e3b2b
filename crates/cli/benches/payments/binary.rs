//! Payments through the real binary. Clients of three servers request payments, `lango approvals` approves each one,
//! and servers and approving processes are killed. A rule of the configuration allows every call, but payments need an
//! approval nevertheless.

use super::chain::Chain;
use super::common::random::Random;
use super::common::rpc_client::{RpcClient, is_over};
use super::common::server_process::{ServerLog, ServerProcess, free_port};
use super::common::test_env::TestEnv;
use super::wallet::{KnownKey, recipient};
use lango_core::ModelReply;
use lango_testkit::model::{calls, delegate_and_finish, say};
use lango_testkit::postgres;
use lango_testkit::wire_server::{RecordedRequest, WireServer};
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
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Time limit for all payments, per payment.
const TIMEOUT_PER_PAYMENT: Duration = Duration::from_secs(10);

/// Maximum number of running tasks.
const MAX_RUNNING: usize = 24;

struct Replicas {
    server_log: ServerLog,
    servers: Vec<(PathBuf, u16, ServerProcess)>,
    rpc_clients: Vec<RpcClient>,
}

/// Makes payments and returns the violations.
pub(crate) fn run(count: u64, chain: &Chain, random: &mut Random) -> Vec<String> {
    let key = KnownKey::funded(101, chain);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let model = runtime.block_on(WireServer::start(|request| reply(request).into()));
    let model = model.without_recording();
    let test_env = create_test_env(model.url(), chain, &key, count);
    let mut replicas = Replicas::start(&test_env, random);
    let started = Instant::now();
    let mut violations = Vec::new();
    let kills = drive(count, &test_env, &mut replicas, random, &mut violations);
    let _ = test_env.json(&["payments", "reconcile", "--json"]);
    println!(
        "  {:.1} s, {kills} processes killed",
        started.elapsed().as_secs_f64()
    );
    violations.extend(check(count, chain, &key, &test_env));
    violations.extend(replicas.server_log.crashes());
    violations
}

/// The script of the model: the orchestrator delegates each job to the vault agent, which pays once and repeats the
/// result.
fn reply(request: &RecordedRequest) -> ModelReply {
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

/// Creates a home whose configuration allows everything that a rule can allow, and imports the wallet into its vault.
fn create_test_env(model: &str, chain: &Chain, key: &KnownKey, count: u64) -> TestEnv {
    let database = postgres::fresh_schema();
    let test_env = TestEnv::new(
        model,
        &format!(
            "[session]\nstore = '{database}'\nlease = '2s'\n[vault]\nkeyFile = 'vault.key'\n\
             [payment]\nrpcUrl = '{}'\nwallet = 'secret:WALLET_KEY'\nmaxPerDay = '{}'\n\
             maxGasPerTransaction = '0.1 ETH'\n",
            chain.url(),
            (count * (count + 1)).div_ceil(1_000_000) + 1
        ),
    );
    let ran = test_env
        .lango()
        .args(["secrets", "init", "--key-file", "../home/vault.key"])
        .output();
    let ran = ran.unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let mut import = test_env
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
    test_env
}

impl Replicas {
    fn start(test_env: &TestEnv, random: &mut Random) -> Self {
        let mut replicas = Self {
            server_log: ServerLog::default(),
            servers: Vec::new(),
            rpc_clients: Vec::new(),
        };
        for number in 0..REPLICAS {
            let home = match number {
                0 => test_env.home(),
                _ => test_env.home().with_file_name(format!("home-{number}")),
            };
            if number > 0 {
                fs::create_dir_all(&home).unwrap();
                for file in ["lango.toml", "server-token", "vault.key"] {
                    fs::copy(test_env.home().join(file), home.join(file)).unwrap();
                }
            }
            let port = free_port(random);
            let server = ServerProcess::start(test_env, &home, port, &replicas.server_log);
            assert!(
                server.is_ready_within(START_TIMEOUT),
                "{:?}",
                replicas.server_log.last()
            );
            replicas
                .rpc_clients
                .push(RpcClient::new(test_env, &home, port));
            replicas.servers.push((home, port, server));
        }
        replicas
    }

    fn kill_one(&mut self, test_env: &TestEnv, random: &mut Random) {
        let at = usize::try_from(random.below(REPLICAS as u64)).unwrap();
        let (home, port, server) = &mut self.servers[at];
        server.kill();
        *server = ServerProcess::start(test_env, home, *port, &self.server_log);
        assert!(
            server.is_ready_within(START_TIMEOUT),
            "{:?}",
            self.server_log.last()
        );
    }

    fn rpc_client(&self, random: &mut Random) -> &RpcClient {
        random.pick(&self.rpc_clients)
    }
}

/// Sends tasks, approves their payments, and kills processes until all tasks have ended. Returns how many it killed.
fn drive(
    count: u64,
    test_env: &TestEnv,
    replicas: &mut Replicas,
    random: &mut Random,
    violations: &mut Vec<String>,
) -> u64 {
    let deadline =
        Instant::now() + START_TIMEOUT + TIMEOUT_PER_PAYMENT * u32::try_from(count).unwrap();
    let mut tasks: BTreeMap<u64, String> = BTreeMap::new();
    let (mut next, mut kills, mut rounds) = (0, 0, 0);
    while next < count || !tasks.is_empty() {
        if Instant::now() > deadline {
            violations.push(format!("{} tasks never ended", tasks.len()));
            break;
        }
        while next < count && tasks.len() < MAX_RUNNING {
            let message = json!({
                "message": {
                    "messageId": format!("m-{next}"),
                    "role": "ROLE_USER",
                    "parts": [{ "text": format!("please pay for job-{next}.") }],
                },
                "configuration": { "returnImmediately": true },
            });
            let sent = replicas
                .rpc_client(random)
                .rpc("SendMessage", message, START_TIMEOUT);
            if let Ok(result) = sent
                && let Some(id) = result["task"]["id"].as_str()
            {
                tasks.insert(next, id.to_owned());
                next += 1;
            }
        }
        kills += answer_all(test_env, random);
        rounds += 1;
        if rounds % 3 == 0 {
            replicas.kill_one(test_env, random);
            kills += 1;
        }
        tasks.retain(|_, id| {
            let task = replicas.rpc_client(random).task(id);
            !task.as_ref().is_some_and(is_over)
        });
        thread::sleep(Duration::from_millis(100));
    }
    kills
}

/// Approves all waiting requests, several concurrently. Returns how many approving processes it killed.
fn answer_all(test_env: &TestEnv, random: &mut Random) -> u64 {
    let Some(listed) = test_env.json(&["approvals", "list", "--json"]) else {
        return 0;
    };
    let waiting = listed["waiting"].as_array().unwrap();
    let mut kills = 0;
    for some in waiting.chunks(6) {
        let mut answering = Vec::new();
        for question in some {
            assert_eq!(question["tool"], "payment_send", "{question}");
            let id = question["id"].as_str().unwrap();
            // For a payment, `session` and `always` have the same effect as `once`.
            let word = *random.pick(&["once", "session", "always"]);
            let child = test_env
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

/// Checks that each job was paid once on the chain, with the right amount and recipient. Returns the violations.
fn check(count: u64, chain: &Chain, key: &KnownKey, test_env: &TestEnv) -> Vec<String> {
    let mut violations = Vec::new();
    let transfers = chain.transfers(&key.address());
    for number in 0..count {
        let to = recipient(number);
        let paid: Vec<u64> = transfers
            .iter()
            .filter(|transfer| transfer.recipient == to)
            .map(|transfer| transfer.amount)
            .collect();
        if paid != [number + 1] {
            violations.push(format!("job-{number} was paid {paid:?}"));
        }
    }
    let limit = count.to_string();
    let history = test_env.json(&["payments", "history", "--limit", &limit, "--json"]);
    let history = history.unwrap_or_default();
    let rows = history.as_array().map_or(&[][..], Vec::as_slice);
    let settled = rows.iter().filter(|row| row["state"] == "settled").count();
    println!(
        "  chain: {} transfers; ledger: {settled} of {} settled",
        transfers.len(),
        rows.len()
    );
    if settled as u64 != count || transfers.len() as u64 != count {
        violations.push("the chain and the ledger do not contain each job exactly once".to_owned());
    }
    let granted = test_env.json(&["approvals", "list", "--json"]);
    let granted = granted.map(|listed| listed["granted"].clone());
    if granted != Some(json!([])) {
        violations.push(format!("an answer left a grant: {granted:?}"));
    }
    violations
}
