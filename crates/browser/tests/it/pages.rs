//! Effects of pages on a browser: frames, dialogs, crashes, endless scripts.

use crate::support::Bench;
use lango_browser::cdp::NoParams;
use lango_browser::{BrowserError, Page};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

async fn open(bench: &Bench, path: &str) -> Page {
    bench.open(path).await;
    let browser = bench.sessions.browser(&"s_1".into()).unwrap();
    browser.active_page().unwrap()
}

async fn evaluate(page: &Page, expression: &str) -> Value {
    page.evaluate(page.session(), &page.main_frame(), expression)
        .await
        .unwrap()
}

#[tokio::test]
async fn frames_of_the_same_site_and_of_another_site_are_found() {
    let bench = Bench::new().await;
    let page = open(&bench, "frames").await;
    let frames = page.frames().await.unwrap();
    assert_eq!(frames.len(), 3, "{frames:?}");
    let near = &frames[1];
    let far = frames
        .iter()
        .find(|frame| frame.url.contains("other.test"))
        .unwrap();
    assert_eq!(near.session.id(), page.session().id());
    assert_ne!(far.session.id(), page.session().id());
    for frame in [near, far] {
        assert_eq!(frame.parent.as_ref(), Some(&frames[0].id));
        let text = page
            .evaluate(&frame.session, &frame.id, "document.body.textContent")
            .await;
        assert_eq!(text.unwrap(), "inner textPress");
    }
}

#[tokio::test]
async fn a_page_settles_when_its_requests_and_scripts_are_done() {
    let bench = Bench::new().await;
    let page = open(&bench, "spa").await;
    assert_eq!(
        evaluate(&page, "document.querySelectorAll('li').length").await,
        2
    );
    assert!(page.url().ends_with("/spa/list"));
}

#[tokio::test]
async fn a_loop_of_alerts_ends_the_page_and_is_reported() {
    let bench = Bench::new().await;
    let error = bench
        .error(
            "browser_navigate",
            json!({ "url": bench.site.url("alerts") }),
        )
        .await;
    assert!(error.starts_with("the page crashed"), "{error}");
    assert!(error.contains("an alert: \"again\" (29 times)"), "{error}");
    assert!(error.contains("in a loop and was stopped"), "{error}");
    assert!(bench.open("inner").await.contains("Inner"));
}

#[tokio::test]
async fn a_page_crash_is_reported_and_another_page_can_be_opened() {
    let bench = Bench::new().await;
    let page = open(&bench, "inner").await;
    let crash: Result<Value, _> = page.call("Page.crash", NoParams {}).await;
    assert!(crash.is_err());
    assert_eq!(page.title().await, Err(BrowserError::PageCrashed));
    assert!(
        bench
            .open("inner")
            .await
            .contains("[the page in tab t1 crashed]")
    );
    let tabs = bench
        .text("browser_tabs", json!({ "action": "list" }))
        .await;
    assert!(
        tabs.starts_with("t2 (active)") && tabs.lines().count() == 1,
        "{tabs}"
    );
}

#[tokio::test]
async fn a_browser_crash_fails_every_pending_call_immediately_and_a_new_browser_is_started() {
    let bench = Bench::new().await;
    let page = open(&bench, "inner").await;
    let started = Instant::now();
    let endless = "new Promise(() => {})";
    let frame = page.main_frame();
    let waiting = page.evaluate_within(Duration::from_secs(60), page.session(), &frame, endless);
    let root = page.browser().root();
    let crash = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        root.call::<Value>("Browser.crash", NoParams {}).await
    };
    let (waiting, crash) = tokio::join!(waiting, crash);
    assert_eq!(
        (waiting, crash),
        (Err(BrowserError::Crashed), Err(BrowserError::Crashed))
    );
    assert!(started.elapsed() < Duration::from_secs(5));
    let error = bench.error("browser_back", json!({})).await;
    assert!(
        error.contains("earlier handles are invalid; navigate again"),
        "{error}"
    );
    assert!(bench.open("inner").await.contains("Inner"));
}

#[tokio::test]
async fn an_endless_script_does_not_hang_a_call() {
    let bench = Bench::new().await;
    let started = Instant::now();
    let text = bench.open("hang").await;
    assert!(text.contains("not settled after 10 s"), "{text}");
    assert!(started.elapsed() < Duration::from_secs(25));
    assert!(bench.open("inner").await.contains("Inner"));
}
