//! The keys under `egress`: how they are shown, validated, limited for untrusted projects, and enforced by the server.

use crate::lango::Lango;
use crate::serve::TestServer;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;

fn shown(lango: &Lango, key: &str) -> Value {
    let shown = lango.run(&["config", "show", "--json"]).ok().json();
    shown[key]["value"].clone()
}

#[test]
fn the_egress_rules_are_shown_by_doctor_and_config() {
    let lango = Lango::new();
    let doctor = lango.run(&["doctor"]).ok().stdout;
    let line = "✓ egress         public hosts; allow: nothing; deny: nothing; 5000 requests and 512 MiB per turn\n";
    assert!(doctor.contains(line), "{doctor}");
    lango.home_file(
        "lango.toml",
        "[egress]\nallow = ['10.0.0.5:8080', '*.Corp.example']\ndeny = ['*']\nmaxRequests = 7\n",
    );
    let doctor = lango.run(&["doctor"]).ok().stdout;
    let line = "allow: 10.0.0.5:8080, *.corp.example; deny: *; 7 requests and 512 MiB per turn";
    assert!(doctor.contains(line), "{doctor}");
    assert_eq!(
        shown(&lango, "egress.allow"),
        json!(["10.0.0.5:8080", "*.corp.example"])
    );
    assert_eq!(shown(&lango, "egress.maxBytes"), 536_870_912);
}

#[test]
fn an_entry_that_is_not_a_host_is_refused_with_the_valid_form() {
    let lango = Lango::new();
    for (value, problem) in [
        ("egress.allow=http://example.com", "leave out the scheme"),
        ("egress.deny=a..b", "single dots"),
        ("egress.allow=*", "a list of hosts without `*`"),
        ("egress.allow=7", "four decimal numbers"),
        ("egress.maxRequests=-1", "a whole number"),
    ] {
        lango
            .run(&["-c", value, "config", "show"])
            .refused(2, &[problem]);
    }
}

#[test]
fn control_characters_in_an_entry_are_escaped() {
    let lango = Lango::new();
    lango.home_file(
        "lango.toml",
        "[egress]\nallow = [\"a/\\u001b[2J\\u0007\\n  next: run `rm`\"]\n",
    );
    for command in ["agents", "config"] {
        let arguments: &[&str] = if command == "config" {
            &["config", "check"]
        } else {
            &[command]
        };
        let ran = lango
            .run(arguments)
            .refused(3, &["\\U0000001B[2J\\U00000007\\n"]);
        let is_control = |letter: char| letter.is_control() && letter != '\n';
        assert!(!ran.stderr.contains(is_control), "{ran:#?}");
        assert_eq!(ran.stderr.lines().count(), 2, "{ran:#?}");
    }
    let shown = lango.run(&["doctor"]).exits(3).stdout;
    assert!(
        shown.contains("\\U0000001B[2J") && shown.lines().count() == 2,
        "{shown}"
    );
}

#[test]
fn an_untrusted_project_can_lower_the_budget_but_not_name_hosts() {
    let lango = Lango::new();
    lango.home_file("lango.toml", "egress.deny = ['example.com']\n");
    lango.file(
        "lango.toml",
        "[egress]\nallow = ['127.0.0.1']\ndeny = []\nmaxRequests = 3\nmaxBytes = 999999999999\n",
    );
    assert_eq!(shown(&lango, "egress.allow"), json!([]));
    assert_eq!(shown(&lango, "egress.deny"), json!(["example.com"]));
    assert_eq!(shown(&lango, "egress.maxRequests"), 3);
    assert_eq!(shown(&lango, "egress.maxBytes"), 536_870_912);
    lango.run(&["config", "trust", "--yes"]).ok();
    assert_eq!(shown(&lango, "egress.allow"), json!(["127.0.0.1"]));
}

#[test]
fn the_server_fetches_a_clients_file_only_from_allowed_hosts() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap();
    let message = |id: &str| {
        let url = format!("http://{host}/notes.txt");
        let parts = json!([{ "text": "hello" }, { "url": url, "mediaType": "text/plain" }]);
        json!({ "message": { "messageId": id, "role": "ROLE_USER", "parts": parts } })
    };
    let mut closed = TestServer::start();
    let refused = closed.rpc("SendMessage", message("m-1"));
    let text = refused["error"].to_string();
    assert!(text.contains("its address is not public"), "{text}");
    let (log, _) = closed.end();
    let entry = format!("add `{host}` to `egress.allow` to permit it");
    assert!(log.contains(&entry), "{log}");

    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = [0; 4096];
        let read = stream.read(&mut head).unwrap();
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        stream.write_all(answer).unwrap();
        String::from_utf8_lossy(&head[..read]).into_owned()
    });
    let allow = format!("egress.allow={host}");
    let open = TestServer::start_with(Lango::new(), &["-c", &allow]);
    let sent = open.rpc("SendMessage", message("m-1"));
    assert!(
        sent.to_string()
            .contains("[file: notes.txt, text/plain, 5 bytes]"),
        "{sent}"
    );
    // The refused attempt never reached the listener: this is its first connection.
    assert!(served.join().unwrap().starts_with("GET /notes.txt "));
}
