//! Limits of one request and of one turn.

use std::time::Duration;

/// Limits of requests, with defaults suited to reading web pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressLimits {
    /// Bytes of a response that the client reads; it leaves the rest.
    pub response_bytes: usize,
    /// Bytes that a turn may receive and send.
    pub total_bytes: u64,
    /// Requests and tunnels that a turn may open.
    pub requests: u64,
    /// Time for the DNS lookup and the connection, TLS included.
    pub connect_time: Duration,
    /// Time for a request of the client, redirects included, and for the headers of a response behind the proxy.
    pub request_time: Duration,
    /// Time without a byte of a body.
    pub idle_time: Duration,
    /// Time without a byte in a tunnel of the proxy.
    pub tunnel_idle_time: Duration,
    /// Redirects that the client follows.
    pub redirects: usize,
}

impl Default for EgressLimits {
    fn default() -> Self {
        Self {
            response_bytes: 10 * 1024 * 1024,
            total_bytes: 512 * 1024 * 1024,
            requests: 5_000,
            connect_time: Duration::from_secs(10),
            request_time: Duration::from_secs(60),
            idle_time: Duration::from_secs(30),
            tunnel_idle_time: Duration::from_secs(300),
            redirects: 10,
        }
    }
}
