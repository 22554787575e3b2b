//! Opening pages of various kinds, and what the tool reports.

use crate::support::{Bench, caller_of};
use lango_core::Trust;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[tokio::test]
async fn a_page_is_opened_and_its_title_reported() {
    let bench = Bench::new().await;
    let url = bench.site.url("inner");
    let output = bench
        .run("browser_navigate", json!({ "url": url }))
        .await
        .unwrap();
    assert_eq!(output.text, format!("Opened {url} \"Inner\"\n"));
    assert_eq!(output.trust, Trust::Untrusted);
}

#[tokio::test]
async fn an_error_status_of_a_page_is_reported() {
    let bench = Bench::new().await;
    assert!(
        bench
            .open("missing")
            .await
            .contains("\"Missing\" (HTTP status 404)")
    );
    assert!(
        bench
            .open("broken")
            .await
            .contains("\"Broken\" (HTTP status 500)")
    );
    let url = bench.site.url("private");
    let error = bench.error("browser_navigate", json!({ "url": url })).await;
    assert!(error.contains("the site requires a password"), "{error}");
    assert!(!bench.open("inner").await.contains("HTTP status"));
}

#[tokio::test]
async fn redirects_are_followed_reported_and_limited() {
    let bench = Bench::new().await;
    let text = bench.open("away").await;
    let host = format!("other.test:{}", bench.site.port);
    assert!(
        text.contains(&format!("Opened http://{host}/inner \"Inner\"")),
        "{text}"
    );
    assert!(
        text.contains(&format!("redirected to another host: {host}")),
        "{text}"
    );
    let error = bench
        .error("browser_navigate", json!({ "url": bench.site.url("loop") }))
        .await;
    assert!(error.contains("the site redirects endlessly"), "{error}");
    let inward = json!({ "url": bench.site.url("inward") });
    let error = bench.error("browser_navigate", inward).await;
    let refusal = "`10.0.0.1:80` is refused by the entry `*` in `egress.deny`";
    assert!(error.contains(refusal) && !error.contains('['), "{error}");
    let text = bench.open("refresh").await;
    assert!(text.contains("/inner \"Inner\""), "{text}");
}

#[tokio::test]
async fn a_page_that_never_finishes_loading_is_used_as_it_is() {
    let bench = Bench::new().await;
    let started = Instant::now();
    let text = bench.open("endless").await;
    assert!(text.contains("Endless"), "{text}");
    assert!(
        text.contains("not settled after 10 s: the page is still loading"),
        "{text}"
    );
    assert!(started.elapsed() < Duration::from_secs(20));
    assert!(bench.open("slow").await.contains("Slow"));
}

#[tokio::test]
async fn a_server_that_does_not_answer_fails_the_call() {
    let bench = Bench::new().await;
    let error = bench
        .error(
            "browser_navigate",
            json!({ "url": bench.site.url("silent") }),
        )
        .await;
    assert!(error.contains("did not answer within 30 s"), "{error}");
    assert!(bench.open("inner").await.contains("Inner"));
}

#[tokio::test]
async fn a_page_of_fifty_megabytes_does_not_break_anything() {
    let bench = Bench::new().await;
    let started = Instant::now();
    let opened = bench
        .run(
            "browser_navigate",
            json!({ "url": bench.site.url("large") }),
        )
        .await;
    assert!(started.elapsed() < Duration::from_secs(45), "{opened:?}");
    assert!(bench.open("inner").await.contains("Inner"));
}

#[tokio::test]
async fn cookies_last_as_long_as_the_browser() {
    let bench = Bench::new().await;
    assert!(bench.open("count").await.contains("Visit 1"));
    assert!(bench.open("count").await.contains("Visit 2"));
    bench.text("browser_close", json!({})).await;
    assert!(bench.open("count").await.contains("Visit 1"));
}

#[tokio::test]
async fn going_back_shows_the_previous_page() {
    let bench = Bench::new().await;
    bench.open("inner").await;
    assert!(
        bench
            .text("browser_back", json!({}))
            .await
            .contains("no previous page")
    );
    bench.open("login").await;
    let text = bench.text("browser_back", json!({})).await;
    assert_eq!(
        text,
        format!("Back at {} \"Inner\"\n", bench.site.url("inner"))
    );
}

#[tokio::test]
async fn a_page_that_asks_for_confirmation_to_leave_is_left() {
    let bench = Bench::new().await;
    bench.open("leave").await;
    let browser = bench.sessions.browser(&"s_1".into()).unwrap();
    let page = browser.active_page().unwrap();
    // Pages may ask only after the user has interacted with them.
    for kind in ["mousePressed", "mouseReleased"] {
        let params = json!({ "type": kind, "x": 20, "y": 20, "button": "left", "clickCount": 1 });
        let _: serde_json::Value = page.call("Input.dispatchMouseEvent", params).await.unwrap();
    }
    let text = bench.open("inner").await;
    assert!(text.contains("Inner"), "{text}");
    assert!(
        text.contains("asked for confirmation to leave it"),
        "{text}"
    );
}

#[tokio::test]
async fn script_errors_are_reported() {
    let bench = Bench::new().await;
    let text = bench.open("error").await;
    assert!(
        text.contains("[a script of the page failed: \"Error: script is broken\"]"),
        "{text}"
    );
}

#[tokio::test]
async fn popups_become_tabs_and_too_many_are_closed() {
    let bench = Bench::new().await;
    bench.open("inner").await;
    let browser = bench.sessions.browser(&"s_1".into()).unwrap();
    let page = browser.active_page().unwrap();
    let open = json!({ "expression": "for (let i = 0; i < 15; i++) open('/inner?' + i)", "userGesture": true });
    let _: serde_json::Value = page.call("Runtime.evaluate", open).await.unwrap();
    page.settle().await.unwrap();
    let list = bench
        .text("browser_tabs", json!({ "action": "list" }))
        .await;
    assert!(list.contains("t1 (active)"), "{list}");
    assert!(list.contains("[the page opened the tab t2"), "{list}");
    let tabs = list.lines().filter(|line| line.starts_with('t')).count();
    assert!((2..=10).contains(&tabs), "{list}");
    let text = bench
        .text("browser_tabs", json!({ "action": "switch", "tab": "t2" }))
        .await;
    assert!(text.starts_with("Switched to t2: "), "{text}");
    let text = bench
        .text("browser_tabs", json!({ "action": "close", "tab": "t2" }))
        .await;
    assert!(!text.contains("t2 "), "{text}");
    let error = bench
        .error("browser_tabs", json!({ "action": "switch", "tab": "t99" }))
        .await;
    assert!(error.contains("there is no tab `t99`"), "{error}");
}

#[tokio::test]
async fn a_search_opens_the_results_of_the_configured_engine() {
    let bench = Bench::new().await;
    let text = bench
        .text("browser_search", json!({ "query": "a & b" }))
        .await;
    assert!(text.contains("Results for a & b"), "{text}");
}

#[tokio::test]
async fn a_call_contacts_only_the_site_that_was_inspected() {
    let bench = Bench::new().await;
    let tool = bench.tool("browser_navigate");
    let url = bench.site.url("inner");
    let arguments = Arc::new(json!({ "url": url }));
    let mut caller = caller_of("s_1");
    // This call was not inspected at all.
    let refused = tool.run(&caller, Arc::clone(&arguments)).await.unwrap_err();
    assert!(
        refused.message.contains("would now contact another site"),
        "{refused}"
    );
    caller.inspection = tool.inspect(&caller, Arc::clone(&arguments)).await;
    let site = caller.inspection.site.clone().unwrap();
    assert_eq!(&*site.host, format!("site.test:{}", bench.site.port));
    assert_eq!(site.url.as_deref(), Some(url.as_str()));
    assert!(!site.is_known);
    bench
        .seen_links
        .add(&"s_1".into(), [url.as_str()].into_iter());
    let inspection = tool.inspect(&caller, Arc::clone(&arguments)).await;
    assert!(inspection.site.unwrap().is_known);
    let other = Arc::new(json!({ "url": bench.site.other_url("inner") }));
    let refused = tool.run(&caller, other).await.unwrap_err();
    assert!(
        refused.message.contains("would now contact another site"),
        "{refused}"
    );
    assert_eq!(bench.sessions.count(), 0);
}

#[tokio::test]
async fn non_web_and_internal_addresses_are_refused() {
    let bench = Bench::new().await;
    for url in [
        "file:///etc/passwd",
        "chrome://crash",
        "javascript:alert(1)",
        "data:text/html,x",
        "http://127.0.0.1:1/",
        "http://[::1]/",
        "http://workspace.localhost/x",
    ] {
        let error = bench.error("browser_navigate", json!({ "url": url })).await;
        assert!(
            error.contains("refused") || error.contains("not"),
            "{url}: {error}"
        );
    }
    assert_eq!(bench.sessions.count(), 0, "no browser is started for them");
    let both = json!({ "url": "https://example.com", "path": "x" });
    assert!(
        bench
            .error("browser_navigate", both)
            .await
            .contains("exactly one")
    );
}

#[tokio::test]
async fn pages_can_reach_only_what_the_egress_guard_allows() {
    let bench = Bench::new().await;
    std::fs::write(bench.inside("secret.txt"), "the secret").unwrap();
    let text = bench.open("reach").await;
    assert!(text.contains("\"done\""), "{text}");
    for host in [
        "127.0.0.1:8081",
        "169.254.169.254:80",
        "10.0.0.1:80",
        "example.com:443",
    ] {
        assert!(
            text.contains(&format!("[a request of the page failed: `{host}`")),
            "{host}: {text}"
        );
    }
    let browser = bench.sessions.browser(&"s_1".into()).unwrap();
    let page = browser.active_page().unwrap();
    let seen = page
        .evaluate(page.session(), &page.main_frame(), "out.textContent")
        .await;
    assert!(!seen.unwrap().to_string().contains("the secret"));
}
