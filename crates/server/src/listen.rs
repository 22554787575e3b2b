//! The listener: accepts connections up to a limit, closes those whose headers come too slowly, and lets open ones finish at
//! the end.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

/// The limits of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Connections at a time; more wait in the backlog of the socket.
    pub connections: usize,
    /// The time from the first byte of a request to the end of its headers.
    pub header_timeout: Duration,
    /// The time that a client may take to read what was sent to it.
    pub write_timeout: Duration,
    /// The time that open connections get to finish at the end.
    pub shutdown_timeout: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: 8192,
            header_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(60),
            shutdown_timeout: Duration::from_secs(3),
        }
    }
}

/// Serves until `stop`, then lets open connections finish for a while.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    bounds: Bounds,
    stop: impl Future<Output = ()>,
) {
    let slots = Arc::new(Semaphore::new(bounds.connections));
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
                    let connection = connection(stream, router.clone(), bounds, signal.clone());
                    connections.spawn(async move {
                        connection.await;
                        drop(permit);
                    });
                }
                // For example out of file descriptors: others may be closed meanwhile.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            },
        }
    }
    drop(listener);
    shutdown.send_replace(true);
    let rest = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(bounds.shutdown_timeout, rest).await;
}

async fn connection(
    stream: TcpStream,
    router: Router,
    bounds: Bounds,
    mut shutdown: watch::Receiver<bool>,
) {
    // Streamed updates are small and must not be delayed; without the option they only come later.
    let _ = stream.set_nodelay(true);
    // A client that does not read would keep its stream open for ever, also with a token that was revoked.
    let timeout = u32::try_from(bounds.write_timeout.as_millis()).unwrap_or(u32::MAX);
    let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, timeout);
    let service = TowerToHyperService::new(router);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(bounds.header_timeout)
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
