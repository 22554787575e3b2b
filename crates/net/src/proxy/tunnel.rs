//! CONNECT tunnels. The proxy copies and counts bytes in both directions until one side closes, or both are idle for
//! too long.

use super::{ConnectionPermit, ProxyBody, ProxyError, Shared, Stop, spawn_until};
use crate::budget::Budget;
use crate::destination::Destination;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, copy_bidirectional};
use tokio::net::TcpStream;
use url::Url;

/// Connects to the target of a CONNECT request and responds. The tunnel starts once the response is sent.
pub(super) async fn open(
    request: Request<Incoming>,
    shared: &Arc<Shared>,
    budget: Budget,
    stopped: Stop,
    permit: ConnectionPermit,
) -> Result<Response<ProxyBody>, ProxyError> {
    let url = target(&request)?;
    let destination = shared.admit(&url)?;
    let stream = shared.egress.connect(&destination, &budget).await?;
    let shared = Arc::clone(shared);
    spawn_until(stopped, async move {
        let _permit = permit;
        if let Ok(upgraded) = hyper::upgrade::on(request).await {
            run(
                TokioIo::new(upgraded),
                stream,
                &shared,
                budget,
                &destination,
            )
            .await;
        }
    });
    let body = Empty::new().map_err(|never| match never {});
    Ok(Response::new(body.boxed_unsync()))
}

/// Returns the target as a URL, so that all hosts go through the same parser.
pub(super) fn target(request: &Request<Incoming>) -> Result<Url, ProxyError> {
    let bad = ProxyError::Request(
        StatusCode::BAD_REQUEST,
        "CONNECT needs a host and a port, such as `example.com:443`",
    );
    let authority = request.uri().authority();
    let Some(authority) = authority.filter(|authority| authority.port_u16().is_some()) else {
        return Err(bad);
    };
    Url::parse(&format!("https://{authority}/")).map_err(|_| bad)
}

/// Copies bytes between a client and its destination.
pub(super) async fn run<C>(
    client: C,
    server: TcpStream,
    shared: &Arc<Shared>,
    budget: Budget,
    destination: &Destination,
) where
    C: AsyncRead + AsyncWrite + Unpin,
{
    let idle_time = shared.egress.limits().tunnel_idle_time;
    let meter = Meter {
        shared: Arc::clone(shared),
        budget,
        destination: destination.to_string(),
        bytes: AtomicU64::new(0),
    };
    let mut client = MeteredStream {
        stream: client,
        meter: &meter,
    };
    let mut server = MeteredStream {
        stream: server,
        meter: &meter,
    };
    tokio::select! {
        // The result does not matter: both sides notice the end themselves.
        _ = copy_bidirectional(&mut client, &mut server) => {}
        () = wait_until_idle(&meter, idle_time) => {}
    }
}

/// Waits until the idle time has passed without a byte. Returns at most twice the idle time after the last byte.
async fn wait_until_idle(meter: &Meter, idle_time: Duration) {
    let mut before = meter.bytes.load(Ordering::Relaxed);
    loop {
        tokio::time::sleep(idle_time).await;
        let now = meter.bytes.load(Ordering::Relaxed);
        if now == before {
            return;
        }
        before = now;
    }
}

struct Meter {
    shared: Arc<Shared>,
    budget: Budget,
    destination: String,
    bytes: AtomicU64,
}

/// A stream that counts bytes when they are read, so that each byte of the tunnel counts once.
struct MeteredStream<'a, S> {
    stream: S,
    meter: &'a Meter,
}

impl<S: AsyncRead + Unpin> AsyncRead for MeteredStream<'_, S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let count = buffer.filled().len() - before;
        let meter = self.meter;
        meter.bytes.fetch_add(count as u64, Ordering::Relaxed);
        let counted = meter.budget.take_bytes(count, &meter.destination);
        Poll::Ready(counted.map_err(|refusal| {
            meter.shared.record(&refusal);
            io::Error::other(refusal)
        }))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for MeteredStream<'_, S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
