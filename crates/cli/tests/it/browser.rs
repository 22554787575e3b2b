//! The browser through the real binary: when it is available, a page of the workspace, and what is left afterwards.

use crate::lango::{Lango, finish};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Counts the processes whose command line contains this folder.
fn processes(folder: &Path) -> usize {
    let named = folder.to_str().unwrap();
    let ids = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = ids.map(|entry| std::fs::read(entry.path().join("cmdline")).unwrap_or_default());
    lines
        .filter(|line| String::from_utf8_lossy(line).contains(named))
        .count()
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_navigator_opens_a_workspace_page_and_leaves_no_process_or_file() {
    let lango = Lango::new();
    lango.file("page.html", "<title>Quarterly report</title><h1>Hi</h1>");
    let mut command = lango.command(&["run", "open page.html and tell me the title"]);
    let ran = finish(command.env("LANGO_BROWSER_ENABLED", "true"), b"").ok();
    assert!(ran.stdout.contains("Quarterly report"), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("navigator ✓ open page.html"),
        "{}",
        ran.stderr
    );
    let directories = lango.home().join("browsers");
    assert_eq!(processes(&directories), 0);
    assert_eq!(directories.read_dir().unwrap().count(), 0);
}

#[test]
fn no_browser_process_outlives_a_killed_lango() {
    let lango = Lango::new();
    // The page never settles, so the call is still running.
    lango.file(
        "page.html",
        "<title>x</title><script>setInterval(() => document.title += 1, 10)</script>",
    );
    let mut command = lango.command(&["run", "open page.html and tell me the title"]);
    command.env("LANGO_BROWSER_ENABLED", "true");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let directories = lango.home().join("browsers");
    wait_until("the browser starts", || processes(&directories) > 3);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("all its processes end", || processes(&directories) == 0);
    // The next browser removes the directory that is left.
    lango.file("page.html", "<title>Quarterly report</title>");
    let mut command = lango.command(&["run", "open page.html and tell me the title"]);
    finish(command.env("LANGO_BROWSER_ENABLED", "true"), b"").ok();
    assert_eq!(directories.read_dir().unwrap().count(), 0);
}

#[test]
fn without_a_browser_there_is_no_navigator_and_lango_says_why() {
    let lango = Lango::new();
    lango.file("not-a-program", "");
    lango.file("page.html", "<title>Quarterly report</title>");
    let inside = lango.workspace().join("not-a-program");
    let nowhere = lango.workspace().join("nowhere/chromium");
    let run = |enabled: &str, path: &Path, arguments: &[&str]| {
        let mut command = lango.command(arguments);
        command.env("LANGO_BROWSER_ENABLED", enabled);
        finish(command.env("LANGO_BROWSER_PATH", path), b"")
    };
    let not_a_program = "which is not a program; set it to the path of Chromium, Chrome or Edge";
    let disabled = "`browser.enabled` is false; set it to \"auto\" to use a browser";
    for (enabled, path, reason) in [
        ("auto", &inside, not_a_program),
        ("auto", &nowhere, not_a_program),
        ("false", &nowhere, disabled),
    ] {
        let shown = run(enabled, path, &["agents"]).ok().stdout;
        assert!(!shown.contains("├─ navigator"), "{shown}");
        let absent = shown
            .lines()
            .find(|line| line.starts_with("unavailable tools: browser_* ("));
        assert!(absent.is_some_and(|line| line.contains(reason)), "{shown}");
        let shown = run(enabled, path, &["doctor"]).ok().stdout;
        let line = shown
            .lines()
            .find(|line| line.contains(" browser  "))
            .unwrap();
        assert!(
            line.starts_with("– browser") && line.contains(reason),
            "{shown}"
        );
        // Everything else works. Even the page is read, by another agent.
        let printed = run(enabled, path, &["run", "hello"]).ok().stdout;
        assert!(
            printed.contains("operator") && !printed.contains("navigator"),
            "{printed}"
        );
        let request = "open page.html and tell me the title";
        let ran = run(enabled, path, &["run", request]).ok();
        assert!(ran.stdout.contains("Quarterly report"), "{ran:#?}");
        assert!(ran.stderr.contains("operator ✓ read page.html"), "{ran:#?}");
    }
    let reason = &["`browser.enabled` is true", not_a_program];
    for arguments in [&["agents"][..], &["run", "hello"]] {
        run("true", &nowhere, arguments).refused(3, reason);
    }
    let shown = run("true", &nowhere, &["doctor"]).exits(3).stdout;
    assert!(
        shown.starts_with("✗ configuration") && shown.contains("next: "),
        "{shown}"
    );
}

#[test]
fn a_project_can_disable_the_browser_and_change_nothing_else() {
    let lango = Lango::new();
    let shown = |project: &str| {
        lango.file("lango.toml", project);
        let mut command = lango.command(&["config", "show"]);
        finish(command.env_remove("LANGO_BROWSER_ENABLED"), b"")
            .ok()
            .stdout
    };
    let text = shown(
        "[browser]\nenabled = false\npath = '/tmp/evil'\nsearchUrl = 'https://evil.example/{query}'\n",
    );
    assert!(!text.contains("evil"), "{text}");
    assert!(text.contains("browser.enabled = false"), "{text}");
    let text = shown("[browser]\nenabled = true\n");
    assert!(text.contains("browser.enabled = \"auto\""), "{text}");
}
