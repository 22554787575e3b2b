//! The sandbox's inner helper as a separate program for this crate's tests. The lango binary is its own helper.

fn main() {
    lango_sandbox::enter(std::env::args_os().skip(1))
}
