//! The loop that takes connections: so many at once, none that dawdles over its headers, and an end that lets those under way
//! finish.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

/// What connections may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Connections at once; more wait outside.
    pub connections: usize,
    /// The time from the first byte of a request to the end of its headers.
    pub headers: Duration,
    /// The time that connections are given at the end.
    pub ending: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: 512,
            headers: Duration::from_secs(10),
            ending: Duration::from_secs(3),
        }
    }
}

/// Serves until `stop`, then lets the connections under way finish for a while.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    bounds: Bounds,
    stop: impl Future<Output = ()>,
) {
    let room = Arc::new(Semaphore::new(bounds.connections));
    let (ending, ends) = watch::channel(false);
    let mut connections = JoinSet::new();
    tokio::pin!(stop);
    loop {
        let permit = Arc::clone(&room).acquire_owned();
        let accepted = async {
            // It is never closed.
            let permit = permit.await.ok();
            (permit, listener.accept().await)
        };
        tokio::select! {
            biased;
            () = &mut stop => break,
            Some(_) = connections.join_next() => {}
            (permit, accepted) = accepted => match accepted {
                Ok((stream, _)) => {
                    let connection = connection(stream, router.clone(), bounds, ends.clone());
                    connections.spawn(async move {
                        connection.await;
                        drop(permit);
                    });
                }
                // Out of descriptors, say: others may be closed meanwhile.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            },
        }
    }
    drop(listener);
    ending.send_replace(true);
    let rest = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(bounds.ending, rest).await;
}

async fn connection(
    stream: TcpStream,
    router: Router,
    bounds: Bounds,
    mut ends: watch::Receiver<bool>,
) {
    // What is streamed is small and wanted at once; where that cannot be set it is only slower.
    let _ = stream.set_nodelay(true);
    let service = TowerToHyperService::new(router);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(bounds.headers)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = async {
        let _ = ends.wait_for(|ends| *ends).await;
    };
    tokio::select! {
        // A client that breaks off is no news.
        _ = &mut connection => {}
        () = ended => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}
