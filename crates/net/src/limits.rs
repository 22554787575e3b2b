//! The limits for one request and for one turn.

use std::time::Duration;

/// The limits for requests. The defaults suit reading web pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressLimits {
    /// How many bytes of a response the client reads. It drops the rest.
    pub response_bytes: usize,
    /// How many bytes a turn may receive and send in total.
    pub total_bytes: u64,
    /// How many requests and tunnels a turn may open.
    pub requests: u64,
    /// The time limit for each of these: the DNS lookup, the connection and the TLS handshake.
    pub connect_time: Duration,
    /// The time limit for a request of the client, including redirects, and for the response headers behind the proxy.
    pub request_time: Duration,
    /// How long a body may pause.
    pub idle_time: Duration,
    /// How long a tunnel of the proxy may be idle.
    pub tunnel_idle_time: Duration,
    /// How many redirects the client follows.
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
