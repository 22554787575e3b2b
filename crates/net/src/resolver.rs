//! The lookup of names, behind a seam so that tests can answer the same name differently.

use lango_core::BoxFuture;
use std::io;
use std::net::IpAddr;

/// Finds the addresses of a name.
pub trait Resolver: Send + Sync {
    /// All addresses of the name, in the order in which to try them.
    fn lookup<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The resolver of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn lookup<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            let mut addresses: Vec<IpAddr> = found.map(|address| address.ip()).collect();
            addresses.dedup();
            Ok(addresses)
        })
    }
}
