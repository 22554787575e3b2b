//! Normal use of secrets: values reach the bound header, and other HTTP traffic passes through.

use super::setup::{TestSetup, VALUE, exchange};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lango_core::{SessionId, UserId};
use lango_net::ProgramCredentials;
use lango_secrets::SecretUser;
use std::fs;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

fn get(path: &str, header: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {{H}}\r\n{header}\r\nConnection: close\r\n\r\n")
}

#[tokio::test]
async fn a_placeholder_becomes_the_value_in_the_bound_header_of_the_bound_origin() {
    let setup = TestSetup::new().await;
    for scheme in ["Bearer", "token"] {
        let answer = setup
            .send(&get("/", &format!("Authorization: {scheme} {{P}}")))
            .await;
        assert!(
            answer.starts_with("HTTP/1.1 200") && answer.contains("fine"),
            "{answer}"
        );
        let sent = format!("authorization: {scheme} {VALUE}\n");
        assert!(setup.api.log().contains(&sent));
    }
    let answer = setup.send(&get("/", "Authorization: Basic {P64}")).await;
    assert!(answer.contains("fine"), "{answer}");
    let sent = STANDARD.encode(format!("x-access-token:{VALUE}"));
    assert!(
        setup
            .api
            .log()
            .contains(&format!("authorization: Basic {sent}\n"))
    );
    assert!(!setup.api.log().contains("lango_secret_"));
    // Resolved only once, because a value is cached for some seconds.
    assert_eq!(setup.resolved(), 1);
    assert!(setup.handle.refusals().is_empty());
}

#[tokio::test]
async fn other_requests_pass_unchanged() {
    let setup = TestSetup::new().await;
    let answer = setup
        .send(&get("/a?b=%20c", "Authorization: Bearer own\r\nX-A: 1"))
        .await;
    assert!(answer.ends_with("fine"), "{answer}");
    let log = setup.api.log();
    assert!(
        log.starts_with("GET /a?b=%20c\n") && log.contains("x-a: 1\n"),
        "{log}"
    );
    assert!(log.contains("authorization: Bearer own\n"), "{log}");
    let evil = format!("evil.example:{}", setup.evil.secure);
    let stream = setup.connect(&evil, "evil.example").await.unwrap();
    let request = format!("GET / HTTP/1.1\r\nHost: {evil}\r\nConnection: close\r\n\r\n");
    assert!(exchange(stream, request.as_bytes()).await.ends_with("fine"));
    assert_eq!(setup.resolved(), 0);
}

#[tokio::test]
async fn a_connection_serves_many_requests_of_all_kinds() {
    let setup = TestSetup::new().await;
    let target = format!("api.example:{}", setup.api.secure);
    let mut stream = setup.connect(&target, "api.example").await.unwrap();
    let authorization = "Host: {H}\r\nAuthorization: Bearer {P}\r\n";
    let chunked = "3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n";
    for (request, expected) in [
        (format!("HEAD / HTTP/1.1\r\n{authorization}\r\n"), "200 OK"),
        (
            format!("DELETE /nothing HTTP/1.1\r\n{authorization}\r\n"),
            "204 No Content",
        ),
        (
            format!(
                "POST / HTTP/1.1\r\n{authorization}Transfer-Encoding: chunked\r\n\r\n{chunked}"
            ),
            "200 OK",
        ),
        (
            format!("PUT / HTTP/1.1\r\n{authorization}Content-Length: 3\r\n\r\nxyz"),
            "200 OK",
        ),
        (
            format!("PROPFIND / HTTP/1.1\r\n{authorization}\r\n"),
            "200 OK",
        ),
    ] {
        stream
            .write_all(setup.fill(&request).as_bytes())
            .await
            .unwrap();
        let has_body = !request.starts_with("HEAD") && !expected.starts_with("204");
        let answer = read_response(&mut stream, has_body).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {expected}")),
            "{request}: {answer}"
        );
    }
    let log = setup.api.log();
    assert!(
        log.contains("body: 7 bytes\nabcdefg") && log.contains("body: 3 bytes\nxyz"),
        "{log}"
    );
}

/// Reads one response. Its body, if any, is `fine`, with or without chunked encoding.
async fn read_response(stream: &mut (impl AsyncReadExt + Unpin), has_body: bool) -> String {
    let mut answer = Vec::new();
    let mut byte = [0];
    loop {
        stream.read_exact(&mut byte).await.unwrap();
        answer.push(byte[0]);
        let is_head = answer.ends_with(b"\r\n\r\n");
        let is_body = answer.ends_with(b"fine") || answer.ends_with(b"0\r\n\r\n");
        let text = String::from_utf8_lossy(&answer).to_lowercase();
        let is_chunked = text.contains("transfer-encoding: chunked");
        let is_over = match (has_body, is_chunked) {
            (false, _) => is_head,
            (true, true) => text.contains("fine") && is_body && is_head,
            (true, false) => is_body,
        };
        if is_over {
            return String::from_utf8_lossy(&answer).into_owned();
        }
    }
}

#[tokio::test]
async fn a_large_upload_arrives_completely() {
    let setup = TestSetup::new().await;
    let target = format!("api.example:{}", setup.api.secure);
    let mut stream = setup.connect(&target, "api.example").await.unwrap();
    let head = "POST / HTTP/1.1\r\nHost: {H}\r\nAuthorization: Basic {P64}\r\nExpect: 100-continue\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(setup.fill(head).as_bytes()).await.unwrap();
    let mut start = [0; 25];
    stream.read_exact(&mut start).await.unwrap();
    assert_eq!(&start, b"HTTP/1.1 100 Continue\r\n\r\n");
    let chunk = vec![b'l'; 100_000];
    for _ in 0..200 {
        stream.write_all(b"186a0\r\n").await.unwrap();
        stream.write_all(&chunk).await.unwrap();
        stream.write_all(b"\r\n").await.unwrap();
    }
    let answer = exchange(stream, b"0\r\n\r\n").await;
    assert!(answer.contains("fine"), "{answer}");
    assert!(setup.api.log().contains("body: 20000000 bytes"));
}

#[tokio::test]
async fn a_response_before_the_end_of_an_upload_arrives() {
    let setup = TestSetup::new().await;
    let head = "POST /early HTTP/1.1\r\nHost: {H}\r\nAuthorization: Bearer {P}\r\nContent-Length: 100000\r\n\r\nabc";
    let answer = setup.send(head).await;
    assert!(
        answer.starts_with("HTTP/1.1 413") && answer.contains("early"),
        "{answer}"
    );
}

#[tokio::test]
async fn connections_without_tls_are_tunnelled_to_hosts_without_secrets() {
    let setup = TestSetup::new().await;
    let stream = setup
        .tunnel(&format!("evil.example:{}", setup.evil.plain))
        .await
        .unwrap();
    let request = b"GET / HTTP/1.1\r\nHost: whatever\r\nConnection: close\r\n\r\n";
    assert!(exchange(stream, request).await.ends_with("fine"));
    assert!(setup.evil.log().contains("host: whatever"));
}

#[tokio::test]
async fn compressed_responses_arrive_decoded() {
    let setup = TestSetup::new().await;
    for path in ["/gzip", "/zlib", "/deflate"] {
        let header = "Authorization: Bearer own-token\r\nAccept-Encoding: br, gzip;q=0.5, deflate";
        let answer = setup.send(&get(path, header)).await;
        assert!(answer.contains("Bearer own-token"), "{path}: {answer}");
        assert!(
            !answer.to_lowercase().contains("content-encoding"),
            "{answer}"
        );
    }
    let log = setup.api.log();
    assert!(
        log.contains("accept-encoding: identity\n") && !log.contains("br,"),
        "{log}"
    );
    let answer = setup.send(&get("/brotli", "Accept-Encoding: br")).await;
    assert!(
        answer.starts_with("HTTP/1.1 502") && answer.contains("did not ask for"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_response_is_refused_if_its_coding_cannot_be_decoded() {
    let setup = TestSetup::new().await;
    let token = "Authorization: Bearer {P}";
    let answer = setup.send(&get("/two-lines", token)).await;
    assert!(answer.contains("Bearer [secret TOKEN]"), "{answer}");
    for path in ["/two-codings", "/transfer-coding"] {
        let answer = setup.send(&get(path, token)).await;
        assert!(
            answer.starts_with("HTTP/1.1 502") && answer.contains("did not ask for"),
            "{path}: {answer}"
        );
    }
}

#[tokio::test]
async fn a_client_that_delays_its_tls_handshake_is_intercepted_too() {
    let setup = TestSetup::new().await;
    let target = format!("evil.example:{}", setup.evil.secure);
    let stream = setup.tunnel(&target).await.unwrap();
    // Longer than the proxy waits before it connects to the server.
    tokio::time::sleep(Duration::from_millis(3_300)).await;
    let stream = setup.secure(stream, "evil.example").await.unwrap();
    let request = setup.fill("GET / HTTP/1.1\r\nHost: {E}\r\nX-T: {P}\r\n\r\n");
    let request = request.replace("{E}", &target);
    let answer = exchange(stream, request.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    assert_eq!(setup.evil.log(), "");
}

#[tokio::test]
async fn a_connection_whose_server_sends_first_is_tunnelled() {
    let setup = TestSetup::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"220 ready\r\n").await.unwrap();
    });
    let mut stream = setup.tunnel(&format!("evil.example:{port}")).await.unwrap();
    let mut greeting = String::new();
    stream.read_to_string(&mut greeting).await.unwrap();
    assert_eq!(greeting, "220 ready\r\n");
}

#[tokio::test]
async fn the_length_of_a_stored_echo_is_hidden() {
    let setup = TestSetup::new().await;
    let token = "Authorization: Bearer {P}";
    setup.send(&get("/echo", token)).await;
    let request = "HEAD /last HTTP/1.1\r\nHost: {H}\r\nConnection: close\r\n\r\n";
    let answer = setup.send(request).await.to_ascii_lowercase();
    assert!(
        answer.starts_with("http/1.1 200") && !answer.contains("content-length"),
        "{answer}"
    );
}

#[tokio::test]
async fn the_chunks_of_a_response_do_not_reveal_how_well_it_was_compressed() {
    let setup = TestSetup::new().await;
    let digits = (1u64..).map(|number| number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mixed: String = digits
        .map(|number| format!("{number:x}"))
        .take(600)
        .collect();
    let mixed = &mixed[..9_000];
    for filler in [mixed, &"k".repeat(mixed.len())] {
        for path in ["/gzip", "/echo"] {
            let header = format!(
                "Authorization: Bearer {}\r\nX-Filler:  {filler}",
                setup.placeholder
            );
            let answer = setup.send(&get(path, &header)).await;
            assert!(answer.contains(filler), "{answer}");
            let is_size = |line: &&str| line.len() <= 5 && u64::from_str_radix(line, 16).is_ok();
            let chunks = answer.lines().filter(is_size).filter(|line| *line != "0");
            assert_eq!(chunks.count(), 1, "{answer}");
        }
    }
}

#[tokio::test]
async fn each_session_has_its_own_certificate_authority() {
    let setup = TestSetup::new().await;
    let prepare = |session: &str| {
        let by = SecretUser {
            session: Some(SessionId::from(session)),
            ..SecretUser::from(&UserId::from("ann"))
        };
        let program = setup.access.credentials(&by, &setup.source.bound);
        program.unwrap().unwrap()
    };
    let read = |program: &ProgramCredentials| fs::read_to_string(&program.certificates).unwrap();
    let [first, second] = ["s_1", "s_2"].map(prepare);
    assert_eq!(first.certificates, prepare("s_1").certificates);
    assert_ne!(read(&first), read(&second));
    assert_ne!(read(&first), setup.bundle);

    fs::remove_file(&first.certificates).unwrap();
    let again = prepare("s_1");
    assert_ne!(first.certificates, again.certificates);

    // The file of a running program stays, even if other sessions evict the authority from the cache.
    for number in 0..64 {
        prepare(&format!("other_{number}"));
    }
    assert!(again.certificates.exists());
    let path = again.certificates.clone();
    drop(again);
    assert!(!path.exists());
}
