//! The links that a session has seen.

use lango_core::SessionId;
use lango_net::SeenLinks;

#[test]
fn a_link_is_recognised_only_in_its_session_and_in_every_spelling() {
    let links = SeenLinks::default();
    let (own, other) = (SessionId::from("own"), SessionId::from("other"));
    links.add(&own, ["https://Example.com:443/a?b=c#top"].into_iter());
    assert!(links.contains(&own, "https://example.com/a?b=c"));
    assert!(
        links
            .clone()
            .contains(&own, "HTTPS://EXAMPLE.COM/a?b=c#top")
    );
    assert!(!links.contains(&other, "https://example.com/a?b=c"));
    for different in [
        "https://example.com/a?b=d",
        "https://example.com/a?b=c#secret",
        "https://example.com/a",
        "http://example.com/a?b=c",
        "https://example.com:444/a?b=c",
        "https://example.com/a?b=c&secret=1",
        "https://user@example.com/a?b=c",
    ] {
        assert!(!links.contains(&own, different), "{different}");
    }
}

#[test]
fn links_that_are_not_http_or_too_long_are_not_stored() {
    let links = SeenLinks::default();
    let session = SessionId::from("s");
    let long = format!("https://example.com/{}", "x".repeat(5000));
    for link in [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "/relative",
        "",
        &long,
    ] {
        links.add(&session, [link].into_iter());
        assert!(!links.contains(&session, link), "{link}");
    }
}

#[test]
fn the_oldest_links_and_sessions_are_dropped() {
    let links = SeenLinks::default();
    let session = SessionId::from("s");
    let many: Vec<String> = (0..20_010)
        .map(|index| format!("https://example.com/{index}"))
        .collect();
    links.add(&session, many[..10_000].iter().map(String::as_str));
    links.add(&session, many[10_000..].iter().map(String::as_str));
    assert!(!links.contains(&session, &many[0]));
    assert!(links.contains(&session, &many[10]));
    assert!(links.contains(&session, &many[20_009]));
    for index in 0..300 {
        assert!(
            links.contains(&session, &many[20_009]),
            "a session in use is not dropped"
        );
        let other = SessionId::from(format!("s{index}").as_str());
        links.add(&other, ["https://example.com/"].into_iter());
    }
    assert!(!links.contains(&SessionId::from("s0"), "https://example.com/"));
}
