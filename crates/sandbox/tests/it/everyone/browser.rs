//! A real Chromium, with its own sandbox enabled, inside this sandbox.

use crate::chromium::{Chromium, KEEP_OPEN, Process};
use crate::fixture::program;
use lango_sandbox::{Child, ExceededLimit, ExitKind, Layer, Layers};
use std::io::{BufRead, BufReader, Write};
use std::time::Duration;
use tokio::io::AsyncReadExt;

async fn output(child: &mut Child) -> (String, String) {
    let (mut stdout, mut stderr) = (String::new(), String::new());
    let mut out = child.stdout.take().unwrap();
    let mut err = child.stderr.take().unwrap();
    let (one, other) = tokio::join!(
        out.read_to_string(&mut stdout),
        err.read_to_string(&mut stderr)
    );
    one.and(other).unwrap();
    (stdout, stderr)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_runs_and_chromiums_files_are_not_cleaned_up() {
    let chromium = Chromium::new();
    let url = chromium.page(
        "page.html",
        "<body><script>document.body.textContent = 'sum ' + (20 + 22)</script>",
    );
    for name in ["private/.env", "private/.git"] {
        std::fs::write(chromium.path(name), "").unwrap();
    }
    let mut child = chromium.print(&url);
    let (stdout, stderr) = output(&mut child).await;
    let outcome = child.wait().await.unwrap();
    assert!(stdout.contains("sum 42"), "{stdout}{stderr}");
    assert_eq!(outcome.exit, ExitKind::Code(0), "{stderr}");
    assert!(outcome.clean_up.is_empty(), "{outcome:?}");
    for name in ["private/.env", "private/.git", "private/profile/Default"] {
        assert!(chromium.path(name).exists(), "{name} is gone");
    }
    let trash = std::fs::read_dir(chromium.path("trash")).unwrap();
    assert_eq!(trash.count(), 0);
    chromium.wait_for_end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn chromiums_own_sandbox_confines_pages_too() {
    let chromium = Chromium::new();
    let mut child = chromium.keep_open("about:blank");
    chromium.wait_for_page().await;
    // A page's process installs its filter a moment after it starts.
    chromium
        .wait_until("pages in Chromium's own sandbox", |processes| {
            let is_main = |process: &&Process| !process.arguments.contains("--type=");
            let main = processes.iter().find(is_main).unwrap();
            let mut pages = processes.iter().filter(|process| process.is_page());
            pages.all(|page| page.depth > main.depth && page.filters > main.filters)
        })
        .await;
    let is_unconfined = |process: &Process| process.arguments.contains("--no-sandbox");
    assert!(!chromium.processes().iter().any(is_unconfined));
    child.kill();
    let outcome = child.wait().await.unwrap();
    assert_eq!(outcome.exit, ExitKind::Signal(9));
    assert!(chromium.processes().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn all_requests_go_to_the_listener_even_those_to_localhost() {
    let chromium = Chromium::new();
    let mut child = chromium.print("http://127.0.0.1:8099/page");
    let listeners = child.listeners().await.unwrap();
    listeners.proxy.set_nonblocking(false).unwrap();
    let served = std::thread::spawn(move || {
        loop {
            let (stream, _) = listeners.proxy.accept().unwrap();
            let mut request = String::new();
            let mut reader = BufReader::new(&stream);
            reader.read_line(&mut request).unwrap();
            if !request.starts_with("GET http://127.0.0.1:8099/page ") {
                continue;
            }
            let body = "<body>from the listener";
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close";
            write!(
                &stream,
                "{head}\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            )
            .unwrap();
            return request;
        }
    });
    let (stdout, stderr) = output(&mut child).await;
    assert!(stdout.contains("from the listener"), "{stdout}{stderr}");
    assert!(served.join().unwrap().ends_with("HTTP/1.1\r\n"));
}

/// A page that allocates more and more incompressible memory.
const GREEDY: &str = "<script>const held = []; function more() { const part = new Uint8Array(16 << 20); \
    for (let i = 0; i < part.length; i += 65536) crypto.getRandomValues(part.subarray(i, i + 65536)); \
    held.push(part); setTimeout(more, 0); } more();</script>";

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_is_stopped_if_a_page_uses_too_much_memory() {
    for cgroup in [Layer::Used, Layer::LeftOut] {
        let mut chromium = Chromium::new();
        chromium.launcher = chromium.launcher.with_layers(Layers {
            cgroup,
            ..Layers::default()
        });
        chromium.limits.memory_bytes = 800 << 20;
        let url = chromium.page("greedy.html", GREEDY);
        let mut child = chromium.keep_open(&url);
        let outcome = child.wait().await.unwrap();
        assert_eq!(
            outcome.stopped_by,
            Some(ExceededLimit::Memory),
            "{cgroup:?}: {outcome:?}"
        );
        assert!(chromium.processes().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_browser_process_outlives_its_time_limit_or_its_owner() {
    let mut chromium = Chromium::new();
    let child = chromium.keep_open("about:blank");
    chromium.wait_for_page().await;
    drop(child);
    chromium.wait_for_end().await;

    chromium.limits.time = Some(Duration::from_secs(3));
    let mut child = chromium.keep_open("about:blank");
    chromium.wait_for_page().await;
    let outcome = child.wait().await.unwrap();
    assert_eq!(outcome.stopped_by, Some(ExceededLimit::Time));
    assert!(chromium.processes().is_empty());

    let mut lango = std::process::Command::new(program("sandbox-stand-in"))
        .arg("browse")
        .arg(&chromium.policy.workspace)
        .args(["sh", "-c", KEEP_OPEN])
        .args(chromium.argv(&["--remote-debugging-pipe", "about:blank"]))
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    chromium.wait_for_page().await;
    lango.kill().unwrap();
    lango.wait().unwrap();
    chromium.wait_for_end().await;
}
