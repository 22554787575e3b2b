//! Intercepts connections of a program that can use secrets: after CONNECT, the proxy terminates TLS with its own
//! certificate, so that it sees every request.
//!
//! The target of CONNECT decides where requests go. The TLS server name and the `Host` of each request must match it. A
//! connection that is not TLS, to a host without a bound secret, becomes a plain tunnel.

use super::credentials::Credentials;
use super::exchange::Exchange;
use super::{
    ConnectionPermit, HEADER_TIME, ProxyBody, ProxyError, Shared, Stop, serve_http, spawn_until,
    tunnel,
};
use crate::budget::Budget;
use crate::destination::{Destination, Host, name_of};
use crate::error::{Refusal, RefusalReason};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::header::UPGRADE;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::server::Acceptor;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;
use url::Url;

/// The first byte of a TLS connection: the content type of a handshake record.
const HANDSHAKE: u8 = 0x16;
/// How long to wait for the client's first byte on a connection to a host without secrets. After that the proxy
/// connects to the host, and waits for either side to send first.
const FIRST_BYTE_TIME: Duration = Duration::from_secs(3);

/// An intercepted connection and its target.
#[derive(Clone)]
struct Connection {
    shared: Arc<Shared>,
    credentials: Credentials,
    budget: Budget,
    stopped: Stop,
    url: Url,
    destination: Destination,
}

/// Checks the target of a CONNECT request and responds. The connection is served once the response is sent.
pub(super) async fn open(
    request: Request<Incoming>,
    shared: &Arc<Shared>,
    credentials: Credentials,
    budget: Budget,
    stopped: Stop,
    permit: ConnectionPermit,
) -> Result<Response<ProxyBody>, ProxyError> {
    let url = tunnel::target(&request)?;
    let destination = shared.admit(&url)?;
    shared.egress.resolve(&destination).await?;
    let connection = Connection {
        shared: Arc::clone(shared),
        credentials,
        budget,
        stopped: stopped.clone(),
        url,
        destination,
    };
    spawn_until(stopped, async move {
        let _permit = permit;
        if let Ok(upgraded) = hyper::upgrade::on(request).await {
            // The result does not matter: both sides notice the end themselves.
            let _ = connection.serve(TokioIo::new(upgraded)).await;
        }
    });
    let body = Empty::new().map_err(|never| match never {});
    Ok(Response::new(body.boxed_unsync()))
}

impl Connection {
    async fn serve<C>(mut self, mut client: C) -> io::Result<()>
    where
        C: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let host = self.destination.host().to_string();
        let is_bound = self.credentials.is_bound_host(&host);
        let limit = if is_bound {
            HEADER_TIME
        } else {
            FIRST_BYTE_TIME
        };
        let mut first = [0];
        let mut server = None;
        let mut read = timeout(limit, client.read(&mut first)).await;
        if read.is_err() && !is_bound {
            let connected = server.insert(self.connect().await?);
            let idle_time = self.shared.egress.limits().tunnel_idle_time;
            let mut server_first = [0];
            read = tokio::select! {
                biased;
                read = timeout(idle_time, client.read(&mut first)) => read,
                // A TLS server never sends first.
                count = connected.peek(&mut server_first) => match count? {
                    0 => return Ok(()),
                    _ => return self.tunnel(client, server).await,
                },
            };
        }
        let length = read.unwrap_or(Ok(0))?;
        if length == 0 {
            return Ok(());
        }
        let (reader, writer) = tokio::io::split(client);
        let client = tokio::io::join(io::Cursor::new(first).chain(reader), writer);
        if first[0] == HANDSHAKE {
            let client = self.accept(client).await?;
            self.serve_requests(client).await;
        } else if is_bound {
            // Treat it as plain HTTP. Clients of other protocols get an HTTP error.
            self.destination = self.destination.without_tls();
            self.url =
                Url::parse(&format!("http://{}/", self.destination)).map_err(io::Error::other)?;
            self.serve_requests(client).await;
        } else {
            self.tunnel(client, server).await?;
        }
        Ok(())
    }

    async fn connect(&self) -> io::Result<TcpStream> {
        let connected = self.shared.egress.connect(&self.destination, &self.budget);
        connected.await.map_err(io::Error::other)
    }

    /// Tunnels a connection that is not TLS.
    async fn tunnel<C>(self, client: C, server: Option<TcpStream>) -> io::Result<()>
    where
        C: AsyncRead + AsyncWrite + Unpin,
    {
        let server = match server {
            Some(server) => server,
            None => self.connect().await?,
        };
        tunnel::run(client, server, &self.shared, self.budget, &self.destination).await;
        Ok(())
    }

    /// Accepts TLS for the target of the connection.
    async fn accept<C>(&self, client: C) -> io::Result<TlsStream<C>>
    where
        C: AsyncRead + AsyncWrite + Unpin,
    {
        let config = self
            .credentials
            .ca()
            .server_config(self.destination.host())?;
        let limit = self.shared.egress.limits().connect_time;
        let handshake = async {
            let start = LazyConfigAcceptor::new(Acceptor::default(), client).await?;
            let name = start.client_hello().server_name().map(str::to_owned);
            if !self.is_target_name(name.as_deref()) {
                let name = name.unwrap_or_default();
                let refusal = self.refuse(RefusalReason::OtherHost { name });
                self.shared.record(&refusal);
                return Err(io::Error::other(refusal));
            }
            start.into_stream(config).await
        };
        timeout(limit, handshake).await?
    }

    /// Returns whether a TLS server name matches the target. If the target is an address, there must be no server name.
    fn is_target_name(&self, name: Option<&str>) -> bool {
        match (self.destination.host(), name) {
            (Host::Name(own), Some(name)) => name_of(name).as_deref() == Some(own),
            (Host::Name(_), None) => false,
            (Host::Address(_), name) => name.is_none(),
        }
    }

    async fn serve_requests<C>(&self, client: C)
    where
        C: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        serve_http(client, |request| {
            let connection = self.clone();
            async move {
                let answered = connection.answer(request).await;
                answered.unwrap_or_else(|failure| connection.shared.answer_error(failure))
            }
        })
        .await;
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Response<ProxyBody>, ProxyError> {
        if [Method::CONNECT, Method::TRACE].contains(request.method()) {
            let text = "the proxy does not forward this method";
            return Err(ProxyError::Request(StatusCode::METHOD_NOT_ALLOWED, text));
        }
        if request.headers().contains_key(UPGRADE) {
            return Err(self.refuse(RefusalReason::OtherProtocol).into());
        }
        let exchange = Exchange {
            shared: &self.shared,
            url: self.url.clone(),
            destination: self.destination.clone(),
            budget: self.budget.clone(),
            stopped: self.stopped.clone(),
        };
        exchange.run(request).await
    }

    fn refuse(&self, reason: RefusalReason) -> Refusal {
        Refusal::new(self.destination.to_string(), reason)
    }
}
