//! Connections that dawdle, and the end of the server.

use crate::support::{TestServer, send};
use axum::Router;
use axum::routing::get;
use lango_server::{Bounds, serve};
use lango_testkit::model::ScriptedModel;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

#[tokio::test]
async fn somebody_who_never_ends_the_headers_is_cut_off_and_leaves_room_for_others() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let bounds = Bounds {
        connections: 2,
        header_timeout: Duration::from_millis(300),
        shutdown_timeout: Duration::from_millis(100),
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let router = Router::new().route("/", get(|| async { "here" }));
    let running = tokio::spawn(serve(listener, router, bounds, async {
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
    // Waits outside until the slow ones are cut off.
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
async fn a_server_that_is_stopped_with_nothing_to_do_ends_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let server = TestServer::start(folder.path(), ScriptedModel::replies([]), vec![]).await;
    let address = server.address;
    server.stop().await;
    TcpStream::connect(address).await.unwrap_err();
}
