//! Tests of the browsers that sessions use: how many there are, when they end, and what they leave behind.

use crate::processes::{processes, wait_until_gone};
use crate::support::Bench;
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn each_session_has_its_own_browser() {
    let bench = Bench::new().await;
    let url = json!({ "url": bench.site.url("count") });
    for (session, title) in [("s_1", "Visit 1"), ("s_2", "Visit 1"), ("s_1", "Visit 2")] {
        let output = bench.run_as(session, "browser_navigate", url.clone()).await;
        let text = output.unwrap().text;
        assert!(text.contains(title), "{session}: {text}");
    }
    let error = bench
        .run_as("s_3", "browser_back", json!({}))
        .await
        .unwrap_err();
    assert!(error.message.contains("no page is open"), "{error}");
}

#[tokio::test]
async fn the_least_recently_used_browser_is_closed_for_a_fifth_one() {
    let bench = Bench::new().await;
    let url = json!({ "url": bench.site.url("inner") });
    for session in ["s_1", "s_2", "s_3", "s_4", "s_5"] {
        let opened = bench.run_as(session, "browser_navigate", url.clone()).await;
        opened.unwrap_or_else(|error| panic!("{session}: {error}"));
    }
    assert_eq!(bench.sessions.count(), 4);
    assert!(bench.sessions.browser(&"s_1".into()).is_none());
    assert!(bench.sessions.browser(&"s_2".into()).is_some());
}

#[tokio::test]
async fn an_idle_browser_is_closed_and_leaves_nothing() {
    let bench = Bench::with_idle_time(Duration::from_millis(1500)).await;
    bench.open("inner").await;
    assert!(!processes(&bench.directory()).is_empty());
    assert_eq!(bench.sessions.count(), 1);
    wait_until_gone(&bench.directory()).await;
    assert_eq!(bench.sessions.count(), 0);
    assert!(bench.open("inner").await.contains("Inner"));
}

#[tokio::test]
async fn closing_and_dropping_leave_nothing() {
    let bench = Bench::new().await;
    bench.open("inner").await;
    let text = bench.text("browser_close", json!({})).await;
    assert_eq!(text, "Closed the browser.\n");
    wait_until_gone(&bench.directory()).await;
    assert_eq!(
        bench.text("browser_close", json!({})).await,
        "No browser is open.\n"
    );
    bench.open("inner").await;
    let directory = bench.directory();
    let folder = bench.into_folder();
    wait_until_gone(&directory).await;
    drop(folder);
}

/// Runs in its own user namespace, started by
/// [`a_browser_starts_without_its_own_sandbox_where_namespaces_cannot_be_nested`].
#[tokio::test]
#[ignore = "run by another test"]
async fn with_few_user_namespaces() {
    let bench = Bench::new().await;
    let url = json!({ "url": bench.site.url("inner") });
    // The kernel still counts the namespaces of the sandbox check for a moment after it ends.
    let mut tries = 0;
    while let Err(error) = bench.run("browser_navigate", url.clone()).await {
        tries += 1;
        assert!(tries < 20, "{error}");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    let flags = processes(&bench.directory()).into_iter().map(|process| {
        let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ")
    });
    let count = flags.filter(|line| line.contains("--no-sandbox")).count();
    println!("{count} processes without their own sandbox");
}

#[test]
fn a_browser_starts_without_its_own_sandbox_where_namespaces_cannot_be_nested() {
    let run = |limit: &str| {
        let script = "echo $1 > /proc/sys/user/max_user_namespaces && exec \"$0\" --exact --ignored --nocapture \
            browsers::with_few_user_namespaces";
        let output = std::process::Command::new("unshare")
            .args(["--user", "--map-root-user", "sh", "-c", script])
            .arg(std::env::current_exe().unwrap())
            .arg(limit)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{limit}: {text}");
        text
    };
    assert!(run("100").contains("\n0 processes without"));
    // Two namespaces are enough for lango's sandbox, but not for Chromium's.
    let few = run("2");
    assert!(
        few.contains("processes without") && !few.contains("\n0 processes"),
        "{few}"
    );
}
