//! Tests of the egress guard, its client and its proxy, over loopback.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod addresses;
mod budgets;
mod client;
mod guard;
mod hostile_urls;
mod links;
mod patterns;
mod proxy;
mod proxy_limits;
mod secrets;
mod support;
mod tls;
