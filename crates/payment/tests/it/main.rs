//! Payments against nodes that lie or fail, and what the tools refuse. On a chain they are tried by `scripts/payments`.

mod hostile_node;
mod node;
mod tools;
