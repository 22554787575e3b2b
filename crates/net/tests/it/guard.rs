//! The guard: its lists, names and addresses, and that it connects only to checked addresses.

use crate::support::{
    ScriptedResolver, Server, budget, egress, egress_with_limits, ok, rules, url,
};
use lango_net::{Check, Egress, EgressError, EgressLimits, HeaderMap, Refusal, RefusalReason};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

async fn refusal(egress: &Egress, text: &str) -> Option<Refusal> {
    match egress.check(&url(text)) {
        Ok(destination) => egress.resolve(&destination).await.err(),
        Err(refusal) => Some(refusal),
    }
}

async fn passes(allow: &[&str], answers: &[&str], text: &str) -> bool {
    refusal(&egress(allow, &[], answers), text).await.is_none()
}

#[tokio::test]
async fn a_literal_address_needs_an_entry_with_the_address() {
    assert!(passes(&["10.0.0.5"], &[], "http://10.0.0.5/").await);
    assert!(passes(&["10.0.0.0/8"], &[], "http://0xa.5/").await);
    assert!(passes(&["10.0.0.5:8080"], &[], "http://10.0.0.5:8080/").await);
    assert!(!passes(&["10.0.0.5:8080"], &[], "http://10.0.0.5/").await);
    assert!(!passes(&["10.0.0.5"], &[], "http://10.0.0.6/").await);
    assert!(!passes(&["*"], &[], "http://10.0.0.5/").await);
    assert!(passes(&["169.254.169.254"], &[], "http://169.254.169.254/").await);
    assert!(!passes(&["0.0.0.0/0"], &[], "http://0.0.0.0/").await);
    assert!(!passes(&["10.0.0.0/8"], &[], "http://[64:ff9b::a00:1]/").await);
}

#[tokio::test]
async fn a_name_with_a_private_address_needs_an_entry_with_the_name() {
    let private = ["10.0.0.5"];
    assert!(!passes(&[], &private, "http://nas.example/").await);
    assert!(passes(&["nas.example"], &private, "http://nas.example/").await);
    assert!(passes(&["*.example"], &private, "http://nas.example/").await);
    assert!(passes(&["nas.example:8080"], &private, "http://nas.example:8080/").await);
    assert!(!passes(&["nas.example:8080"], &private, "http://nas.example/").await);
    // Otherwise a page could use its own name for the address, and would have the same origin as the service there.
    assert!(!passes(&["10.0.0.5"], &private, "http://evil.example/").await);
    assert!(!passes(&["*"], &private, "http://nas.example/").await);
}

#[tokio::test]
async fn an_entry_with_a_name_does_not_allow_metadata_or_link_local_addresses() {
    for address in ["169.254.169.254", "fe80::1", "fd00:ec2::254"] {
        assert!(!passes(&["nas.example"], &[address], "http://nas.example/").await);
        assert!(passes(&["nas.example", address], &[address], "http://nas.example/").await);
    }
    assert!(
        !passes(
            &["nas.example", "0.0.0.0"],
            &["0.0.0.0"],
            "http://nas.example/"
        )
        .await
    );
}

#[tokio::test]
async fn local_names_need_an_entry_with_the_name() {
    assert!(!passes(&[], &["93.184.216.34"], "http://printer.local/").await);
    assert!(passes(&["printer.local"], &["10.0.0.9"], "http://printer.local/").await);
    assert!(
        passes(
            &["localhost:8080"],
            &["127.0.0.1,::1"],
            "http://LOCALHOST.:8080/"
        )
        .await
    );
    assert!(
        !passes(
            &["localhost:8080"],
            &["127.0.0.1"],
            "http://localhost:8081/"
        )
        .await
    );
}

#[tokio::test]
async fn deny_takes_precedence_over_allow() {
    let egress = egress(
        &["10.0.0.0/8", "nas.example"],
        &[
            "10.0.0.5",
            "*.evil.example",
            "93.184.216.0/24",
            "example.com:8080",
        ],
        &["10.0.0.5"],
    );
    for denied in [
        "http://10.0.0.5/",
        "http://[::ffff:10.0.0.5]/",
        "http://a.evil.example/",
        "http://nas.example/",
        "http://93.184.216.34/",
        "http://[64:ff9b::5db8:d822]/",
        "http://example.com:8080/",
    ] {
        let refusal = refusal(&egress, denied).await.unwrap();
        assert!(
            matches!(refusal.reason, RefusalReason::Denied { .. }),
            "{refusal}"
        );
        assert!(refusal.to_string().contains("`egress.deny`"), "{refusal}");
    }
    assert!(refusal(&egress, "http://10.0.0.6/").await.is_none());
}

#[tokio::test]
async fn a_star_in_deny_does_not_match_hosts_in_allow() {
    let egress = egress(
        &["example.com", "*.example.org"],
        &["*"],
        &["93.184.216.34"],
    );
    assert!(refusal(&egress, "https://example.com/").await.is_none());
    assert!(refusal(&egress, "https://a.example.org/").await.is_none());
    let refused = refusal(&egress, "https://example.net/").await.unwrap();
    assert_eq!(
        refused.reason,
        RefusalReason::Denied {
            entry: "*".to_owned()
        }
    );
}

#[tokio::test]
async fn a_port_of_another_protocol_needs_an_entry_with_the_port() {
    let public = ["93.184.216.34"];
    assert!(!passes(&["example.com"], &public, "http://example.com:22/").await);
    assert!(passes(&["example.com:22"], &public, "http://example.com:22/").await);
    assert!(passes(&[], &public, "http://example.com:8443/").await);
}

#[tokio::test]
async fn a_refusal_names_the_destination_the_reason_and_the_entry_that_would_allow_it() {
    let egress = egress(&[], &[], &["10.0.0.5"]);
    let text = |text: &'static str| {
        let egress = egress.clone();
        async move { refusal(&egress, text).await.unwrap().to_string() }
    };
    assert_text(
        &text("http://0x7f.1:8080/").await,
        "`127.0.0.1:8080` is refused: the address is not public (loopback); add `127.0.0.1:8080` to `egress.allow` to permit it",
    );
    assert_text(
        &text("http://[::1]/").await,
        "`[::1]:80` is refused: the address is not public (loopback); add `[::1]:80` to `egress.allow` to permit it",
    );
    assert_text(
        &text("https://nas.example/secret?x=y").await,
        "`nas.example:443` is refused: it resolves to 10.0.0.5, which is not public (private); add `nas.example:443` to `egress.allow` to permit it",
    );
    assert_text(
        &text("http://0.0.0.0/").await,
        "`0.0.0.0:80` is refused: the address is not public (unspecified), and no setting can permit it",
    );
    assert_text(
        &text("http://user:secret@example.com/?key=1").await,
        "`http://example.com/` is refused: the URL contains a user name or password; leave it out",
    );
}

#[track_caller]
fn assert_text(text: &str, expected: &str) {
    assert_eq!(text, expected);
}

#[tokio::test]
async fn the_entry_that_a_refusal_suggests_allows_the_destination() {
    for (text, answer) in [
        ("http://127.0.0.1:8080/", "93.184.216.34"),
        ("http://[::1]/", "93.184.216.34"),
        ("http://169.254.169.254/", "93.184.216.34"),
        ("http://example.com:22/", "93.184.216.34"),
        ("http://localhost/", "127.0.0.1"),
        ("http://nas.example/", "10.0.0.5"),
        ("http://nas.example/", "fe80::1"),
    ] {
        let refused = refusal(&egress(&[], &[], &[answer]), text).await.unwrap();
        let message = refused.to_string();
        let suggestion = message.split_once("; add ").unwrap().1;
        let entries: Vec<&str> = suggestion.split('`').skip(1).step_by(2).collect();
        let entries = &entries[..entries.len() - 1];
        assert!(passes(entries, &[answer], text).await, "{text}: {message}");
    }
}

#[tokio::test]
async fn the_connection_uses_the_checked_address_even_if_the_name_changes() {
    let first = Server::start_at("127.0.0.2:0", |_| ok("first")).await;
    let port = first.address.port();
    let second = Server::start_at(&format!("127.0.0.3:{port}"), |_| ok("second")).await;
    let allow = format!("name.example:{port}");
    let answers = ScriptedResolver::new(&["127.0.0.2", "127.0.0.3"]);
    let rules = rules(&[&allow], &[]);
    let egress = Egress::with_resolver(
        rules.clone(),
        EgressLimits::default(),
        Arc::clone(&answers) as _,
    );
    let url = url(&format!("http://name.example:{port}/"));
    let fetched = egress
        .client()
        .get(&url, &HeaderMap::new(), &budget())
        .await
        .unwrap();
    assert_eq!(fetched.body, b"first");
    assert_eq!(answers.lookups.load(Ordering::SeqCst), 1);
    assert_eq!((first.count(), second.count()), (1, 0));
    // Without this check, the second answer is used, which shows that the test can fail.
    let answers = ScriptedResolver::new(&["127.0.0.2", "127.0.0.3"]);
    let egress =
        Egress::with_resolver(rules, EgressLimits::default(), answers).without(Check::SingleLookup);
    let fetched = egress
        .client()
        .get(&url, &HeaderMap::new(), &budget())
        .await
        .unwrap();
    assert_eq!(fetched.body, b"second");
}

#[tokio::test]
async fn the_next_address_is_tried_when_one_does_not_answer() {
    let server = Server::start_at("127.0.0.2:0", |_| ok("here")).await;
    let port = server.address.port();
    let egress = egress(&["name.example"], &[], &["127.0.0.9,127.0.0.2"]);
    let url = url(&format!("http://name.example:{port}/"));
    let fetched = egress
        .client()
        .get(&url, &HeaderMap::new(), &budget())
        .await
        .unwrap();
    assert_eq!(fetched.body, b"here");
}

#[tokio::test]
async fn an_unknown_name_is_not_a_policy_refusal() {
    let egress = egress_with_limits(&[], &[], &[], EgressLimits::default());
    let destination = egress.check(&url("http://name.example/")).unwrap();
    let error = egress.connect(&destination, &budget()).await.unwrap_err();
    assert!(error.refusal().is_none());
    assert_eq!(
        error.to_string(),
        "`name.example:80` cannot be resolved: no such name"
    );
}

#[tokio::test]
async fn a_connection_that_is_not_accepted_times_out() {
    let limits = EgressLimits {
        connect_time: Duration::from_millis(50),
        ..EgressLimits::default()
    };
    // A listener whose queue is full drops further attempts.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    for _ in 0..2000 {
        let attempt = std::net::TcpStream::connect_timeout(&address, Duration::from_millis(20));
        match attempt {
            Ok(stream) => waiting.push(stream),
            Err(_) => break,
        }
    }
    let egress = egress_with_limits(&[&address.to_string()], &[], &[], limits);
    let destination = egress.check(&url(&format!("http://{address}/"))).unwrap();
    let error = egress.connect(&destination, &budget()).await.unwrap_err();
    assert!(matches!(error, EgressError::TimedOut { .. }), "{error}");
}
