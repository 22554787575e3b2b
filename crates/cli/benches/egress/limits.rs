//! Sends floods through the tools of the real binary. Each call must end in time with a result that says why, and must
//! stay within the turn's limit of requests and within a limit of memory.

use crate::Extent;
use crate::floods::{self, REQUESTS_PER_PAGE};
use crate::report::Report;
use crate::test_network::{HitKind, TestNetwork};
use crate::turn::{ScriptedTurn, ToolCaller};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Maximum memory of lango, in MiB.
const MAX_MEMORY: u64 = 300;
/// `egress.maxRequests` of a turn.
const MAX_REQUESTS: usize = 100;
/// `egress.maxBytes` of a turn whose budget is to be exhausted.
const MAX_BYTES: u64 = 30 << 20;

/// A flood and its expected result.
struct Flood {
    name: &'static str,
    tool: &'static str,
    arguments: Vec<Value>,
    /// The last result must contain one of these texts.
    expected: &'static [&'static str],
    /// Maximum time for all calls together.
    max_seconds: u64,
}

fn fetch(name: &'static str, expected: &'static [&'static str], max_seconds: u64) -> Flood {
    Flood {
        name,
        tool: "search_fetch",
        arguments: vec![json!({ "url": floods::url(name) })],
        expected,
        max_seconds,
    }
}

fn navigate(name: &'static str, expected: &'static [&'static str], max_seconds: u64) -> Flood {
    Flood {
        tool: "browser_navigate",
        ..fetch(name, expected, max_seconds)
    }
}

const BUDGET: &[&str] = &["egress.maxRequests", "egress.maxBytes"];

/// Returns the floods that end before the budget is exhausted.
fn bounded(is_long: bool) -> Vec<Flood> {
    let mut all = vec![
        fetch("endless", &["only its start was read"], 15),
        fetch("gzip", &["only its start was read"], 15),
        fetch("brotli", &["did not ask for"], 5),
        fetch("zstd", &["did not ask for"], 5),
        fetch("redirects", &["more than 10 redirects"], 5),
        fetch("header", &["cannot be read"], 5),
    ];
    if is_long {
        all.push(fetch("pdf", &["words", "within 20 s"], 60));
        // These run concurrently, so they share the request timeout.
        let slow = ["slow-head", "slow-body", "informational"];
        let slow = slow.map(|name| json!({ "url": floods::url(name) }));
        all.push(Flood {
            name: "slow-head, slow-body, informational",
            tool: "search_fetch",
            arguments: slow.into(),
            expected: &["did not answer within 60 s", "egress.maxBytes"],
            max_seconds: 75,
        });
        all.push(navigate("redirects", &["REDIRECTS", "redirects"], 20));
        all.push(navigate("header", &["502", "cannot be read", "Opened"], 20));
        all.push(navigate(
            "slow-head",
            &["did not", "not settled", "still"],
            75,
        ));
    }
    all
}

/// Returns the floods that exhaust the budget of their turn.
fn exhausting(is_long: bool) -> Vec<Flood> {
    let many = (0..MAX_REQUESTS + 50).map(|number| {
        let url = format!("{}?{number}", floods::url("small"));
        json!({ "url": url, "fresh": true })
    });
    let line = |command: String| vec![json!({ "command": command })];
    let small = floods::url("small");
    let mut all = vec![
        Flood {
            arguments: many.collect(),
            ..fetch("many pages", BUDGET, 20)
        },
        Flood {
            arguments: (0..6)
                .map(|number| json!({ "url": format!("{}?{number}", floods::url("endless")) }))
                .collect(),
            ..fetch("endless pages", BUDGET, 30)
        },
        Flood {
            name: "commands",
            tool: "exec",
            arguments: line(format!(
                "seq 300 | xargs -P 8 -I N curl -s --max-time 3 '{small}?N' | tail -c 300; true"
            )),
            expected: BUDGET,
            max_seconds: 30,
        },
        Flood {
            name: "endless command",
            tool: "exec",
            arguments: line(format!(
                "curl -s --max-time 30 {} | wc -c; curl -s {small}",
                floods::url("endless")
            )),
            expected: BUDGET,
            max_seconds: 30,
        },
    ];
    if is_long {
        all.push(navigate("images", BUDGET, 40));
        // Chromium opens sockets slowly, and reads only as fast as it parses.
        all.push(navigate("sockets", &["Opened", "egress.maxRequests"], 40));
        all.push(navigate(
            "endless",
            &["still loading", "egress.maxBytes"],
            60,
        ));
        // The page loads before the socket has exhausted the budget, but the next page is refused.
        let pages = ["talking-socket", "small"].map(|name| json!({ "url": floods::url(name) }));
        all.push(Flood {
            arguments: pages.into(),
            ..navigate("talking-socket", BUDGET, 40)
        });
        let download = json!({ "url": floods::url("download"), "download": true });
        all.push(Flood {
            name: "endless download",
            arguments: vec![download],
            ..navigate("download", BUDGET, 60)
        });
    }
    all
}

/// Runs every flood through its tool.
pub(crate) fn run(report: &mut Report, extent: Extent, network: &TestNetwork) {
    println!(
        "\n{:<38} {:<18} {:>7} {:>9} {:>10}",
        "flood", "tool", "seconds", "requests", "MiB, lango"
    );
    let settings = format!(
        "[egress]\nmaxRequests = {MAX_REQUESTS}\nmaxBytes = {}\n",
        1u64 << 30
    );
    let mut turn = ScriptedTurn::with_settings(&settings);
    let is_chosen = |flood: &Flood| {
        if flood.tool.starts_with("browser") {
            extent.has_browser
        } else {
            extent.has_rest
        }
    };
    for flood in bounded(extent.is_long).into_iter().filter(is_chosen) {
        run_one(report, &mut turn, &flood, network);
    }
    drop(turn);
    let settings = format!("[egress]\nmaxRequests = {MAX_REQUESTS}\nmaxBytes = {MAX_BYTES}\n");
    for flood in exhausting(extent.is_long).into_iter().filter(is_chosen) {
        // A new turn for each, because the budget is per turn.
        run_one(
            report,
            &mut ScriptedTurn::with_settings(&settings),
            &flood,
            network,
        );
    }
}

fn run_one(report: &mut Report, turn: &mut ScriptedTurn, flood: &Flood, network: &TestNetwork) {
    network.hits(0, Duration::from_millis(20));
    turn.start_now();
    let started = Instant::now();
    let results = turn.call_all(flood.tool, flood.arguments.clone());
    let took = started.elapsed();
    let arrived = network.hits(usize::MAX, Duration::from_millis(300));
    let requests = arrived
        .iter()
        .filter(|hit| hit.kind == HitKind::Network)
        .count();
    let memory = turn.peak_memory();
    let name = flood.name;
    println!(
        "{name:<38} {:<18} {:>7.1} {requests:>9} {memory:>10}",
        flood.tool,
        took.as_secs_f32()
    );
    let last = results.last().map_or("", String::as_str);
    if !flood.expected.iter().any(|text| last.contains(text)) {
        let text: String = last.chars().take(600).collect();
        let expected = flood.expected;
        report.fail(format!(
            "{name}: the result contains none of {expected:?}: {text}"
        ));
    }
    if took > Duration::from_secs(flood.max_seconds) {
        let max = flood.max_seconds;
        report.fail(format!("{name}: it took {took:?}, more than {max} s"));
    }
    if requests > MAX_REQUESTS {
        report.fail(format!(
            "{name}: {requests} requests arrived, more than {MAX_REQUESTS} (of {REQUESTS_PER_PAGE} on a page)"
        ));
    }
    if memory > MAX_MEMORY {
        report.fail(format!(
            "{name}: lango used {memory} MiB, more than {MAX_MEMORY}"
        ));
    }
}
