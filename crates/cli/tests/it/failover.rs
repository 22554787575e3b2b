//! The primary of a replicated PostgreSQL crashes while turns run, and its synchronous standby is promoted: no
//! acknowledged message is lost, no command runs twice, and no task is stuck.

use crate::lango::{Lango, TIMEOUT, text};
use crate::outages::{psql, query};
use crate::restored_backups::{CommandModel, start};
use crate::serve::{TestServer, message};
use lango_testkit::postgres::Cluster;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// Number of tasks.
const TASKS: usize = 40;
/// Number of tasks after which the primary crashes.
const CRASH_AFTER: usize = 15;

/// Sends a message with the same id until a server acknowledges it. Returns the task's id.
fn send(servers: &[TestServer], number: usize) -> String {
    let mut message = message("deploy it");
    message["message"]["contextId"] = json!(format!("c-{number}"));
    message["configuration"] = json!({ "returnImmediately": true });
    let started = Instant::now();
    loop {
        let sent = servers[number % servers.len()].rpc("SendMessage", message.clone());
        if let Some(id) = sent["result"]["task"]["id"].as_str() {
            return id.to_owned();
        }
        assert!(started.elapsed() < TIMEOUT, "not acknowledged: {sent}");
        thread::sleep(Duration::from_millis(100));
    }
}

fn state(server: &TestServer, id: &str) -> Value {
    let got = server.rpc("GetTask", json!({ "id": id }));
    got["result"]["status"]["state"].clone()
}

#[test]
fn turns_survive_a_failover_to_a_synchronous_standby() {
    let mut primary = Cluster::start(&["synchronous_commit=remote_apply"]);
    let standby = primary.standby();
    let address = primary.address();
    psql(&address, "ALTER SYSTEM SET synchronous_standby_names = '*'");
    psql(&address, "SELECT pg_reload_conf()");
    let is_synchronous = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
    let started = Instant::now();
    while query(&address, is_synchronous) != "1" {
        assert!(
            started.elapsed() < TIMEOUT,
            "the standby never became synchronous"
        );
        thread::sleep(Duration::from_millis(50));
    }
    let store = format!(
        "session.store=postgres://postgres@127.0.0.1:{},127.0.0.1:{}/postgres?target_session_attrs=read-write",
        primary.port(),
        standby.port()
    );
    let lango = Lango::new();
    let model = CommandModel::new("echo $LANGO_CALL_KEY >> effects.txt; sleep 0.1", || ());
    let arguments = model.arguments(&["-c", &store, "-c", "session.lease=20s"]);
    let other_home = lango.home().with_file_name("other-home");
    fs::create_dir_all(lango.home()).unwrap();
    let token = "a-token-of-both-servers";
    for home in [lango.home(), &other_home] {
        fs::create_dir_all(home).unwrap();
        let file = home.join("server-token");
        fs::write(&file, token).unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(&file, private).unwrap();
    }
    let servers = [
        start(lango.sibling(), &arguments),
        start(lango.sibling().using_home(&other_home), &arguments),
    ];
    let mut tasks = Vec::new();
    for number in 0..TASKS {
        if number == CRASH_AFTER {
            primary.stop_immediately();
            let promoting = standby.address();
            thread::spawn(move || {
                thread::sleep(Duration::from_secs(2));
                psql(&promoting, "SELECT pg_promote()");
            });
        }
        tasks.push(send(&servers, number));
    }
    let mut states: BTreeMap<String, usize> = BTreeMap::new();
    for (number, task) in tasks.iter().enumerate() {
        let started = Instant::now();
        let settled = loop {
            let state = state(&servers[0], task);
            let is_settled = matches!(
                state.as_str(),
                Some("TASK_STATE_COMPLETED" | "TASK_STATE_AUTH_REQUIRED")
            );
            if is_settled {
                break text(&state).to_owned();
            }
            assert!(started.elapsed() < TIMEOUT * 2, "{task} is stuck: {state}");
            thread::sleep(Duration::from_millis(100));
        };
        // lango asks only about a command whose outcome could not be stored: one that ran when the primary crashed.
        assert!(
            number < CRASH_AFTER || settled == "TASK_STATE_COMPLETED",
            "{task} was sent after the crash and asks"
        );
        *states.entry(settled).or_default() += 1;
    }
    let effects = fs::read_to_string(lango.workspace().join("effects.txt")).unwrap();
    let mut runs: BTreeMap<&str, usize> = BTreeMap::new();
    for key in effects.lines() {
        *runs.entry(key).or_default() += 1;
    }
    assert!(runs.values().all(|times| *times == 1), "twice: {runs:?}");
    let completed = states
        .get("TASK_STATE_COMPLETED")
        .copied()
        .unwrap_or_default();
    let asked = states
        .get("TASK_STATE_AUTH_REQUIRED")
        .copied()
        .unwrap_or_default();
    assert!(
        completed <= runs.len() && runs.len() <= completed + asked,
        "{states:?} {runs:?}"
    );
    assert_eq!(tasks.len(), completed + asked, "{states:?}");
    let ids: std::collections::BTreeSet<&String> = tasks.iter().collect();
    assert_eq!(ids.len(), TASKS);
    let verify = [
        "sessions",
        "verify",
        "--all",
        "-c",
        "session.user=a2a",
        "-c",
        &store,
    ];
    lango.run(&verify).ok();
}
