//! Measures turns while another client has many pending approvals, also after a restart.

use super::client::{ASKING, Load};
use super::server::{Server, Setup};
use std::time::Duration;

const WORK: Load = Load {
    clients: 16,
    turns: 25,
};

/// How long to wait for the memory updates that run in the background after a turn.
const SETTLING: Duration = Duration::from_secs(10);

pub(crate) fn run(pending: usize) {
    let mut setup = Setup::new(Duration::from_millis(5));
    setup.needs_approval = true;
    let mut server = Server::start(&setup, None);
    server.load(WORK, "warm");
    work(&server, "before");
    let burst = Load {
        clients: pending,
        turns: 1,
    };
    // Baseline: a burst without approvals fragments the heap too.
    server.load(burst, "burst");
    std::thread::sleep(SETTLING);
    work(&server, "after a burst");
    let asked = server.load(burst, ASKING);
    println!(
        "{} calls wait for an approval, {} were refused",
        asked.waiting, asked.refused
    );
    assert_eq!(asked.waiting, pending);
    work(&server, "right after");
    std::thread::sleep(SETTLING);
    work(&server, "while they wait");
    server.restart();
    server.load(WORK, "warm again");
    work(&server, "after a restart");
}

fn work(server: &Server, when: &str) {
    let result = server.load(WORK, when);
    let (rate, p50, p99) = (result.per_second, result.p50, result.p99);
    let refused = result.refused;
    println!(
        "{when:<18} {rate:>6.0} turns/s, p50 {p50:>6.1} ms, p99 {p99:>6.1} ms, {refused} refused"
    );
    assert_eq!((refused, result.waiting), (0, 0));
}
