//! Tries to get out of the sandbox.

fn main() {}
