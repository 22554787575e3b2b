//! HTTP clients for configured services. They follow no redirects, use no proxy for this machine, and resolve names in
//! a way that does not delay the exit of the process.

use super::plain_http::is_this_machine;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, redirect};
use std::error::Error;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};
use url::Url;

/// The options of a client.
#[derive(Debug, Clone, Copy)]
pub struct ClientOptions<'a> {
    pub connect_timeout: Duration,
    /// How long an idle connection stays open. It should be shorter than the idle timeout of the service: if the
    /// service closes the connection first, the client may not know whether a request has arrived.
    pub idle_connection: Duration,
    /// Addresses that have been checked. If there are any, the client connects only to these, whatever the name
    /// resolves to later. It then uses no proxy, because a proxy would resolve the name again.
    pub addresses: Option<&'a [SocketAddr]>,
}

impl Default for ClientOptions<'_> {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            idle_connection: Duration::from_secs(60),
            addresses: None,
        }
    }
}

/// Creates a client for the service at a URL. It follows no redirects, because a request for one host must not reach
/// another.
pub fn service_client(url: &Url, options: ClientOptions<'_>) -> Result<Client, String> {
    // Fails if another part of the process has installed a crypto provider; any of them works.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .connect_timeout(options.connect_timeout)
        .pool_idle_timeout(options.idle_connection)
        .redirect(redirect::Policy::none())
        .dns_resolver(SystemNames)
        .user_agent(concat!("lango/", env!("CARGO_PKG_VERSION")));
    if is_this_machine(url) || options.addresses.is_some() {
        builder = builder.no_proxy();
    }
    if let Some(addresses) = options.addresses {
        let Some(host) = url.host_str().filter(|_| !addresses.is_empty()) else {
            return Err("the host has no address that may be contacted".to_owned());
        };
        builder = builder.resolve_to_addrs(host, addresses);
    }
    builder.build().map_err(|error| root_cause(&error))
}

/// Returns the innermost cause of an error, which is the most specific one and does not contain the URL.
pub fn root_cause(error: &reqwest::Error) -> String {
    let Some(mut cause) = error.source() else {
        // Without a cause the error would print the URL, which may contain a key.
        return describe_kind(error).to_owned();
    };
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

fn describe_kind(error: &reqwest::Error) -> &'static str {
    if error.is_timeout() {
        "timed out"
    } else if error.is_connect() {
        "cannot connect"
    } else if error.is_builder() {
        "the request is invalid"
    } else {
        "the connection closed early"
    }
}

/// Resolves names with the system's resolver, each in a separate thread.
///
/// A lookup cannot be cancelled, and may take half a minute without a network. In the runtime's thread pool it would
/// delay the exit of the process for that long. A detached thread does not.
struct SystemNames;

/// Limits the threads that look names up at the same time.
static LOOKUPS: Semaphore = Semaphore::const_new(64);

impl Resolve for SystemNames {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let permit = LOOKUPS.acquire().await?;
            let (sender, receiver) = oneshot::channel();
            let look_up = move || {
                let _permit = permit;
                // Fails if the request has timed out in the meantime.
                let _ = sender.send((name.as_str(), 0).to_socket_addrs());
            };
            std::thread::Builder::new()
                .name("name lookup".to_owned())
                .spawn(look_up)?;
            let addresses = receiver
                .await
                .map_err(|_| io::Error::other("the name lookup failed unexpectedly"))??;
            Ok(Box::new(addresses) as Addrs)
        })
    }
}
