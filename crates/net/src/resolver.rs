//! DNS lookups behind a trait, so that tests can return different answers for the same name.

use lango_core::BoxFuture;
use std::io;
use std::net::IpAddr;

/// A source of addresses for host names.
pub trait Resolver: Send + Sync {
    /// Returns all addresses of the name, in the order in which to try them.
    fn lookup<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The resolver of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn lookup<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let results = tokio::net::lookup_host((name, 0)).await?;
            let mut addresses: Vec<IpAddr> = results.map(|address| address.ip()).collect();
            addresses.dedup();
            Ok(addresses)
        })
    }
}
