//! Addresses of pages.

use lango_net::Url;

/// The host of an address as policies name it: with the port unless it is the scheme's own.
pub(crate) fn host_of(address: &str) -> Option<String> {
    let url = Url::parse(address).ok()?;
    let host = url.host_str()?;
    Some(match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    })
}
