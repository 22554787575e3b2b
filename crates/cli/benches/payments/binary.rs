//! Payments through the real binary: callers of three servers ask for them, a person allows each with `lango approvals`, and
//! servers and answering processes are killed.

use super::chain::Chain;
use super::common::random::Random;

pub fn run(_count: u64, _chain: &Chain, _random: &mut Random) -> Vec<String> {
    Vec::new()
}
