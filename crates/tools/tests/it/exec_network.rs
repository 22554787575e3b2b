//! Commands that may contact some hosts: every program uses the proxy of its command, and the result lists refused
//! destinations.

use crate::command_fixture::{CommandFixture, FixtureOptions};
use lango_core::{Caller, TurnId};
use lango_net::{Egress, EgressLimits, EgressRules, HostPattern};
use lango_testkit::tool::caller;
use lango_tools::CommandProxy;
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

/// Starts a web server on this machine that answers every request with one line; returns its port.
fn serve(answer: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let lines = BufReader::new(&stream).lines();
            let head = lines.map_while(Result::ok);
            if head.take_while(|line| !line.is_empty()).count() == 0 {
                continue;
            }
            let length = answer.len();
            let _ = write!(
                &stream,
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{answer}"
            );
        }
    });
    port
}

fn hosts(texts: &[String]) -> Vec<HostPattern> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// Creates a fixture whose commands may contact the listed hosts; `allowed` are the hosts in the egress rules.
fn fixture(listed: &[String], allowed: &[String], limits: EgressLimits) -> CommandFixture {
    let rules = EgressRules {
        allow: hosts(allowed),
        deny: Vec::new(),
    };
    CommandFixture::with(FixtureOptions {
        proxy: Some(CommandProxy {
            egress: Egress::new(rules, limits),
            hosts: hosts(listed),
        }),
        ..FixtureOptions::default()
    })
}

fn fixture_for(port: u16) -> CommandFixture {
    let own = [format!("127.0.0.1:{port}")];
    fixture(&own, &own, EgressLimits::default())
}

#[test]
fn programs_reach_a_listed_host_through_the_proxy() {
    let port = serve("answered");
    let fixture = fixture_for(port);
    let url = format!("http://127.0.0.1:{port}/");
    for command in [
        format!("curl -sS {url}"),
        // A tunnel, as for `https`.
        format!("curl -sS --proxytunnel {url}"),
        format!("python3 -c 'import urllib.request as u; print(u.urlopen(\"{url}\").read().decode())'"),
        // Without the proxy nothing is reachable.
        format!("! curl -sS --noproxy '*' -m 5 {url} 2>/dev/null && echo answered"),
        "test \"$NO_PROXY$no_proxy\" = '' && test \"$https_proxy\" = \"$HTTPS_PROXY\" && echo answered".to_owned(),
    ] {
        let text = fixture.text("exec", json!({"command": command}));
        assert!(text.contains("exit code 0"), "{command}: {text}");
        assert!(text.contains("answered"), "{command}: {text}");
        assert!(!text.contains("network:"), "{command}: {text}");
    }
}

#[test]
fn git_uses_the_proxy() {
    let port = serve("0123456789012345678901234567890123456789\trefs/heads/main\n");
    let text = fixture_for(port).text(
        "exec",
        json!({"command": format!("git ls-remote http://127.0.0.1:{port}/repository")}),
    );
    assert!(text.contains("refs/heads/main"), "{text}");
}

#[test]
fn a_host_that_is_not_listed_is_refused_and_reported() {
    let port = serve("answered");
    let other = serve("of another");
    let fixture = fixture_for(port);
    let command = format!(
        "for i in 1 2; do curl -sS http://127.0.0.1:{other}/; done; curl -sS https://example.com/"
    );
    let text = fixture.text("exec", json!({"command": command}));
    assert!(!text.contains("of another"), "{text}");
    let refused = format!("[network: `127.0.0.1:{other}` is refused: it is not listed");
    assert!(text.contains(&refused), "{text}");
    assert!(text.contains("(2 times)"), "{text}");
    assert!(
        text.contains("[network: `example.com:443` is refused"),
        "{text}"
    );
}

#[test]
fn a_listed_host_in_a_private_network_must_also_be_allowed_by_the_egress_rules() {
    let listed = ["10.0.0.1".to_owned()];
    let fixture = fixture(&listed, &[], EgressLimits::default());
    let text = fixture.text("exec", json!({"command": "curl -sS http://10.0.0.1/"}));
    assert!(
        text.contains("[network: `10.0.0.1:80` is refused: the address is not public"),
        "{text}"
    );
}

#[test]
fn a_background_job_has_its_proxy_until_it_ends() {
    let port = serve("answered");
    let fixture = fixture_for(port);
    let command = format!(
        "while ! test -e go; do sleep 0.05; done; curl -sS http://127.0.0.1:{port}/; curl -sS http://10.0.0.1/; echo; echo waiting; sleep 600"
    );
    let started = fixture.text("exec_bg", json!({"command": command}));
    assert!(started.contains("job_1"), "{started}");
    std::fs::write(fixture.inside("go"), "").unwrap();
    let status = json!({"job": "job_1"});
    let text = fixture.wait_for("exec_status", &status, |text| text.contains("\nwaiting"));
    assert!(text.contains("answered"), "{text}");
    assert!(
        text.contains("[network: `10.0.0.1:80` is refused"),
        "{text}"
    );
    let text = fixture.text("exec_stop", status);
    assert!(
        text.contains("[network: `10.0.0.1:80` is refused"),
        "{text}"
    );
}

#[test]
fn all_commands_of_a_turn_share_its_request_limit() {
    let port = serve("answered");
    let own = [format!("127.0.0.1:{port}")];
    let limits = EgressLimits {
        requests: 2,
        ..EgressLimits::default()
    };
    let fixture = fixture(&own, &own, limits);
    let command = json!({"command": format!("curl -sS http://127.0.0.1:{port}/")});
    for _ in 0..2 {
        assert!(fixture.text("exec", command.clone()).contains("answered"));
    }
    let text = fixture.text("exec", command.clone());
    assert!(!text.contains("answered"), "{text}");
    assert!(text.contains("[network: `127.0.0.1:"), "{text}");
    let next = Caller {
        turn: TurnId::new("t_next"),
        ..caller()
    };
    let text = fixture.call_as(&next, "exec", command).unwrap();
    assert!(text.contains("answered"), "{text}");
}

#[test]
fn the_preview_lists_the_hosts() {
    let listed = ["example.com".to_owned(), "*.example.org:8080".to_owned()];
    let fixture = fixture(&listed, &[], EgressLimits::default());
    let preview = fixture.preview("exec", json!({"command": "make"})).unwrap();
    assert!(
        preview.contains("network: only example.com, *.example.org:8080\n"),
        "{preview}"
    );
}
