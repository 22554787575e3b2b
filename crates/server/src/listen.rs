//! The listener: accepts connections up to a limit, closes those whose headers arrive too slowly, and lets open
//! connections finish at shutdown.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

/// The limits for connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// The maximum number of open connections. Further ones wait in the backlog of the socket.
    pub connections: usize,
    /// The time limit from the first byte of a request to the end of its headers.
    pub header_timeout: Duration,
    /// How long a client may leave sent data unread.
    pub write_timeout: Duration,
    /// How long open connections may take to finish at shutdown.
    pub shutdown_timeout: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            connections: 8192,
            header_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(60),
            shutdown_timeout: Duration::from_secs(3),
        }
    }
}

/// Serves until `stop` completes, then waits for open connections to finish, up to `shutdown_timeout`.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: ConnectionLimits,
    stop: impl Future<Output = ()>,
) {
    let slots = Arc::new(Semaphore::new(limits.connections));
    let (shutdown, signal) = watch::channel(false);
    let mut connections = JoinSet::new();
    tokio::pin!(stop);
    loop {
        let permit = Arc::clone(&slots).acquire_owned();
        let accepted = async {
            // The semaphore is never closed.
            let permit = permit.await.ok();
            (permit, listener.accept().await)
        };
        tokio::select! {
            biased;
            () = &mut stop => break,
            Some(_) = connections.join_next() => {}
            (permit, accepted) = accepted => match accepted {
                Ok((stream, _)) => {
                    let connection = connection(stream, router.clone(), limits, signal.clone());
                    connections.spawn(async move {
                        connection.await;
                        drop(permit);
                    });
                }
                // For example, the process is out of file descriptors. Retry after others may have been closed.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            },
        }
    }
    drop(listener);
    shutdown.send_replace(true);
    let rest = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(limits.shutdown_timeout, rest).await;
}

async fn connection(
    stream: TcpStream,
    router: Router,
    limits: ConnectionLimits,
    mut shutdown: watch::Receiver<bool>,
) {
    // Streamed updates are small and must not be delayed. If this fails, they only arrive a little later.
    let _ = stream.set_nodelay(true);
    // Without a timeout, a client that does not read could keep its stream open forever, even after its token was
    // revoked.
    let timeout = u32::try_from(limits.write_timeout.as_millis()).unwrap_or(u32::MAX);
    let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, timeout);
    let service = TowerToHyperService::new(router);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let stopped = async {
        let _ = shutdown.wait_for(|is_down| *is_down).await;
    };
    tokio::select! {
        // A client that disconnects is not an error.
        _ = &mut connection => {}
        () = stopped => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}
