//! Pages of the workspace, downloads into it, and screenshots.

use crate::support::Bench;
use serde_json::json;
use std::fs;

const PAGE: &str = "<!doctype html><title>Report</title><link rel=stylesheet href=style.css><h1>Report</h1>\
    <a id=near href=sub/other.html>other</a><pre id=out></pre><script>
    const tries = ['style.css', '/.git/config', '/.env', '/hidden/key', '/../outside.txt', 'http://site.test:PORT/inner', 'https://example.com/'];
    Promise.all(tries.map(url => fetch(url).then(async r => url + ' ' + r.status + ' ' + await r.text(), e => url + ' failed')))
        .then(lines => { out.textContent = lines.join('\\n') });
    </script>";

async fn text_of(bench: &Bench, expression: &str) -> String {
    let browser = bench.sessions.browser(&"s_1".into()).unwrap();
    let page = browser.active_page().unwrap();
    let frame = page.main_frame();
    let text = page.evaluate(page.session(), &frame, expression).await;
    text.unwrap().as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_workspace_page_can_load_workspace_files_but_has_no_network() {
    let bench = Bench::new().await;
    let page = PAGE.replace("PORT", &bench.site.port.to_string());
    fs::write(bench.inside("page one.html"), page).unwrap();
    fs::write(bench.inside("style.css"), "h1 { color: red }").unwrap();
    fs::create_dir(bench.inside("hidden")).unwrap();
    fs::write(bench.inside("hidden/key"), "the key").unwrap();
    fs::write(bench.inside("../outside.txt"), "outside").unwrap();
    let text = bench
        .text("browser_navigate", json!({ "path": "page one.html" }))
        .await;
    assert_eq!(
        text.lines().next().unwrap(),
        "Opened http://workspace.localhost/page%20one.html \"Report\""
    );
    let seen = text_of(&bench, "out.textContent").await;
    let lines: Vec<&str> = seen.lines().collect();
    assert_eq!(lines[0], "style.css 200 h1 { color: red }");
    assert!(
        !seen.contains("the key") && !seen.contains("200 outside"),
        "{seen}"
    );
    assert!(
        !seen.contains("inner text") && seen.contains("inner failed"),
        "{seen}"
    );
    assert!(lines[6].ends_with("failed"), "{seen}");
    // A web page opens in a separate context and cannot read the workspace.
    bench.open("inner").await;
    let fetching =
        "fetch('http://workspace.localhost/style.css').then(r => r.text(), e => 'failed')";
    let read = text_of(&bench, fetching).await;
    assert!(!read.contains("color"), "{read}");
}

#[tokio::test]
async fn folders_show_their_index_and_missing_files_are_named() {
    let bench = Bench::new().await;
    fs::create_dir(bench.inside("site")).unwrap();
    fs::write(bench.inside("site/index.html"), "<title>Index</title>").unwrap();
    let text = bench
        .text("browser_navigate", json!({ "path": "site" }))
        .await;
    assert_eq!(text, "Opened http://workspace.localhost/site/ \"Index\"\n");
    let error = bench
        .error("browser_navigate", json!({ "path": "none.html" }))
        .await;
    assert!(error.contains("`none.html` does not exist"), "{error}");
    let error = bench
        .error("browser_navigate", json!({ "path": "../x" }))
        .await;
    assert!(error.contains("outside the workspace"), "{error}");
}

#[tokio::test]
async fn a_download_is_saved_only_if_the_call_asks_for_it() {
    let bench = Bench::new().await;
    bench.open("download").await;
    let url = bench.site.url("file");
    let text = bench.text("browser_navigate", json!({ "url": url })).await;
    assert!(text.contains("a file to download, not a page"), "{text}");
    assert!(
        text.contains("[the download of `_.git_report.bin` from `site.test"),
        "{text}"
    );
    assert!(!bench.inside("downloads").exists());
    let arguments = json!({ "url": url, "download": true });
    for name in ["_.git_report.bin", "_.git_report-2.bin"] {
        let text = bench.text("browser_navigate", arguments.clone()).await;
        assert!(
            text.contains(&format!(
                "[downloaded `downloads/{name}` (23 bytes) from `site.test"
            )),
            "{text}"
        );
        let content = fs::read_to_string(bench.inside("downloads").join(name));
        assert_eq!(content.unwrap(), "the content of the file");
    }
    let site = bench.tool("browser_navigate");
    let caller = crate::support::caller_of("s_1");
    let inspection = site.inspect(&caller, std::sync::Arc::new(arguments)).await;
    let site = inspection.site.unwrap();
    assert_eq!(
        (site.url, site.is_known),
        (None, false),
        "saving always asks the user"
    );
}

#[tokio::test]
async fn screenshots_are_images_within_the_limit() {
    let bench = Bench::new().await;
    bench.open("scroll").await;
    for arguments in [json!({}), json!({ "full_page": true })] {
        let output = bench.run("browser_screenshot", arguments).await.unwrap();
        assert_eq!(output.files.len(), 1);
        assert_eq!(&*output.files[0].media_type, "image/png");
        assert!(output.files[0].bytes.len() > 1000);
        assert!(output.text.contains("A picture of"), "{}", output.text);
    }
    // Noise does not compress, so the picture is scaled down instead.
    let noise = "document.body.innerHTML = '<canvas width=3000 height=6000>'; const c = document.querySelector('canvas').getContext('2d'); \
        const i = c.createImageData(3000, 6000); for (let n = 0; n < i.data.length; n++) i.data[n] = n % 4 == 3 ? 255 : Math.random() * 256; c.putImageData(i, 0, 0); 'x'";
    text_of(&bench, noise).await;
    let output = bench
        .run("browser_screenshot", json!({ "full_page": true }))
        .await
        .unwrap();
    assert!(output.files[0].bytes.len() <= lango_core::AttachedFile::IMAGE_BYTES);
    assert_eq!(&*output.files[0].media_type, "image/jpeg");
    let error = bench
        .error("browser_screenshot", json!({ "element": "e1" }))
        .await;
    assert!(error.contains("handle `e1` is unknown"), "{error}");
}

#[tokio::test]
async fn elements_of_all_frames_can_be_pictured_with_their_handles() {
    let bench = Bench::new().await;
    bench.open("frames").await;
    let browser = bench.sessions.browser(&"s_1".into()).unwrap();
    let page = browser.active_page().unwrap();
    bench.text("browser_observe", json!({})).await;
    let handles = page.handles();
    let main = page.main_frame();
    let mut buttons: Vec<_> = handles
        .iter()
        .filter(|(_, element)| element.frame != main)
        .filter(|(_, element)| element.label.starts_with("button"))
        .collect();
    // The button of the frame in the same process comes first.
    buttons.sort_by_key(|(_, element)| Some(&element.session) != page.session().id());
    let areas = [buttons[0].1, buttons[1].1].map(|element| page.area_of(element));
    let [near, far] = areas;
    let (near, far) = (near.await.unwrap(), far.await.unwrap());
    assert!(
        far.x > near.x + 200.0,
        "the second frame is right of the first: {near:?} {far:?}"
    );
    let far_handle = buttons[1].0.to_owned();
    let plain = bench.run("browser_screenshot", json!({})).await.unwrap();
    let drawn = bench
        .run("browser_screenshot", json!({ "handles": true }))
        .await
        .unwrap();
    let after = bench.run("browser_screenshot", json!({})).await.unwrap();
    assert_ne!(plain.files[0].bytes, drawn.files[0].bytes);
    assert_eq!(
        plain.files[0].bytes, after.files[0].bytes,
        "the drawing is removed"
    );
    let one = bench
        .run("browser_screenshot", json!({ "element": far_handle }))
        .await
        .unwrap();
    assert!(one.files[0].bytes.len() < plain.files[0].bytes.len());
}
