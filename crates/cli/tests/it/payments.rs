//! `lango payments` and the payment tools through the real binary, without a chain. `scripts/payments` tests them on a
//! chain.

use crate::lango::{Lango, RunResult, finish, text};
use crate::models::Provider;
use crate::secrets::{PASSPHRASE, run, with_passphrase};
use lango_core::UserId;
use lango_engine::SystemClock;
use lango_store::Store;
use lango_testkit::model::{call, delegate_and_finish, say};
use lango_vault::{
    NewSecret, SecretKind, SecretName, SecretValue, UnlockSecret, Vault, VaultParts,
};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;

/// A publicly known test key.
const KEY: &str = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
const ADDRESS: &str = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";

/// Settings with an endpoint that does not exist.
const SETTINGS: &str = "[payment]\nrpcUrl = 'http://127.0.0.1:1'\nwallet = 'secret:WALLET_KEY'\n";

fn import(lango: &Lango, key: &str) -> RunResult {
    let arguments = ["payments", "wallet", "import"];
    with_passphrase(lango, PASSPHRASE, &arguments, key.as_bytes())
}

fn payment_row(lango: &Lango) -> Value {
    let rows = run(lango, &["doctor", "--json"]).json();
    let rows = rows.as_array().unwrap().clone();
    let row = rows.into_iter().find(|row| row["name"] == "payments");
    row.expect("a row about payments")
}

/// Returns the description of the vault agent, with its tools.
fn vault_tools(lango: &Lango) -> String {
    let tree = run(lango, &["agents", "--json"]).ok().json();
    let agents = tree["agents"].as_array().unwrap().iter();
    let vault = agents.filter(|agent| agent["name"] == "vault");
    vault.map(Value::to_string).collect()
}

#[test]
fn agents_cannot_pay_until_an_endpoint_and_a_wallet_are_set_up() {
    let lango = Lango::new();
    lango.session("hello");
    let row = payment_row(&lango);
    assert_eq!(row["ok"], true);
    assert!(text(&row["detail"]).contains("payment.rpcUrl"), "{row}");
    assert!(!vault_tools(&lango).contains("payment_"));
    run(&lango, &["payments", "balance"]).refused(3, &["not set up"]);
    // The wallet in the settings does not exist yet.
    lango.home_file("lango.toml", SETTINGS);
    let row = payment_row(&lango);
    assert_eq!(row["ok"], false);
    assert!(text(&row["detail"]).contains("wallet create"), "{row}");
    assert!(!vault_tools(&lango).contains("payment_"));
    import(&lango, KEY).ok();
    let tools = vault_tools(&lango);
    for tool in ["balance", "quote", "send", "history", "fetch"] {
        assert!(tools.contains(&format!("payment_{tool}")), "{tools}");
    }
    // The endpoint does not exist.
    let row = payment_row(&lango);
    assert_eq!(row["ok"], false);
    assert!(text(&row["detail"]).contains("does not answer"), "{row}");
    run(&lango, &["payments", "balance"]).refused(1, &["does not answer"]);
}

#[test]
fn a_wallet_is_stored_once_and_its_key_is_never_shown() {
    let lango = Lango::new();
    let ran = import(&lango, KEY).ok();
    assert!(ran.stdout.contains(ADDRESS), "{ran:#?}");
    assert!(ran.stderr.contains("secret:WALLET_KEY"), "{ran:#?}");
    let listed = run(&lango, &["secrets", "list", "--json"]).ok();
    assert_eq!(listed.json()[0]["kind"], "payment-key");
    import(&lango, KEY).refused(2, &["WALLET_KEY", "already"]);
    let create = ["payments", "wallet", "create"];
    run(&lango, &create).refused(2, &["WALLET_KEY", "already"]);
    let other = run(&lango, &["payments", "wallet", "create", "OTHER"]).ok();
    assert!(other.stdout.contains("0x") && !other.stdout.contains(ADDRESS));
    let wrong = import(&Lango::new(), &KEY[1..]).exits(3);
    for ran in [&ran, &listed, &other, &wrong] {
        let shown = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!shown.contains(&KEY[1..]), "{shown}");
    }
    for (path, bytes) in lango.stored_files() {
        let has_key = bytes.windows(32).any(|part| part == &KEY.as_bytes()[..32]);
        assert!(!has_key, "the key is readable in {}", path.display());
    }
}

#[test]
fn a_project_cannot_choose_endpoint_wallet_or_limits() {
    let lango = Lango::new();
    lango.file("lango.toml", format!("{SETTINGS}maxPerDay = '1000'\n"));
    let ran = lango.run(&["run", "hello"]).ok();
    for key in ["payment.rpcUrl", "payment.wallet", "payment.maxPerDay"] {
        assert!(ran.stderr.contains(key), "{key}: {ran:#?}");
    }
    lango.session("hello");
    assert!(text(&payment_row(&lango)["detail"]).contains("payment.rpcUrl"));
}

#[test]
fn an_invalid_amount_or_network_is_refused_with_the_valid_form() {
    let lango = Lango::new();
    for (setting, must) in [
        ("payment.maxPerDay='1e3'", "amount of USDC"),
        ("payment.maxPerDay='-1'", "amount of USDC"),
        ("payment.maxGasPerTransaction='1'", "gwei"),
        ("payment.network='ethereum'", "base-sepolia"),
    ] {
        lango
            .run(&["-c", setting, "agents"])
            .refused(2, &["payment.", must]);
    }
}

#[test]
fn without_a_terminal_a_payment_is_refused_whatever_the_rules_allow() {
    let arguments = json!({ "amount": "1", "recipient": ADDRESS, "purpose": "a test" });
    let replies = vec![
        delegate_and_finish("vault", "pay"),
        call("payment_send", arguments),
        say("It was not paid."),
    ];
    let provider = Provider::new(replies);
    let lango = Lango::new();
    import(&lango, KEY).ok();
    lango.home_file(
        "lango.toml",
        format!(
            "agent.model = 'mine/any'\n[providers.mine]\nkind = 'openai'\nbaseUrl = '{}'\n{SETTINGS}\
             [[approval.rules]]\naction = 'allow'\n[[approval.rules]]\naction = 'allow'\ntool = 'payment_send'\n",
            provider.server.url()
        ),
    );
    let mut command = lango.command(&["run", "pay"]);
    let ran = finish(command.env("LANGO_VAULT_PASSPHRASE", PASSPHRASE), b"").exits(4);
    assert!(
        ran.stderr
            .contains("denied: vault wanted to call payment_send"),
        "{ran:#?}"
    );
    assert!(
        ran.stderr.contains("every payment needs your approval"),
        "{ran:#?}"
    );
    assert!(ran.stderr.contains("run it at a terminal"), "{ran:#?}");
    assert!(!ran.stderr.contains("approval.rules"), "{ran:#?}");
}

#[test]
fn a_wallet_key_is_never_an_argument_and_is_deleted_only_with_yes() {
    let lango = Lango::new();
    let arguments = ["payments", "wallet", "import", "OTHER", KEY];
    let refused = run(&lango, &arguments).refused(2, &["never an argument", "import OTHER"]);
    assert!(!refused.stderr.contains(KEY), "{refused:#?}");
    import(&lango, KEY).ok();
    run(&lango, &["secrets", "rm", "WALLET_KEY"]).refused(2, &["key of a wallet", "--yes"]);
    let list = run(&lango, &["secrets", "list"]).ok();
    assert!(list.stdout.contains("WALLET_KEY"), "{list:#?}");
    run(&lango, &["secrets", "rm", "WALLET_KEY", "--yes"]).ok();
}

#[test]
fn the_address_and_the_history_need_neither_the_chain_nor_the_key() {
    let lango = Lango::new();
    import(&lango, KEY).ok();
    lango.home_file("lango.toml", "payment.wallet = 'secret:WALLET_KEY'\n");
    // The vault is locked, and there is no endpoint.
    let address = lango.run(&["payments", "wallet", "address"]).ok();
    assert_eq!(address.stdout, format!("{ADDRESS}\n"));
    assert!(address.stderr.contains("was not checked"), "{address:#?}");
    assert!(
        address.stderr.contains("lango secrets unlock"),
        "{address:#?}"
    );
    let checked = ["payments", "wallet", "address", "--json"];
    let row = lango.run(&checked).ok().json();
    assert_eq!(
        (&row["address"], &row["checked"]),
        (&ADDRESS.into(), &false.into())
    );
    assert_eq!(run(&lango, &checked).ok().json()["checked"], true);
    let history = lango.run(&["payments", "history"]).ok();
    assert!(history.stdout.contains(ADDRESS), "{history:#?}");
    let rows = lango.run(&["payments", "history", "--json"]).ok().json();
    assert_eq!(rows, json!([]));
    // The list has the public address too.
    let listed = lango.run(&["secrets", "list", "--json"]).ok().json();
    assert_eq!(listed[0]["publicId"], ADDRESS);
}

#[test]
fn what_payments_lack_is_reported_with_the_next_command() {
    let lango = Lango::new();
    let balance = |flags: &[&str]| run(&lango, &[flags, &["payments", "balance"]].concat());
    balance(&[]).refused(
        3,
        &[
            "`payment.rpcUrl` is not set",
            "`payment.wallet` is not set either",
        ],
    );
    let url = "payment.rpcUrl=http://127.0.0.1:1";
    balance(&["-c", url]).refused(
        3,
        &[
            "`payment.wallet` is not set",
            "lango payments wallet create",
        ],
    );
    let created = run(&lango, &["payments", "wallet", "create", "OTHER", "--json"]).ok();
    assert!(
        text(&created.json()["address"]).starts_with("0x"),
        "{created:#?}"
    );
    for step in [
        "payment.rpcUrl",
        "payment.wallet = \"secret:OTHER\"",
        "lango.toml",
    ] {
        assert!(created.stderr.contains(step), "{created:#?}");
    }
    // The existing wallet is proposed.
    balance(&["-c", url]).refused(3, &["`payment.wallet` is not set", "secret:OTHER"]);
    run(&lango, &["payments", "wallet", "address"])
        .refused(3, &["`payment.wallet`", "secret:OTHER"]);
    let wallet = "payment.wallet=secret:OTHER";
    balance(&["-c", wallet]).refused(3, &["`payment.rpcUrl` is not set", "JSON-RPC endpoint"]);
    balance(&["-c", wallet, "-c", "payment.rpcUrl=notaurl"]).refused(
        3,
        &[
            "`payment.rpcUrl` cannot be used: it is not a URL",
            "https://",
        ],
    );
    // A locked vault is reported as locked, not as a missing set-up.
    let both = ["-c", wallet, "-c", url, "payments", "balance"];
    let locked = lango.run(&both).refused(
        3,
        &["the vault of `local` is locked", "lango secrets unlock"],
    );
    assert!(!locked.stderr.contains("not set up"), "{locked:#?}");
    let wrong = with_passphrase(&lango, "not the passphrase", &both, b"");
    wrong.refused(
        3,
        &["LANGO_VAULT_PASSPHRASE does not unlock the vault of `local`"],
    );
}

#[test]
fn an_endpoint_that_is_not_a_url_disables_only_payments() {
    let lango = Lango::new();
    import(&lango, KEY).ok();
    lango.home_file(
        "lango.toml",
        SETTINGS.replace("http://127.0.0.1:1", "notaurl"),
    );
    let ran = lango.run(&["run", "hello"]).ok();
    assert!(
        ran.stderr.contains("agents cannot pay: `payment.rpcUrl`"),
        "{ran:#?}"
    );
    let row = payment_row(&lango);
    assert_eq!(row["ok"], false);
    assert!(text(&row["detail"]).contains("it is not a URL"), "{row}");
}

#[test]
fn an_invalid_key_is_refused_with_advice_on_what_to_export() {
    let refused = import(&Lango::new(), "abandon ability able about");
    refused.refused(
        3,
        &[
            "64 hexadecimal digits",
            "seed phrase",
            "wallet import WALLET_KEY",
        ],
    );
}

#[test]
fn a_wrong_wallet_and_a_silent_endpoint_are_reported_with_the_next_step() {
    let lango = Lango::new();
    crate::secrets::set(&lango, "WALLET_KEY", "a token").ok();
    lango.home_file("lango.toml", SETTINGS);
    let named = ["`WALLET_KEY`", "kind text, not a wallet", "wallet create"];
    run(&lango, &["payments", "balance"]).refused(3, &named);
    run(&lango, &["payments", "wallet", "address"]).refused(3, &named);
    let row = payment_row(&lango);
    assert!(text(&row["detail"]).contains("not a wallet"), "{row}");
    run(&lango, &["secrets", "rm", "WALLET_KEY"]).ok();
    import(&lango, KEY).ok();
    let next = ["`payment.rpcUrl` does not answer", "set another one"];
    run(&lango, &["payments", "balance"]).refused(1, &next);
    let row = payment_row(&lango);
    assert!(text(&row["detail"]).contains("set another one"), "{row}");
}

#[test]
fn a_damaged_wallet_is_reported_with_commands_that_work() {
    let lango = Lango::new();
    lango.home_file("lango.toml", SETTINGS);
    import(&lango, KEY).ok();
    let database = Connection::open(lango.database()).unwrap();
    database
        .execute_batch("UPDATE vault_records SET envelope = x'00'")
        .unwrap();
    drop(database);
    let advice = [
        "`lango secrets rm WALLET_KEY --yes`",
        "`lango payments wallet import WALLET_KEY`",
    ];
    run(&lango, &["payments", "wallet", "address"]).refused(1, &advice);
    run(&lango, &["secrets", "rm", "WALLET_KEY", "--yes"]).ok();
    import(&lango, KEY).ok();
    run(&lango, &["payments", "wallet", "address"]).ok();
}

#[tokio::test]
async fn a_wallet_of_an_older_version_shows_its_address_after_an_unlock() {
    let lango = Lango::new();
    lango.session("hello");
    let store = Store::sqlite(lango.database(), "orchestrator".into()).unwrap();
    let vault = Vault::new(VaultParts {
        store: Arc::new(store),
        clock: Arc::new(SystemClock),
        owner: UserId::from("local"),
        actor: "an older version".into(),
    });
    let passphrase = UnlockSecret::Passphrase(SecretValue::new(PASSPHRASE));
    let open = vault.create(vec![passphrase]).await.unwrap();
    let wallet = NewSecret {
        kind: Some(SecretKind::PaymentKey),
        ..NewSecret::new(SecretValue::new(KEY))
    };
    let name = SecretName::new("WALLET_KEY").unwrap();
    open.set(&name, wallet).await.unwrap();
    drop((open, vault));
    lango.home_file("lango.toml", SETTINGS);
    let address = ["payments", "wallet", "address"];
    let locked = lango.run(&["secrets", "list"]).ok();
    assert!(!locked.stdout.contains(ADDRESS), "{locked:#?}");
    lango.run(&address).refused(3, &["is locked"]);
    // Any command that opens the vault adds the address.
    run(&lango, &["secrets", "describe", "WALLET_KEY"]).ok();
    let locked = lango.run(&["secrets", "list"]).ok();
    assert!(locked.stdout.contains(ADDRESS), "{locked:#?}");
    assert!(lango.run(&address).ok().stdout.contains(ADDRESS));
    let log = lango.run(&["secrets", "log"]).ok().stdout;
    assert_eq!(log.matches("address added").count(), 1, "{log}");
}

/// Starts an endpoint that answers every call with the id of the test network.
fn serve_chain() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let body = r#"{"jsonrpc":"2.0","id":1,"result":"0x14a34"}"#;
            let length = body.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
            );
            let _ = stream.write_all(format!("{head}{body}").as_bytes());
        }
    });
    address
}

#[test]
fn a_script_is_warned_that_the_wallet_is_locked() {
    let replies = vec![
        delegate_and_finish("vault", "what was paid?"),
        call("payment_history", json!({})),
        say("It cannot be told."),
    ];
    let provider = Provider::new(replies);
    let lango = Lango::new();
    import(&lango, KEY).ok();
    let url = provider.server.url();
    let model = format!("[providers.mine]\nkind = 'openai'\nbaseUrl = '{url}'\n");
    let settings = SETTINGS.replace("127.0.0.1:1'", &format!("{}'", serve_chain()));
    let settings = format!("agent.model = 'mine/any'\n{model}{settings}");
    lango.home_file("lango.toml", settings);
    let ran = lango.run(&["run", "what was paid?"]).ok();
    for part in [
        "warning: a secret was not used: the wallet's key",
        "the vault of `local` is locked",
        "`lango secrets unlock`",
    ] {
        assert!(ran.stderr.contains(part), "{ran:#?}");
    }
    let rows = lango.run(&["doctor", "--json"]).json();
    let mut rows = rows.as_array().unwrap().iter();
    let row = rows.find(|row| row["name"] == "payments").unwrap();
    assert_eq!(row["warning"], true, "{row}");
}
