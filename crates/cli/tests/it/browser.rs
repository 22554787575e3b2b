//! The browser from outside: who has one, a page of the workspace, and what is left after the end.

use crate::lango::{Lango, finish};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The processes whose command line names this folder.
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
fn the_navigator_opens_a_page_of_the_workspace_and_leaves_nothing() {
    let lango = Lango::new();
    lango.file("page.html", "<title>Quarterly report</title><h1>Hi</h1>");
    let mut command = lango.command(&["run", "open page.html and tell me the title"]);
    let ran = finish(command.env("LANGO_BROWSER_ENABLED", "true"), b"").ok();
    assert!(ran.stdout.contains("Quarterly report"), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("navigator ✓ browser_navigate"),
        "{}",
        ran.stderr
    );
    let directories = lango.home().join("browsers");
    assert_eq!(processes(&directories), 0);
    assert_eq!(directories.read_dir().unwrap().count(), 0);
}

#[test]
fn no_process_outlives_a_lango_that_is_killed() {
    let lango = Lango::new();
    // Never at rest, so that the call is still under way.
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
    // Its directory is removed with the next browser.
    lango.file("page.html", "<title>Quarterly report</title>");
    let mut command = lango.command(&["run", "open page.html and tell me the title"]);
    finish(command.env("LANGO_BROWSER_ENABLED", "true"), b"").ok();
    assert_eq!(directories.read_dir().unwrap().count(), 0);
}

#[test]
fn without_a_browser_there_is_no_navigator_and_lango_says_why() {
    let lango = Lango::new();
    lango.file("not-a-program", "");
    let path = lango.workspace().join("not-a-program");
    let agents = |enabled: &str| {
        let mut command = lango.command(&["agents"]);
        command.env("LANGO_BROWSER_ENABLED", enabled);
        finish(command.env("LANGO_BROWSER_PATH", &path), b"")
    };
    let shown = agents("auto").ok().stdout;
    assert!(!shown.contains("├─ navigator"), "{shown}");
    assert!(shown.contains("browser_* (`browser.path` is `"), "{shown}");
    agents("true").refused(3, &["`browser.enabled` is true", "which is not a program"]);
    let shown = agents("false").ok().stdout;
    assert!(
        !shown.contains("├─ navigator") && !shown.contains("browser_*"),
        "{shown}"
    );
    let mut command = lango.command(&["doctor"]);
    let shown = finish(command.env("LANGO_BROWSER_ENABLED", "auto"), b"").stdout;
    assert!(shown.contains("✓ browser "), "{shown}");
}

#[test]
fn a_project_can_take_the_browser_away_and_nothing_else() {
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
