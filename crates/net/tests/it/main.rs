//! The guard, its client and its proxy, over loopback.

mod addresses;
mod budgets;
mod client;
mod guard;
mod hostile_urls;
mod links;
mod patterns;
mod proxy;
mod proxy_limits;
mod support;
mod tls;
