//! `tools.exec.network` as a list, through the real binary: commands can contact only those hosts, through a proxy.

use crate::lango::Lango;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

const ALLOW: &str = r#"approval.rules=[{action="allow"}]"#;

/// Starts a web server on loopback that answers every request with one word. Returns its address.
fn serve(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let lines = BufReader::new(&stream).lines();
            let head = lines.map_while(Result::ok);
            if head.take_while(|line| !line.is_empty()).count() > 0 {
                let length = answer.len();
                let _ = write!(
                    &stream,
                    "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{answer}"
                );
            }
        }
    });
    address
}

/// Runs a script from a file, because the offline rules would treat a question with a URL as a web request.
fn exec(lango: &Lango, flags: &[String], script: &str) -> String {
    lango.file("ask.sh", script);
    let mut arguments = vec!["-c", ALLOW];
    arguments.extend(flags.iter().flat_map(|flag| ["-c", flag.as_str()]));
    arguments.extend(["run", "-q", "run `sh ask.sh`"]);
    lango.run(&arguments).ok().stdout
}

#[test]
fn commands_contact_the_listed_hosts_and_the_result_says_what_was_refused() {
    let (listed, other) = (serve("listed"), serve("other"));
    let lango = Lango::new();
    let flags = [
        format!("tools.exec.network=[\"{listed}\"]"),
        format!("egress.allow=[\"{listed}\", \"{other}\"]"),
    ];
    let line = format!("curl -sS http://{listed}/; echo; curl -sS http://{other}/");
    let printed = exec(&lango, &flags, &line);
    assert!(printed.contains("\nlisted\n"), "{printed}");
    assert!(!printed.contains("\nother"), "{printed}");
    let refused = format!("[network: `{other}` is refused: it is not listed");
    assert!(printed.contains(&refused), "{printed}");
    // The host is listed for commands, but not in `egress.allow`.
    let printed = exec(&lango, &flags[..1], &format!("curl -sS http://{listed}/"));
    assert!(!printed.contains("\nlisted"), "{printed}");
    assert!(
        printed.contains("to `egress.allow` to permit it"),
        "{printed}"
    );
    let reach = lango.run(&["-c", &flags[0], "doctor"]).ok().stdout;
    let expected = format!("network: only {listed} (tools.exec.network)");
    assert!(reach.contains(&expected), "{reach}");
}

#[test]
fn an_untrusted_project_cannot_list_hosts() {
    let listed = serve("listed");
    let lango = Lango::new();
    lango.file(
        "lango.toml",
        format!("tools.exec.network = [\"{listed}\"]\negress.allow = [\"{listed}\"]\n"),
    );
    let printed = exec(&lango, &[], &format!("curl -sS -m 5 http://{listed}/"));
    assert!(!printed.contains("\nlisted"), "{printed}");
    lango.run(&["config", "trust", "--yes"]).ok();
    let printed = exec(&lango, &[], &format!("curl -sS -m 5 http://{listed}/"));
    assert!(printed.contains("\nlisted"), "{printed}");
}
