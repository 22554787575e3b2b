//! Concurrent processes that store secrets: none that reports success loses its secret.

use crate::lango::{BINARY, Lango, finish_child};
use crate::secrets::{PASSPHRASE, listed, run, set};
use lango_testkit::postgres;
use std::io::Write;
use std::process::{Child, Command, Stdio};

fn start(lango: &Lango, name: &str) -> Child {
    let mut command = Command::new(BINARY);
    let command = lango.prepare(&mut command).args(["secrets", "set", name]);
    let command = command.env("LANGO_VAULT_PASSPHRASE", PASSPHRASE);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(name.as_bytes()).unwrap();
    child
}

fn race(lango: &Lango) {
    const PROCESSES: usize = 6;
    set(lango, "SHARED", "x").ok();
    for round in 0..2 {
        let own = (0..PROCESSES).map(|number| format!("K{round}.{number}"));
        let shared = (0..2).map(|_| "SHARED".to_owned());
        let names: Vec<String> = own.chain(shared).collect();
        let children: Vec<Child> = names.iter().map(|name| start(lango, name)).collect();
        for child in children {
            finish_child(child, b"").ok();
        }
    }
    let listed = listed(lango);
    assert_eq!(listed.len(), 2 * PROCESSES + 1, "{listed:?}");
    let shared = listed.iter().find(|(name, _)| name == "SHARED").unwrap();
    assert_eq!(shared.1, 5);
    run(lango, &["secrets", "list"]).ok();
}

#[test]
fn concurrent_processes_lose_no_secret_in_a_file() {
    race(&Lango::new());
}

#[test]
fn concurrent_processes_lose_no_secret_on_a_server() {
    let lango = Lango::new();
    let address = postgres::fresh_schema();
    lango.home_file("lango.toml", format!("session.store = '{address}'"));
    race(&lango);
}

#[test]
fn concurrent_processes_that_create_the_vault_all_store_their_secret() {
    let lango = Lango::new();
    lango.session("hello");
    let children: Vec<Child> = (0..4).map(|n| start(&lango, &format!("K{n}"))).collect();
    for child in children {
        finish_child(child, b"").ok();
    }
    assert_eq!(listed(&lango).len(), 4);
}

#[test]
fn a_vault_works_after_a_backup_or_a_move_to_a_server() {
    let lango = Lango::new();
    set(&lango, "KEY", "value").ok();
    lango.run(&["store", "backup", "copy.db"]).ok();
    let copy = run(
        &lango,
        &["-c", "session.store=sqlite:copy.db", "secrets", "list"],
    )
    .ok();
    assert!(copy.stdout.starts_with("KEY "), "{copy:#?}");
    let address = postgres::fresh_schema();
    let from = format!("sqlite:{}", lango.database().display());
    lango.run(&["store", "move", &from, &address]).ok();
    lango.home_file("lango.toml", format!("session.store = '{address}'"));
    assert_eq!(listed(&lango), [("KEY".to_owned(), 1)]);
    run(&lango, &["secrets", "rotate", "--master"]).ok();
    let log = lango.run(&["secrets", "log"]).ok().stdout;
    assert!(log.contains("vault created"), "{log}");
}
