//! Bound secrets in commands and MCP programs, through the real binary.

use crate::lango::Lango;
use crate::secrets::{PASSPHRASE, run, set, wait_until_expired, with_passphrase};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

const VALUE: &str = "tok-5f1c9a-never-shown";
const ALLOW: &str = r#"approval.rules=[{action="allow"}]"#;

/// Starts a web server that answers with the head of each request, and records it.
fn serve() -> (String, Arc<Mutex<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let log = Arc::new(Mutex::new(String::new()));
    let recorded = Arc::clone(&log);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let lines = BufReader::new(&stream).lines();
            let head = lines
                .map_while(Result::ok)
                .take_while(|line| !line.is_empty());
            let head = head.collect::<Vec<_>>().join("\n");
            recorded.lock().unwrap().push_str(&head);
            let length = head.len();
            let _ = write!(
                &stream,
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{head}"
            );
        }
    });
    (address, log)
}

#[test]
fn a_command_uses_a_token_that_neither_it_nor_the_model_sees() {
    let (address, log) = serve();
    let lango = Lango::new();
    set(&lango, "SERVICE", VALUE).ok();
    let host = format!("http://{address}");
    let bind = ["secrets", "bind", "SERVICE", "--host", &host];
    run(&lango, &bind).ok();
    let missing =
        format!("SERVICE cannot be used at {host}: add `{address}` to `tools.exec.network`");
    let examined = run(&lango, &["doctor"]).ok().stdout;
    assert!(examined.contains(&missing), "{examined}");
    let (network, allow) = (
        format!("tools.exec.network=[\"{address}\"]"),
        format!("egress.allow=[\"{address}\"]"),
    );
    let flags = ["-c", ALLOW, "-c", &network, "-c", &allow];
    let examined = run(&lango, &[&flags[..], &["doctor"]].concat()).ok().stdout;
    assert!(!examined.contains("cannot be used at"), "{examined}");

    let script = format!("env; curl -sS -H \"Authorization: Bearer $SERVICE\" {host}/");
    lango.file("ask.sh", &script);
    let arguments = [&flags[..], &["run", "-q", "run `sh ask.sh`"]].concat();
    let printed = run(&lango, &arguments).ok().stdout;
    assert!(log.lock().unwrap().contains(&format!("Bearer {VALUE}")));
    assert!(printed.contains("SERVICE=lango_secret_"), "{printed}");
    assert!(printed.contains("Bearer [secret SERVICE]"), "{printed}");
    assert!(!printed.contains(VALUE), "{printed}");

    // Without the passphrase, the vault is locked.
    let ran = lango.run(&arguments);
    assert!(!ran.stdout.contains("lango_secret_"), "{}", ran.stdout);
    assert!(
        ran.stdout
            .contains("the command ran without its bound secrets"),
        "{}",
        ran.stdout
    );
    // The user of a script gets the warning too, once.
    let expected = "warning: a secret was not used: the vault of `local` is locked";
    assert_eq!(ran.stderr.matches(expected).count(), 1, "{ran:#?}");
    assert!(ran.stderr.contains("`lango secrets unlock`"), "{ran:#?}");
    let store = ["secrets", "set", "SERVICE", "--expires", "1s"];
    with_passphrase(&lango, PASSPHRASE, &store, VALUE.as_bytes()).ok();
    wait_until_expired(&lango);
    let ran = run(&lango, &arguments);
    let next = "`lango secrets rotate SERVICE` sets a new value";
    assert!(
        ran.stderr
            .contains("warning: a secret was not used: the secret `SERVICE` expired"),
        "{ran:#?}"
    );
    assert!(ran.stderr.contains(next), "{ran:#?}");
}

#[test]
fn a_program_that_would_see_a_value_needs_an_approval_whatever_the_rules_allow() {
    let lango = Lango::new();
    set(&lango, "SIGNING", VALUE).ok();
    let bind = "secrets bind SIGNING --program printenv --env SIGNING_KEY";
    run(&lango, &bind.split(' ').collect::<Vec<_>>()).ok();
    let ran = run(
        &lango,
        &["-c", ALLOW, "run", "-q", "run `printenv SIGNING_KEY`"],
    );
    let printed = format!("{}{}", ran.stdout, ran.stderr);
    assert!(!printed.contains(VALUE), "{printed}");
    let reason =
        "`printenv` would see the value of the secret `SIGNING` in the variable SIGNING_KEY";
    assert!(printed.contains(reason), "{printed}");
    // A command that runs more than the program runs without the value.
    let ran = run(
        &lango,
        &["-c", ALLOW, "run", "-q", "run `env printenv SIGNING_KEY`"],
    );
    assert!(
        ran.stdout.contains("`printenv` did not get `SIGNING`"),
        "{}",
        ran.stdout
    );
}

#[test]
fn an_mcp_program_with_a_secret_needs_a_list_of_hosts() {
    let lango = Lango::new();
    for network in ["true", "false"] {
        let network = format!("mcp.servers.toy.network={network}");
        let ran = lango.run(&[
            "-c",
            r#"mcp.servers.toy.command=["python3"]"#,
            "-c",
            r#"mcp.servers.toy.env={TOKEN="secret:SERVICE"}"#,
            "-c",
            &network,
            "mcp",
            "list",
        ]);
        let printed = format!("{}{}", ran.stdout, ran.stderr);
        assert!(
            printed.contains("`env.TOKEN` is the secret `SERVICE`"),
            "{printed}"
        );
        assert!(printed.contains("set `network = [\"HOST\"]`"), "{printed}");
    }
}
