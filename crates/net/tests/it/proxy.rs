//! The proxy over loopback: what it forwards, refuses and records.

use crate::support::{Server, budget, egress, ok, patterns, read_head, redirect};
use lango_net::{
    Budget, Egress, EgressLimits, HostList, Proxy, ProxyHandle, ProxyOptions, RefusalReason,
};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(crate) fn serve(
    egress: Egress,
    only_hosts: Option<&[&str]>,
    budget: Budget,
) -> (SocketAddr, ProxyHandle) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let options = ProxyOptions {
        only_hosts: only_hosts.map(|hosts| HostList {
            hosts: patterns(hosts),
            key: "tools.exec.network".to_owned(),
        }),
        budget,
        credentials: None,
    };
    (address, Proxy::serve(listener, egress, options).unwrap())
}

/// Sends a text over a new connection, and reads until the other side closes it.
pub(crate) async fn exchange(address: SocketAddr, text: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let _ = stream.write_all(text.as_bytes()).await;
    read_to_end(stream).await
}

async fn read_to_end(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    let reading = stream.read_to_end(&mut answer);
    let _ = tokio::time::timeout(Duration::from_secs(10), reading)
        .await
        .unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
}

#[tokio::test]
async fn a_request_is_forwarded_to_its_target_regardless_of_its_host_header() {
    let server = Server::start(|_| {
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: x-private\r\nX-Private: 1\r\nKeep-Alive: 5\r\nX-Kept: 1\r\n\r\nhi".to_vec()
    })
    .await;
    let (proxy, handle) = serve(
        egress(&[&server.address.to_string()], &[], &[]),
        None,
        budget(),
    );
    let request = format!(
        "POST http://{}/a?b=c HTTP/1.1\r\nHost: evil.example\r\nProxy-Authorization: Basic x\r\nProxy-Connection: keep-alive\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nTE: trailers\r\nUpgrade: h2c\r\nX-Kept: 1\r\nContent-Length: 0\r\n\r\n",
        server.address
    );
    let answer = exchange(proxy, &request).await.to_lowercase();
    assert!(
        answer.starts_with("http/1.1 200 ok\r\n") && answer.ends_with("\r\n\r\nhi"),
        "{answer}"
    );
    assert!(
        answer.contains("x-kept: 1")
            && !answer.contains("x-private")
            && !answer.contains("keep-alive"),
        "{answer}"
    );
    let head = server.head(0).to_lowercase();
    assert!(head.starts_with("post /a?b=c http/1.1\r\n"), "{head}");
    assert!(
        head.contains(&format!("host: {}\r\n", server.address)),
        "{head}"
    );
    for absent in ["evil", "proxy-", "x-hop", "\r\nte:", "upgrade"] {
        assert!(!head.contains(absent), "{absent}: {head}");
    }
    assert!(
        head.contains("x-kept: 1") && head.matches("host:").count() == 1,
        "{head}"
    );
    assert!(handle.refusals().is_empty());
}

#[tokio::test]
async fn a_refused_request_is_answered_with_the_reason_and_recorded_once() {
    let server = Server::start(|_| ok("secret")).await;
    let (proxy, handle) = serve(egress(&[], &[], &[]), None, budget());
    for _ in 0..3 {
        let answer = exchange(proxy, &get(&format!("http://{}/x", server.address))).await;
        assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{answer}");
        assert!(
            answer.contains(&format!("add `{}` to `egress.allow`", server.address)),
            "{answer}"
        );
    }
    let answer = exchange(
        proxy,
        &format!("CONNECT {} HTTP/1.1\r\nHost: x\r\n\r\n", server.address),
    )
    .await;
    assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{answer}");
    assert_eq!(server.count(), 0);
    let refusals = handle.refusals();
    assert_eq!((refusals.len(), refusals[0].count), (1, 4), "{refusals:?}");
    assert!(refusals[0].to_string().ends_with("(4 times)"));
    assert!(
        handle.refusals().is_empty(),
        "each refusal is returned once"
    );
}

#[tokio::test]
async fn each_request_of_a_connection_is_checked() {
    let server = Server::start(|_| ok("fine")).await;
    let secret = Server::start(|_| ok("secret")).await;
    let (proxy, handle) = serve(
        egress(&[&server.address.to_string()], &[], &[]),
        None,
        budget(),
    );
    let allowed = format!("GET http://{}/ HTTP/1.1\r\nHost: x\r\n\r\n", server.address);
    let refused = format!(
        "GET http://{}/ HTTP/1.1\r\nHost: {}\r\n\r\n",
        secret.address, server.address
    );
    let answer = exchange(proxy, &format!("{allowed}{allowed}{refused}{allowed}")).await;
    assert_eq!(answer.matches("200 OK").count(), 2, "{answer}");
    assert_eq!(answer.matches("403 Forbidden").count(), 1, "{answer}");
    assert!(!answer.contains("secret"));
    assert_eq!((server.count(), secret.count()), (2, 0));
    assert_eq!(handle.refusals().len(), 1);
}

#[tokio::test]
async fn a_tunnel_copies_bytes_in_both_directions() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"welcome").await.unwrap();
        let mut received = [0; 5];
        stream.read_exact(&mut received).await.unwrap();
        stream.write_all(&received).await.unwrap();
    });
    let counted = budget();
    let (proxy, _handle) = serve(
        egress(&[&address.to_string()], &[], &[]),
        None,
        counted.clone(),
    );
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    stream
        .write_all(
            format!("CONNECT {address} HTTP/1.1\r\nHost: evil.example:443\r\n\r\n").as_bytes(),
        )
        .await
        .unwrap();
    let head = read_head(&mut stream).await;
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    let mut welcome = [0; 7];
    stream.read_exact(&mut welcome).await.unwrap();
    stream.write_all(b"hello").await.unwrap();
    assert_eq!(read_to_end(stream).await, "hello");
    assert_eq!(
        (counted.usage().requests, counted.usage().bytes),
        (1, 7 + 5 + 5)
    );
}

#[tokio::test]
async fn only_listed_hosts_are_contacted_and_the_egress_rules_apply_as_well() {
    let server = Server::start(|_| ok("fine")).await;
    let port = server.address.port();
    let egress = egress(
        &["a.example", "b.example", &server.address.to_string()],
        &["b.example"],
        &["127.0.0.1"],
    );
    let (proxy, handle) = serve(egress, Some(&["a.example", "b.example"]), budget());
    let status = |host: &'static str| async move {
        let answer = exchange(proxy, &get(&format!("http://{host}:{port}/"))).await;
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!(status("A.example.").await, "200");
    assert_eq!(status("b.example").await, "403");
    assert_eq!(status("c.example").await, "403");
    assert_eq!(status("127.0.0.1").await, "403");
    let reasons: Vec<RefusalReason> = handle
        .refusals()
        .into_iter()
        .map(|refusal| refusal.reason)
        .collect();
    let denied = RefusalReason::Denied {
        entry: "b.example".to_owned(),
    };
    let unlisted = RefusalReason::NotListed {
        key: "tools.exec.network".to_owned(),
    };
    assert_eq!(reasons, [denied, unlisted.clone(), unlisted]);
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn redirects_are_passed_to_the_client() {
    let server = Server::start(|_| redirect(302, "http://127.0.0.1:1/")).await;
    let (proxy, _handle) = serve(
        egress(&[&server.address.to_string()], &[], &[]),
        None,
        budget(),
    );
    let answer = exchange(proxy, &get(&format!("http://{}/", server.address))).await;
    assert!(
        answer.starts_with("HTTP/1.1 302")
            && answer
                .to_lowercase()
                .contains("location: http://127.0.0.1:1/"),
        "{answer}"
    );
}

#[tokio::test]
async fn invalid_proxy_requests_are_refused() {
    let server = Server::start(|_| ok("")).await;
    let own = server.address;
    let (proxy, _handle) = serve(egress(&[&own.to_string()], &[], &[]), None, budget());
    for (request, status) in [
        (
            "GET / HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n".to_owned(),
            "400",
        ),
        (get(&format!("https://{own}/")), "400"),
        (get("ftp://127.0.0.1/"), "403"),
        (get(&format!("http://user:pass@{own}/")), "403"),
        (
            format!("TRACE http://{own}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
            "405",
        ),
        (
            format!("TRACK http://{own}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
            "405",
        ),
        (
            "CONNECT example.com HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(),
            "400",
        ),
        (
            format!("CONNECT user@{own} HTTP/1.1\r\nHost: x\r\n\r\n"),
            "403",
        ),
        (
            "CONNECT 0x7f.1:443 HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(),
            "403",
        ),
        (
            "CONNECT [::1]:443 HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(),
            "403",
        ),
        (
            "CONNECT [::ffff:169.254.169.254]:80 HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(),
            "403",
        ),
        (
            "CONNECT localhost:443 HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(),
            "403",
        ),
        (
            "CONNECT example.com:25 HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(),
            "403",
        ),
        (
            "CONNECT name.example:443 HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(),
            "502",
        ),
        ("rubbish\r\n\r\n".to_owned(), "400"),
    ] {
        let answer = exchange(proxy, &request).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{request}: {answer}"
        );
    }
    assert_eq!(server.count(), 0);
}

#[tokio::test]
async fn a_request_smuggled_in_a_body_is_not_treated_as_a_request() {
    let secret = Server::start(|_| ok("secret")).await;
    let server = Server::start(|_| ok("fine")).await;
    let (proxy, _handle) = serve(
        egress(&[&server.address.to_string()], &[], &[]),
        None,
        budget(),
    );
    let inner = format!("GET http://{}/ HTTP/1.1\r\nHost: x\r\n\r\n", secret.address);
    let request = format!(
        "POST http://{}/ HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n{inner}",
        server.address,
        inner.len() + 5,
    );
    let answer = exchange(proxy, &request).await;
    assert!(!answer.contains("secret"), "{answer}");
    assert_eq!(secret.count(), 0);
}

#[tokio::test]
async fn dropping_the_handle_closes_the_listener_and_all_connections() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (proxy, handle) = serve(egress(&[&address.to_string()], &[], &[]), None, budget());
    let mut tunnel = TcpStream::connect(proxy).await.unwrap();
    tunnel
        .write_all(format!("CONNECT {address} HTTP/1.1\r\n\r\n").as_bytes())
        .await
        .unwrap();
    let (mut server, _) = listener.accept().await.unwrap();
    let _ = read_head(&mut tunnel).await;
    let waiting = TcpStream::connect(proxy).await.unwrap();
    drop(handle);
    assert_eq!(read_to_end(tunnel).await, "");
    assert_eq!(read_to_end(waiting).await, "");
    let mut rest = Vec::new();
    let _ = server.read_to_end(&mut rest).await;
    let refused = tokio::time::timeout(Duration::from_secs(5), async {
        while TcpStream::connect(proxy).await.is_ok() {
            tokio::task::yield_now().await;
        }
    });
    refused.await.unwrap();
}

#[tokio::test]
async fn a_new_budget_applies_to_later_requests() {
    let server = Server::start(|_| ok("fine")).await;
    let one = |requests| {
        Budget::new(&EgressLimits {
            requests,
            ..EgressLimits::default()
        })
    };
    let (proxy, handle) = serve(
        egress(&[&server.address.to_string()], &[], &[]),
        None,
        one(1),
    );
    let request = get(&format!("http://{}/", server.address));
    assert!(exchange(proxy, &request).await.contains("fine"));
    let answer = exchange(proxy, &request).await;
    assert!(
        answer.starts_with("HTTP/1.1 403 ") && answer.contains("egress.maxRequests"),
        "{answer}"
    );
    assert_eq!(
        handle.refusals()[0].reason,
        RefusalReason::OutOfRequests { limit: 1 }
    );
    handle.set_budget(one(1));
    assert!(exchange(proxy, &request).await.contains("fine"));
}
