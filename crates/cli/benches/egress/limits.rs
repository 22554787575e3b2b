//! Floods through the tools of the real binary: each must end within a time, with a text that says why, without more
//! requests than the turn may make, and without much memory of lango.

use crate::Extent;
use crate::floods::{self, MOST_OF_A_PAGE};
use crate::report::Report;
use crate::turn::{Caller, Turn};
use crate::world::{HitKind, World};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The most memory that lango may use, in MiB.
const MOST_MEMORY: u64 = 300;
/// Requests and bytes of a turn whose budget is to be used up.
const MOST_REQUESTS: usize = 100;
const MOST_BYTES: u64 = 30 << 20;

/// A flood, and what must come of it.
struct Flood {
    name: &'static str,
    tool: &'static str,
    arguments: Vec<Value>,
    /// One of these is in the last result.
    expected: &'static [&'static str],
    /// Seconds that all calls may take.
    most_seconds: u64,
}

fn fetch(name: &'static str, expected: &'static [&'static str], most_seconds: u64) -> Flood {
    Flood {
        name,
        tool: "search_fetch",
        arguments: vec![json!({ "url": floods::url(name) })],
        expected,
        most_seconds,
    }
}

fn navigate(name: &'static str, expected: &'static [&'static str], most_seconds: u64) -> Flood {
    Flood {
        tool: "browser_navigate",
        ..fetch(name, expected, most_seconds)
    }
}

const BUDGET: &[&str] = &["egress.maxRequests", "egress.maxBytes"];

/// What ends by itself, whatever the budget.
fn bounded(is_long: bool) -> Vec<Flood> {
    let mut all = vec![
        fetch("endless", &["only its beginning was read"], 15),
        fetch("gzip", &["only its beginning was read"], 15),
        fetch("brotli", &["was not asked for"], 5),
        fetch("zstd", &["was not asked for"], 5),
        fetch("redirects", &["more than 10 redirects"], 5),
        fetch("header", &["cannot be read"], 5),
    ];
    if is_long {
        all.push(fetch("pdf", &["words", "within 20 s"], 60));
        // They share the time in which a request must be answered.
        let slow = ["slow-head", "slow-body", "informational"];
        let slow = slow.map(|name| json!({ "url": floods::url(name) }));
        all.push(Flood {
            name: "slow-head, slow-body, informational",
            tool: "search_fetch",
            arguments: slow.into(),
            expected: &["did not answer within 60 s", "egress.maxBytes"],
            most_seconds: 75,
        });
        all.push(navigate("redirects", &["REDIRECTS", "redirects"], 20));
        all.push(navigate("header", &["502", "cannot be read", "Opened"], 20));
        all.push(navigate(
            "slow-head",
            &["did not", "not at rest", "still"],
            75,
        ));
    }
    all
}

/// What uses the budget of its turn up.
fn spending(is_long: bool) -> Vec<Flood> {
    let many = (0..MOST_REQUESTS + 50).map(|number| {
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
            most_seconds: 30,
        },
        Flood {
            name: "endless command",
            tool: "exec",
            arguments: line(format!(
                "curl -s --max-time 30 {} | wc -c; curl -s {small}",
                floods::url("endless")
            )),
            expected: BUDGET,
            most_seconds: 30,
        },
    ];
    if is_long {
        all.push(navigate("images", BUDGET, 40));
        // Chromium opens sockets slowly, and reads no faster than it parses.
        all.push(navigate("sockets", &["Opened", "egress.maxRequests"], 40));
        all.push(navigate(
            "endless",
            &["still loading", "egress.maxBytes"],
            60,
        ));
        // The page is open before the socket has used the budget up; the next one is refused.
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

/// Sends every flood through its tool.
pub fn run(report: &mut Report, extent: Extent, world: &World) {
    println!(
        "\n{:<38} {:<18} {:>7} {:>9} {:>10}",
        "flood", "tool", "seconds", "requests", "MiB, lango"
    );
    let settings = format!(
        "[egress]\nmaxRequests = {MOST_REQUESTS}\nmaxBytes = {}\n",
        1u64 << 30
    );
    let mut turn = Turn::with_settings(&settings);
    let is_chosen = |flood: &Flood| {
        if flood.tool.starts_with("browser") {
            extent.has_browser
        } else {
            extent.has_rest
        }
    };
    for flood in bounded(extent.is_long).into_iter().filter(is_chosen) {
        run_one(report, &mut turn, &flood, world);
    }
    drop(turn);
    let settings = format!("[egress]\nmaxRequests = {MOST_REQUESTS}\nmaxBytes = {MOST_BYTES}\n");
    for flood in spending(extent.is_long).into_iter().filter(is_chosen) {
        // The budget is that of a turn.
        run_one(report, &mut Turn::with_settings(&settings), &flood, world);
    }
}

fn run_one(report: &mut Report, turn: &mut Turn, flood: &Flood, world: &World) {
    world.hits(0, Duration::from_millis(20));
    turn.start_now();
    let started = Instant::now();
    let results = turn.call_all(flood.tool, flood.arguments.clone());
    let took = started.elapsed();
    let arrived = world.hits(usize::MAX, Duration::from_millis(300));
    let requests = arrived
        .iter()
        .filter(|hit| hit.kind == HitKind::World)
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
        let said: String = last.chars().take(600).collect();
        let expected = flood.expected;
        report.fail(format!(
            "{name}: the result has none of {expected:?}: {said}"
        ));
    }
    if took > Duration::from_secs(flood.most_seconds) {
        let most = flood.most_seconds;
        report.fail(format!("{name}: it took {took:?}, more than {most} s"));
    }
    if requests > MOST_REQUESTS {
        report.fail(format!(
            "{name}: {requests} requests arrived, more than {MOST_REQUESTS} (of {MOST_OF_A_PAGE} on a page)"
        ));
    }
    if memory > MOST_MEMORY {
        report.fail(format!(
            "{name}: lango used {memory} MiB, more than {MOST_MEMORY}"
        ));
    }
}
