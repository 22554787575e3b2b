//! When pages settle: neither workers, nor removed frames, nor aborted requests, nor closed popups may keep a call
//! waiting.

use crate::act::handle;
use crate::support::Bench;
use serde_json::json;
use std::time::{Duration, Instant};

/// A page that settles is opened well before the limit of ten seconds.
const QUICK: Duration = Duration::from_secs(5);

/// Opens an HTML page of the site, and fails if it does not settle soon.
async fn open_settled(bench: &Bench, html: &str) {
    let html = format!("<!doctype html><title>Page</title><p id=out>text</p>{html}");
    let encoded = percent_encoding::utf8_percent_encode(&html, percent_encoding::NON_ALPHANUMERIC);
    let started = Instant::now();
    let text = bench
        .open(&format!("echo?type=text/html&body={encoded}"))
        .await;
    let time = started.elapsed();
    assert!(
        !text.contains("not settled") && time < QUICK,
        "{time:?} {html}: {text}"
    );
}

async fn text_of(bench: &Bench, expression: &str) -> String {
    let page = bench.page();
    let frame = page.main_frame();
    let text = page.evaluate(page.session(), &frame, expression).await;
    text.unwrap().as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_page_with_workers_settles() {
    let bench = Bench::new().await;
    bench.open("inner").await;
    let script = "/echo?type=text/javascript&body=";
    let fetching =
        "fetch('/data').then(r => r.text()).then(t => (self.postMessage ?? (() => {}))(t))";
    let code = |code: &str| {
        percent_encoding::utf8_percent_encode(code, percent_encoding::NON_ALPHANUMERIC).to_string()
    };
    let nested = format!(
        "new Worker('{script}{}').onmessage = e => postMessage(e.data)",
        code(fetching)
    );
    let pages = [
        format!(
            "<script>new Worker('{script}{}').onmessage = e => out.textContent = e.data</script>",
            code(fetching)
        ),
        format!(
            "<script>new Worker('{script}{}', {{ type: 'module' }}).onmessage = e => out.textContent = e.data</script>",
            code(fetching)
        ),
        format!(
            "<script>new Worker('{script}{}').onmessage = e => out.textContent = e.data</script>",
            code(&nested)
        ),
        "<script>new Worker(URL.createObjectURL(new Blob(['postMessage(1)'])))</script>".to_owned(),
        "<script>new Worker('/missing')</script>".to_owned(),
        format!(
            "<script>const w = new Worker('{script}{}'); setTimeout(() => w.terminate(), 100)</script>",
            code("fetch('/silent')")
        ),
        "<script>new Worker('/data').terminate()</script>".to_owned(),
        "<script>const w = new Worker('/slow'); setTimeout(() => w.terminate(), 100)</script>"
            .to_owned(),
        format!(
            "<script>new SharedWorker('{script}{}')</script>",
            code(fetching)
        ),
    ];
    for (index, html) in pages.iter().enumerate() {
        open_settled(&bench, html).await;
        if index < 3 {
            assert_eq!(
                text_of(&bench, "out.textContent").await,
                "[\"one\",\"two\"]",
                "{html}"
            );
        }
    }
    let html = format!("<button onclick=\"new Worker('{script}1')\">Go</button>");
    open_settled(&bench, &html).await;
    let seen = bench.text("browser_observe", json!({})).await;
    let step = json!({ "action": "click", "handle": handle(&seen, "button \"Go\"") });
    let started = Instant::now();
    bench.text("browser_act", json!({ "steps": [step] })).await;
    assert!(
        started.elapsed() < Duration::from_secs(4),
        "{:?}",
        started.elapsed()
    );
}

/// Uses pages of the workspace, because only these are secure contexts here, which service workers and worklets
/// require.
#[tokio::test]
async fn a_page_with_service_workers_and_worklets_settles() {
    let bench = Bench::new().await;
    let write = |name: &str, text: &str| std::fs::write(bench.inside(name), text).unwrap();
    write("data.json", "[1]");
    write(
        "service.js",
        "oninstall = () => skipWaiting(); onactivate = e => e.waitUntil(clients.claim()); fetch('data.json'); onfetch = e => e.respondWith(fetch(e.request))",
    );
    write(
        "audio.js",
        "registerProcessor('p', class extends AudioWorkletProcessor { process() { return true } })",
    );
    write("paint.js", "registerPaint('p', class { paint() {} })");
    write("a.html", "<title>Workers</title><p id=out></p><script>
        Promise.allSettled([
            navigator.serviceWorker.register('service.js').then(() => navigator.serviceWorker.ready),
            new AudioContext().audioWorklet.addModule('audio.js'),
            CSS.paintWorklet.addModule('paint.js'),
        ]).then(all => { out.textContent = all.map(one => one.status).join(' ') });
        </script>");
    for _ in 0..2 {
        let started = Instant::now();
        let text = bench
            .text("browser_navigate", json!({ "path": "a.html" }))
            .await;
        let time = started.elapsed();
        let waiting = "new Promise(end => { const look = () => out.textContent ? end(out.textContent) : setTimeout(look, 20); look() })";
        let seen = text_of(&bench, waiting).await;
        assert_eq!(seen, "fulfilled fulfilled fulfilled");
        assert!(
            !text.contains("not settled") && time < QUICK,
            "{time:?}: {text}"
        );
    }
}

#[tokio::test]
async fn aborted_requests_do_not_keep_a_page_from_settling() {
    let bench = Bench::new().await;
    bench.open("inner").await;
    let asking = |host: &str| {
        format!(
            "{host}/echo?type=text/html&body=%3Cscript%3Efetch('/silent');fetch('/silent',%7Bkeepalive:true%7D)%3C/script%3E"
        )
    };
    let other = bench.site.other_url("").trim_end_matches('/').to_owned();
    let remove = "setTimeout(() => f.remove(), 300)";
    let pages = [
        "<script>const c = new AbortController(); fetch('/silent', { signal: c.signal }).catch(() => {}); setTimeout(() => c.abort(), 300)</script>".to_owned(),
        "<script>const x = new XMLHttpRequest(); x.open('GET', '/silent'); x.send(); setTimeout(() => x.abort(), 300)</script>".to_owned(),
        "<script>navigator.sendBeacon('/silent', 'x')</script>".to_owned(),
        format!("<iframe id=f src=\"/silent\"></iframe><script>{remove}</script>"),
        format!("<iframe id=f src=\"{other}/silent\"></iframe><script>{remove}</script>"),
        format!("<iframe id=f src=\"{}\"></iframe><script>{remove}</script>", asking("")),
        format!("<iframe id=f src=\"{}\"></iframe><script>{remove}</script>", asking(&other)),
        format!("<iframe id=f src=\"{}\"></iframe><script>setTimeout(() => {{ f.src = '/inner' }}, 300)</script>", asking("")),
        format!("<iframe id=f src=\"{}\"></iframe><script>setTimeout(() => {{ f.src = '/inner' }}, 300)</script>", asking(&other)),
    ];
    for html in pages {
        open_settled(&bench, &html).await;
    }
}

#[tokio::test]
async fn a_popup_beyond_the_limit_of_tabs_does_not_block_its_opener() {
    let bench = Bench::new().await;
    open_settled(&bench, "<a href=/inner target=_blank>open</a><button onclick=\"window.open('/inner')\">Popup</button>").await;
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
            text.contains("a new tab was closed immediately: 10 tabs are open"),
            "{text}"
        );
        assert!(time < QUICK, "{action} {words}: {time:?} {text}");
    }
}

#[tokio::test]
async fn a_download_of_a_workspace_page_is_cancelled_without_waiting() {
    let bench = Bench::new().await;
    std::fs::write(bench.inside("data.bin"), vec![0; 1 << 20]).unwrap();
    let save = "const a = document.createElement('a'); a.href = window.URL.createObjectURL(new Blob(['x'])); a.download = 'x.txt'; a.click()";
    let page = format!(
        "<a href=data.bin>Get</a><a href=data.bin target=_blank>Tab</a><button onclick=\"{save}\">Make</button>"
    );
    std::fs::write(bench.inside("page.html"), page).unwrap();
    std::fs::write(
        bench.inside("saving.html"),
        format!("<script>{save}</script>"),
    )
    .unwrap();
    bench
        .text("browser_navigate", json!({ "path": "page.html" }))
        .await;
    let seen = bench.text("browser_observe", json!({})).await;
    let click =
        |words: &str| json!({ "steps": [{ "action": "click", "handle": handle(&seen, words) }] });
    let calls = [
        ("browser_act", click("link \"Get\"")),
        ("browser_act", click("button \"Make\"")),
        ("browser_act", click("link \"Tab\"")),
        (
            "browser_navigate",
            json!({ "path": "saving.html", "download": true }),
        ),
        (
            "browser_navigate",
            json!({ "path": "data.bin", "download": true }),
        ),
    ];
    for (tool, arguments) in calls {
        let started = Instant::now();
        let text = bench.text(tool, arguments.clone()).await;
        let time = started.elapsed();
        assert!(
            text.contains("was not saved: pages of the workspace cannot download files"),
            "{arguments}: {text}"
        );
        assert!(time < QUICK, "{arguments}: {time:?} {text}");
    }
    assert!(!bench.inside("downloads").exists());
}
