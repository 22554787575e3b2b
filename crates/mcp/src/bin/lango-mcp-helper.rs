//! The sandbox's inner helper as a separate program, for this crate's tests. In production, the lango binary itself is
//! the helper.

fn main() {
    lango_sandbox::enter(std::env::args_os().skip(1))
}
