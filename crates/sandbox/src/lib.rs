//! The launcher for commands that nobody vouches for, and the policy that says what they may touch.

mod policy;

pub use policy::{Access, Network, Policy, is_kept_name};
