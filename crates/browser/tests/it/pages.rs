//! Pages without a network.

use crate::support::offline_browser;
use lango_browser::cdp::NoParams;
use lango_browser::{Browser, BrowserError, ContextKind, Page};
use serde_json::{Value, json};

/// Opens a page with this content.
async fn open(browser: &Browser, html: &str) -> Page {
    let page = browser.page_in(ContextKind::Web).await.unwrap();
    let params = json!({ "frameId": page.main_frame(), "html": html });
    let _: Value = page.call("Page.setDocumentContent", params).await.unwrap();
    page.settle().await.unwrap();
    page
}

#[tokio::test]
async fn a_page_has_a_title_and_frames() {
    let browser = offline_browser().await;
    let page = open(
        &browser,
        "<title>Hello</title><iframe srcdoc='<p>inner</p>'></iframe>",
    )
    .await;
    assert_eq!(page.title().await.unwrap(), "Hello");
    let frames = page.frames().await.unwrap();
    assert_eq!(frames.len(), 2);
    assert_eq!(frames[1].parent.as_ref(), Some(&frames[0].id));
    let text = page
        .evaluate(
            &frames[1].session,
            &frames[1].id,
            "document.body.textContent",
        )
        .await;
    assert_eq!(text.unwrap(), "inner");
}

#[tokio::test]
async fn a_page_settles_when_its_scripts_are_done() {
    let browser = offline_browser().await;
    let page = open(
        &browser,
        "<p id=p></p><script>let n = 0; const t = setInterval(() => { p.textContent = ++n; if (n == 10) clearInterval(t); }, 50)</script>",
    )
    .await;
    let text = page
        .evaluate(page.session(), &page.main_frame(), "p.textContent")
        .await;
    assert_eq!(text.unwrap(), "10");
}

#[tokio::test]
async fn an_alert_is_told_and_a_loop_of_alerts_ends() {
    let browser = offline_browser().await;
    open(&browser, "<script>alert('one')</script>").await;
    assert_eq!(browser.take_notices(), ["the page showed an alert: `one`"]);
    let page = browser.active_page().unwrap();
    let script = json!({ "expression": "setTimeout(() => { for (;;) alert('again') })" });
    let _: Value = page.call("Runtime.evaluate", script).await.unwrap();
    assert_eq!(page.settle().await, Err(BrowserError::PageCrashed));
    let notices = browser.take_notices().join("\n");
    assert!(notices.contains("`again` (29 times)"), "{notices}");
    assert!(notices.contains("in a loop, and was stopped"), "{notices}");
}

#[tokio::test]
async fn a_page_that_crashes_says_so_and_another_can_be_opened() {
    let browser = offline_browser().await;
    let page = open(&browser, "<title>Old</title>").await;
    let crash: Result<Value, _> = page.call("Page.crash", NoParams {}).await;
    assert!(crash.is_err());
    assert_eq!(page.title().await, Err(BrowserError::PageCrashed));
    let page = open(&browser, "<title>New</title>").await;
    assert_eq!(page.title().await.unwrap(), "New");
}

#[tokio::test]
async fn a_browser_that_ends_fails_every_waiting_call_at_once() {
    let browser = offline_browser().await;
    let page = open(&browser, "").await;
    let started = std::time::Instant::now();
    let waiting = page.evaluate(page.session(), "", "0");
    let endless = page.settle_within(std::time::Duration::from_secs(60));
    let root = browser.root();
    let crash = root.call::<Value>("Browser.crash", NoParams {});
    let (_, crash, _) = tokio::join!(waiting, crash, endless);
    assert_eq!(crash, Err(BrowserError::Crashed));
    assert_eq!(page.title().await, Err(BrowserError::Crashed));
    assert!(started.elapsed().as_secs() < 5);
}
