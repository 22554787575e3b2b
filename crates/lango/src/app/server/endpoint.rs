//! The address of a server, and the token that its callers need.

use crate::app::token::server_token;
use crate::app::vault::SERVER_TOKEN;
use crate::app::{App, Failure};
use lango_core::{UserId, is_loopback_host};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;

/// How often to retry listening on a port that is in use, and the pause before each attempt.
const LISTEN_RETRIES: u32 = 20;
const LISTEN_PAUSE: Duration = Duration::from_millis(50);

/// The address of the server, and who may call it.
pub struct Endpoint {
    pub host: String,
    port: u16,
    pub(super) hosts: Vec<String>,
    pub public_url: Option<String>,
    /// The token that callers of A2A must send; `None` if every program on this machine may call.
    pub token: Option<EndpointToken>,
    pub(super) user: UserId,
}

/// The token of an endpoint.
pub struct EndpointToken {
    pub text: String,
    /// Where the token is stored, for display.
    pub location: String,
}

impl EndpointToken {
    /// Returns the token from the file, else the one from the vault, else creates one in the file.
    async fn of(app: &App) -> Result<Self, Failure> {
        let file = app.loaded.paths.server_token();
        let in_vault = if file.exists() {
            None
        } else {
            app.vault.server_token().await?
        };
        Ok(match in_vault {
            Some(text) => Self {
                text,
                location: format!(
                    "in the vault, as {SERVER_TOKEN}; `lango secrets rotate {SERVER_TOKEN}` replaces it with one of your choice"
                ),
            },
            None => Self {
                text: server_token(&file)?,
                location: format!("in {}", file.display()),
            },
        })
    }
}

impl Endpoint {
    /// Returns the configured endpoint, with another host or port if given.
    ///
    /// # Errors
    /// The port is invalid, or the endpoint would serve other machines without a token.
    pub async fn of(app: &App, host: Option<String>, port: Option<u16>) -> Result<Self, Failure> {
        let config = &app.loaded.settings.server;
        let host = host.or_else(|| config.host.clone());
        let host = host.unwrap_or_else(|| "127.0.0.1".to_owned());
        let port = match port {
            Some(port) => port,
            None => u16::try_from(config.port).map_err(|_| {
                let message = format!("server.port is {}; the highest is 65535", config.port);
                Failure::config(message)
            })?,
        };
        if !config.require_token && !is_loopback_host(&host) {
            let message = format!(
                "a server without a token may only listen on this machine, not on `{host}`"
            );
            return Err(Failure::config(message)
                .next("set server.requireToken = true, or server.host = \"127.0.0.1\""));
        }
        let token = if config.require_token {
            Some(EndpointToken::of(app).await?)
        } else {
            None
        };
        let mut hosts = config.hosts.clone();
        if !matches!(host.as_str(), "0.0.0.0" | "::") {
            hosts.push(host.clone());
        }
        hosts.extend(
            config
                .public_url
                .as_deref()
                .and_then(host_of)
                .map(str::to_owned),
        );
        Ok(Self {
            host,
            port,
            hosts,
            public_url: config.public_url.clone(),
            token,
            user: config.user.clone(),
        })
    }

    /// Listens on the port.
    pub async fn listen(&self) -> Result<TcpListener, Failure> {
        let address = (self.host.as_str(), self.port);
        let mut bound = TcpListener::bind(address).await;
        for _ in 0..LISTEN_RETRIES {
            match &bound {
                // A command that a killed server had just started still occupies the port for a moment.
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    tokio::time::sleep(LISTEN_PAUSE).await;
                    bound = TcpListener::bind(address).await;
                }
                _ => break,
            }
        }
        bound.map_err(|error| {
            let message = format!("cannot listen on {}:{}: {error}", self.host, self.port);
            let failure = Failure::config(message);
            match error.kind() {
                io::ErrorKind::AddrInUse => failure.next(
                    "if lango already runs there, `lango tokens link` prints a link to its page; `--port 0` picks a free port",
                ),
                _ => failure.next(
                    "run `lango config show --origin` to see where server.host and server.port are set",
                ),
            }
        })
    }

    /// Returns the address that callers use.
    pub fn url(&self, address: SocketAddr) -> String {
        match &self.public_url {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => format!("http://{address}"),
        }
    }
}

/// Returns the host of a URL.
fn host_of(url: &str) -> Option<&str> {
    let rest = url.split_once("://")?.1;
    rest.split(['/', '?', '#']).next()
}
