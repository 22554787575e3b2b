//! Hosts of URLs.

use lango_net::Url;

/// Returns the host of a URL in the form that policies use: with the port unless it is the scheme's default.
pub(crate) fn host_of(address: &str) -> Option<String> {
    let url = Url::parse(address).ok()?;
    let host = url.host_str()?;
    Some(match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    })
}
