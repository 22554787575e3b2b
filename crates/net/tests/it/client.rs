//! The guarded client over loopback: redirects, sizes and timeouts.

use crate::support::{Server, budget, egress, egress_with_limits, ok, redirect, url};
use flate2::write::GzEncoder;
use lango_net::header::{AUTHORIZATION, HeaderValue};
use lango_net::{
    Check, Egress, EgressError, EgressLimits, FetchedResponse, HeaderMap, OutgoingRequest,
    RefusalReason, Url,
};
use std::io::{Read, Write};
use std::time::Duration;

async fn get(egress: &Egress, text: &str) -> Result<FetchedResponse, EgressError> {
    let url = url(text);
    egress
        .client()
        .get(&url, &HeaderMap::new(), &budget())
        .await
}

fn egress_allowing(server: &Server) -> Egress {
    egress(&[&server.address.to_string()], &[], &[])
}

#[tokio::test]
async fn a_page_is_fetched_only_from_an_allowed_address() {
    let server = Server::start(|_| ok("hello")).await;
    let address = format!("http://{}/a/b?c=d#e", server.address);
    let error = get(&egress(&[], &[], &[]), &address).await.unwrap_err();
    assert!(error.refusal().is_some(), "{error}");
    assert_eq!(server.count(), 0);
    let fetched = get(&egress_allowing(&server), &address).await.unwrap();
    assert_eq!(
        (fetched.status, fetched.body.as_slice(), fetched.was_cut),
        (200, &b"hello"[..], false)
    );
    let head = server.head(0).to_lowercase();
    assert!(head.starts_with("get /a/b?c=d http/1.1\r\n"), "{head}");
    assert!(
        head.contains(&format!("host: {}\r\n", server.address)),
        "{head}"
    );
    assert!(head.contains("user-agent: lango/"), "{head}");
}

#[tokio::test]
async fn every_kind_of_redirect_is_checked_before_it_is_followed() {
    let secret = Server::start(|_| ok("secret")).await;
    let target = format!("http://{}/", secret.address);
    for status in [301, 302, 303, 307, 308] {
        let location = target.clone();
        let server = Server::start(move |_| redirect(status, &location)).await;
        let error = get(
            &egress_allowing(&server),
            &format!("http://{}/", server.address),
        )
        .await
        .unwrap_err();
        assert!(
            matches!(
                error.refusal().unwrap().reason,
                RefusalReason::Address { .. }
            ),
            "{error}"
        );
        assert_eq!((server.count(), secret.count()), (1, 0));
        // Without this check, the redirect is followed, which shows that the test can fail.
        let open = egress_allowing(&server).without(Check::Redirects);
        let fetched = get(&open, &format!("http://{}/", server.address))
            .await
            .unwrap();
        assert_eq!(fetched.body, b"secret");
        secret
            .connections
            .store(0, std::sync::atomic::Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_redirect_to_another_scheme_is_refused() {
    for location in [
        "file:///etc/passwd",
        "ftp://example.com/",
        "data:text/plain,x",
        "gopher://127.0.0.1:6379/_x",
    ] {
        let server = Server::start(move |_| redirect(302, location)).await;
        let error = get(
            &egress_allowing(&server),
            &format!("http://{}/", server.address),
        )
        .await
        .unwrap_err();
        assert!(
            matches!(error.refusal().unwrap().reason, RefusalReason::Scheme(_)),
            "{error}"
        );
    }
}

#[tokio::test]
async fn redirects_are_followed_up_to_the_limit_and_reported() {
    let server = Server::start(|head| match head.split(' ').nth(1).unwrap() {
        "/end" => ok("end"),
        "/loop" => redirect(302, "/loop"),
        "/relative" => redirect(302, "end"),
        other => panic!("{other}"),
    })
    .await;
    let egress = egress_allowing(&server);
    let base = format!("http://{}", server.address);
    let fetched = get(&egress, &format!("{base}/relative")).await.unwrap();
    assert_eq!(fetched.final_url.as_str(), format!("{base}/end"));
    assert_eq!(fetched.redirects, [url(&format!("{base}/relative"))]);
    assert!(!fetched.was_downgraded);
    let error = get(&egress, &format!("{base}/loop")).await.unwrap_err();
    assert!(
        matches!(error, EgressError::TooManyRedirects { limit: 10, .. }),
        "{error}"
    );
    assert_eq!(server.count(), 2 + 11);
}

#[tokio::test]
async fn headers_that_identify_the_caller_are_not_sent_to_another_origin() {
    let other = Server::start(|_| ok("")).await;
    let location = format!("http://{}/", other.address);
    let server = Server::start(move |head| {
        if head.starts_with("GET /near") {
            redirect(302, "/far")
        } else {
            redirect(302, &location)
        }
    })
    .await;
    let egress = egress(
        &[&server.address.to_string(), &other.address.to_string()],
        &[],
        &[],
    );
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer x"));
    headers.insert("host", HeaderValue::from_static("evil.example"));
    let url = url(&format!("http://{}/near", server.address));
    egress
        .client()
        .get(&url, &headers, &budget())
        .await
        .unwrap();
    assert!(server.head(0).contains("Bearer x") && server.head(1).contains("Bearer x"));
    assert!(!server.head(0).contains("evil.example"));
    assert!(!other.head(0).contains("Bearer x"), "{}", other.head(0));
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(body).unwrap();
    let body = encoder.finish().unwrap();
    let mut response = format!(
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    response.extend(body);
    response
}

#[tokio::test]
async fn a_long_body_is_truncated_and_a_zip_bomb_is_not_unpacked() {
    let limits = EgressLimits {
        response_bytes: 10_000,
        ..EgressLimits::default()
    };
    let server = Server::start(|head| match head.split(' ').nth(1).unwrap() {
        "/bomb" => gzip(&vec![b'x'; 50_000_000]),
        "/gzip" => gzip(b"unpacked"),
        "/exact" => ok(&"x".repeat(10_000)),
        _ => ok(&"x".repeat(5_000_000)),
    })
    .await;
    let egress = egress_with_limits(&[&server.address.to_string()], &[], &[], limits);
    let base = format!("http://{}", server.address);
    for path in ["/long", "/bomb"] {
        let fetched = get(&egress, &format!("{base}{path}")).await.unwrap();
        assert_eq!(
            (fetched.body.len(), fetched.was_cut),
            (10_000, true),
            "{path}"
        );
    }
    let exact = get(&egress, &format!("{base}/exact")).await.unwrap();
    assert_eq!((exact.body.len(), exact.was_cut), (10_000, false));
    let small = get(&egress, &format!("{base}/gzip")).await.unwrap();
    assert_eq!(small.body, b"unpacked");
    assert!(!small.headers.contains_key("content-encoding"));
    assert!(
        server
            .head(0)
            .to_lowercase()
            .contains("accept-encoding: gzip\r\n")
    );
}

#[tokio::test]
async fn a_broken_response_is_an_error() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
        "SSH-2.0-OpenSSH_9\r\n",
        "",
    ] {
        let server = Server::start(move |_| answer.as_bytes().to_vec()).await;
        let error = get(
            &egress_allowing(&server),
            &format!("http://{}/", server.address),
        )
        .await
        .unwrap_err();
        assert!(
            matches!(error, EgressError::Http { .. }),
            "{answer}: {error}"
        );
    }
}

#[tokio::test]
async fn endless_response_headers_are_an_error() {
    let server = Server::start(|_| {
        let header = format!("X: {}\r\n", "y".repeat(1000));
        format!("HTTP/1.1 200 OK\r\n{}", header.repeat(500)).into_bytes()
    })
    .await;
    let error = get(
        &egress_allowing(&server),
        &format!("http://{}/", server.address),
    )
    .await
    .unwrap_err();
    assert!(matches!(error, EgressError::Http { .. }), "{error}");
}

#[tokio::test]
async fn a_request_to_a_server_that_stops_responding_times_out() {
    // The server never closes a connection, because the thread keeps all streams.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut streams = Vec::new();
        for (index, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            if index == 0 {
                // A response before the request would be an error.
                let _ = stream.read(&mut [0; 1024]).unwrap();
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
                    .unwrap();
            }
            streams.push(stream);
        }
    });
    // Only one limit is short at a time, so that a loaded machine does not hit the other one first.
    let with = |idle_time, request_time| {
        let limits = EgressLimits {
            idle_time: Duration::from_millis(idle_time),
            request_time: Duration::from_millis(request_time),
            ..EgressLimits::default()
        };
        egress_with_limits(&[&address.to_string()], &[], &[], limits)
    };
    let url = format!("http://{address}/");
    let error = get(&with(100, 60_000), &url).await.unwrap_err().to_string();
    assert!(
        error.contains("did not continue its response within 0.1 s"),
        "{error}"
    );
    let error = get(&with(60_000, 100), &url).await.unwrap_err().to_string();
    assert!(error.contains("did not answer within 0.1 s"), "{error}");
}

fn request<'a>(url: &'a Url, headers: &'a HeaderMap, json: Option<&str>) -> OutgoingRequest<'a> {
    OutgoingRequest {
        url,
        headers,
        json: json.map(|json| json.as_bytes().to_vec()),
        max_bytes: 8,
    }
}

#[tokio::test]
async fn a_single_request_is_checked_posts_json_and_limits_the_response() {
    let server = Server::start(|_| ok("0123456789")).await;
    let url = url(&format!("http://{}/rpc", server.address));
    let headers = HeaderMap::new();
    let refused = egress(&[], &[], &[]);
    let post = || request(&url, &headers, Some("{\"a\":1}"));
    let error = refused.client().send(post(), &budget()).await.unwrap_err();
    assert!(error.refusal().is_some(), "{error}");
    assert_eq!(server.count(), 0);
    let allowed = egress_allowing(&server);
    let answered = allowed.client().send(post(), &budget()).await.unwrap();
    assert_eq!(
        (answered.body.as_slice(), answered.was_cut),
        (&b"01234567"[..], true)
    );
    let head = server.head(0).to_lowercase();
    assert!(head.starts_with("post /rpc http/1.1\r\n"), "{head}");
    assert!(
        head.contains("content-type: application/json\r\n"),
        "{head}"
    );
    assert!(head.contains("content-length: 7\r\n"), "{head}");
    let get = request(&url, &headers, None);
    allowed.client().send(get, &budget()).await.unwrap();
    let head = server.head(1).to_lowercase();
    assert!(head.starts_with("get /rpc http/1.1\r\n"), "{head}");
    assert!(!head.contains("content-length"), "{head}");
}

#[tokio::test]
async fn a_single_request_does_not_follow_redirects() {
    let other = Server::start(|_| ok("other")).await;
    let location = format!("http://{}/", other.address);
    let server = Server::start(move |_| redirect(307, &location)).await;
    let both = [server.address.to_string(), other.address.to_string()];
    let egress = egress(&[&both[0], &both[1]], &[], &[]);
    let url = url(&format!("http://{}/", server.address));
    let headers = HeaderMap::new();
    let answered = egress
        .client()
        .send(request(&url, &headers, None), &budget())
        .await
        .unwrap();
    assert_eq!((answered.status, other.count()), (307, 0));
}
