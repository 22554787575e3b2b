//! When a page is at rest: its workers run, its frames come and go, its requests are given up, its popups are closed. None of
//! it keeps a call waiting for something that no longer ends.

use crate::act::handle;
use crate::support::Bench;
use serde_json::json;
use std::time::{Duration, Instant};

/// A page at rest is read well before the limit of ten seconds.
const QUICK: Duration = Duration::from_secs(5);

/// Opens an HTML page of the site, and fails if it is not at rest soon.
async fn open_at_rest(bench: &Bench, html: &str) {
    let html = format!("<!doctype html><title>Page</title><p id=out>text</p>{html}");
    let encoded = percent_encoding::utf8_percent_encode(&html, percent_encoding::NON_ALPHANUMERIC);
    let started = Instant::now();
    let text = bench
        .open(&format!("echo?type=text/html&body={encoded}"))
        .await;
    let time = started.elapsed();
    assert!(
        !text.contains("not at rest") && time < QUICK,
        "{time:?} {html}: {text}"
    );
}

#[tokio::test]
async fn a_popup_past_the_limit_of_tabs_does_not_keep_its_opener_waiting() {
    let bench = Bench::new().await;
    open_at_rest(&bench, "<a href=/inner target=_blank>open</a><button onclick=\"window.open('/inner')\">Popup</button>").await;
    let browser = bench.sessions.browser(&"s_1".into()).unwrap();
    for _ in 0..9 {
        browser
            .open_tab(lango_browser::ContextKind::Web)
            .await
            .unwrap();
    }
    browser.switch("t1").unwrap();
    let seen = bench.text("browser_observe", json!({})).await;
    for (words, action, key) in [
        ("button \"Popup\"", "click", None),
        ("button \"Popup\"", "press", Some("Enter")),
        ("link \"open\"", "click", None),
        ("link \"open\"", "press", Some("Enter")),
    ] {
        let step = json!({ "action": action, "handle": handle(&seen, words), "text": key });
        let started = Instant::now();
        let text = bench.text("browser_act", json!({ "steps": [step] })).await;
        let time = started.elapsed();
        assert!(
            text.contains("a new tab was closed at once: 10 tabs are open"),
            "{text}"
        );
        assert!(time < QUICK, "{action} {words}: {time:?} {text}");
    }
}
