//! The limits of the proxy: bytes, idle time, connections and refusals.

use crate::proxy::{exchange, serve};
use crate::support::{Server, budget, egress, egress_with_limits, ok, read_head};
use lango_net::{Budget, EgressLimits, RefusalReason};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

fn byte_budget(total_bytes: u64) -> Budget {
    Budget::new(&EgressLimits {
        total_bytes,
        ..EgressLimits::default()
    })
}

#[tokio::test]
async fn a_response_ends_when_the_bytes_of_the_turn_are_used_up() {
    let server = Server::start(|_| ok(&"x".repeat(3_000_000))).await;
    let (proxy, handle) = serve(
        egress(&[&server.address.to_string()], &[], &[]),
        None,
        byte_budget(100_000),
    );
    let answer = exchange(
        proxy,
        &format!("GET http://{}/ HTTP/1.1\r\nHost: x\r\n\r\n", server.address),
    )
    .await;
    assert!(answer.len() < 100_500, "{}", answer.len());
    assert_eq!(
        handle.refusals()[0].reason,
        RefusalReason::OutOfBytes { limit: 100_000 }
    );
}

#[tokio::test]
async fn a_tunnel_ends_when_the_bytes_of_the_turn_are_used_up_in_either_direction() {
    for is_upload in [true, false] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let received = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            if !is_upload {
                let _ = stream.write_all(&vec![b'x'; 3_000_000]).await;
            }
            let mut all = Vec::new();
            let _ = stream.read_to_end(&mut all).await;
            all.len()
        });
        let (proxy, handle) = serve(
            egress(&[&address.to_string()], &[], &[]),
            None,
            byte_budget(100_000),
        );
        let mut stream = TcpStream::connect(proxy).await.unwrap();
        stream
            .write_all(format!("CONNECT {address} HTTP/1.1\r\n\r\n").as_bytes())
            .await
            .unwrap();
        read_head(&mut stream).await;
        if is_upload {
            let _ = stream.write_all(&vec![b'x'; 3_000_000]).await;
        }
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all).await;
        assert!(all.len() <= 100_000 && received.await.unwrap() <= 100_000);
        assert_eq!(
            handle.refusals()[0].reason,
            RefusalReason::OutOfBytes { limit: 100_000 }
        );
    }
}

#[tokio::test]
async fn idle_tunnels_and_responses_time_out() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut streams = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            if streams.len() == 1 {
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc";
                let _ = stream.write_all(answer).await;
            }
            streams.push(stream);
        }
    });
    // Only one limit is short at a time, so that a loaded machine does not hit another one first.
    let (short, long) = (Duration::from_millis(100), Duration::from_secs(60));
    let with = |tunnel_idle_time, idle_time, request_time| {
        let limits = EgressLimits {
            tunnel_idle_time,
            idle_time,
            request_time,
            ..EgressLimits::default()
        };
        let egress = egress_with_limits(&[&address.to_string()], &[], &[], limits);
        serve(egress, None, budget())
    };
    let get = format!("GET http://{address}/ HTTP/1.1\r\nHost: x\r\n\r\n");
    let (proxy, _handle) = with(short, long, long);
    let answer = exchange(proxy, &format!("CONNECT {address} HTTP/1.1\r\n\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let (proxy, _handle) = with(long, short, long);
    let answer = exchange(proxy, &get).await;
    assert!(answer.ends_with("abc"), "{answer}");
    let (proxy, _handle) = with(long, long, short);
    let answer = exchange(proxy, &get).await;
    assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_and_are_served_later() {
    let server = Server::start(|_| ok("fine")).await;
    let (proxy, _handle) = serve(
        egress(&[&server.address.to_string()], &[], &[]),
        None,
        budget(),
    );
    let mut open = Vec::new();
    for _ in 0..256 {
        open.push(TcpStream::connect(proxy).await.unwrap());
    }
    let request = format!(
        "GET http://{}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        server.address
    );
    let mut late = TcpStream::connect(proxy).await.unwrap();
    late.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let waiting = tokio::time::timeout(Duration::from_millis(300), late.read_to_end(&mut answer));
    assert!(
        waiting.await.is_err(),
        "it was served in addition to 256 others"
    );
    drop(open);
    let served = tokio::time::timeout(Duration::from_secs(5), late.read_to_end(&mut answer));
    served.await.unwrap().unwrap();
    assert!(answer.ends_with(b"fine"));
}

#[tokio::test]
async fn the_list_of_refusals_is_limited_and_counts_the_rest() {
    let (proxy, handle) = serve(egress(&[], &[], &[]), None, budget());
    for index in 0..70 {
        exchange(
            proxy,
            &format!("CONNECT 10.0.0.{index}:443 HTTP/1.1\r\n\r\n"),
        )
        .await;
    }
    let refusals = handle.refusals();
    assert_eq!(refusals.len(), 65);
    assert_eq!(
        refusals[64].to_string(),
        "more destinations were refused (6 requests)"
    );
}

#[tokio::test]
async fn endless_request_headers_are_refused() {
    let (proxy, _handle) = serve(egress(&[], &[], &[]), None, budget());
    let header = format!("X: {}\r\n", "y".repeat(1000));
    let answer = exchange(
        proxy,
        &format!("GET http://a.example/ HTTP/1.1\r\n{}", header.repeat(200)),
    )
    .await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
}
