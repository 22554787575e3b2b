//! Slow connections, and the shutdown of the server.

use crate::support::{TestServer, send};
use axum::Router;
use axum::body::Body;
use axum::routing::get;
use futures_util::{StreamExt, stream};
use lango_server::{ConnectionLimits, serve};
use lango_testkit::model::ScriptedModel;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

#[tokio::test]
async fn a_client_that_never_ends_its_headers_is_disconnected() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let limits = ConnectionLimits {
        connections: 2,
        header_timeout: Duration::from_millis(300),
        shutdown_timeout: Duration::from_millis(100),
        ..ConnectionLimits::default()
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let router = Router::new().route("/", get(|| async { "here" }));
    let running = tokio::spawn(serve(listener, router, limits, async {
        let _ = stopped.await;
    }));
    let mut slow = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream
            .write_all(b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ")
            .await
            .unwrap();
        slow.push(stream);
    }
    // Waits until the slow ones are disconnected.
    let reply = send(address, "GET", "/", &[("Host", "x")], "").await;
    assert_eq!((reply.status, reply.body.as_str()), (200, "here"));
    for mut stream in slow {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.unwrap();
    }
    stop.send(()).unwrap();
    running.await.unwrap();
    TcpStream::connect(address).await.unwrap_err();
}

#[tokio::test]
async fn a_client_that_does_not_read_its_stream_is_disconnected() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let limits = ConnectionLimits {
        write_timeout: Duration::from_millis(500),
        ..ConnectionLimits::default()
    };
    let is_closed = Arc::new(AtomicBool::new(false));
    let closing = Arc::clone(&is_closed);
    let router = Router::new().route(
        "/",
        get(move || async move {
            let connection = OnDrop(closing);
            let chunks = stream::repeat(Ok::<_, Infallible>(vec![0; 65536]));
            Body::from_stream(chunks.inspect(move |_| _ = &connection))
        }),
    );
    tokio::spawn(serve(listener, router, limits, std::future::pending()));
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let closed = async {
        while !is_closed.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let closed = tokio::time::timeout(Duration::from_secs(20), closed).await;
    closed.expect("the connection is closed");
}

/// Sets a flag when the response is dropped.
struct OnDrop(Arc<AtomicBool>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn an_idle_server_stops_immediately() {
    let folder = tempfile::tempdir().unwrap();
    let server = TestServer::start(folder.path(), ScriptedModel::replies([]), vec![]).await;
    let address = server.address;
    server.stop().await;
    TcpStream::connect(address).await.unwrap_err();
}
