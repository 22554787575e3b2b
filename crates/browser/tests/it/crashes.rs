//! Chromium is killed while each tool runs. The call must fail immediately and name the next step, the next page must
//! open in a new browser, and nothing may remain of the old one.

use crate::processes::{kill, main_process, processes, renderers, wait_until};
use crate::support::Bench;
use serde_json::{Value, json};
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

/// Maximum time for a call to end after the browser is killed.
const END_TIMEOUT: Duration = Duration::from_secs(4);
/// Maximum time for a new browser to start.
const START_TIMEOUT: Duration = Duration::from_secs(5);
/// Time after which a blocked call is certainly running.
const HOLD_TIME: Duration = Duration::from_millis(400);

/// A page whose controls block all later scripts.
const BLOCKING_PAGE: &str = "<title>Holding</title><a href=/silent>Leave</a>\
    <input aria-label=Name oninput='for (;;) {}'><input type=file aria-label=File onchange='for (;;) {}'>\
    <table><tr><th>A<th>B<tr><td>1<td>2</table>";

/// What keeps a call from ending before the browser is killed.
#[derive(Clone, Copy, PartialEq)]
enum Blocker {
    /// Something that the call itself causes: a server that does not answer, or an endless script.
    Call,
    /// A script that is already running.
    Script,
}

/// Returns the handle of the element that an observation shows with this label.
fn handle_of(observation: &str, label: &str) -> String {
    let line = observation.lines().find(|line| line.contains(label));
    let line = line.unwrap_or_else(|| panic!("no {label}: {observation}"));
    let is_handle =
        |word: &&str| word.len() > 1 && word.starts_with('e') && word[1..].parse::<u32>().is_ok();
    let mut words = line.split(|c: char| !c.is_ascii_alphanumeric());
    words.find(is_handle).unwrap().to_owned()
}

/// Calls a tool and kills the browser while it runs. Returns the tool's text, and how long the call took after the
/// kill.
async fn kill_during(bench: &Bench, tool: &str, arguments: Value) -> (String, Duration) {
    let main = main_process(&bench.directory());
    let call = bench.run(tool, arguments);
    let mut call = std::pin::pin!(call);
    let early = tokio::time::timeout(HOLD_TIME, call.as_mut()).await;
    assert!(early.is_err(), "{tool} ended before the kill: {early:?}");
    kill(main);
    let killed = Instant::now();
    let ended = tokio::time::timeout(END_TIMEOUT, call).await;
    let text = match ended.unwrap_or_else(|_| panic!("{tool} does not end")) {
        Err(error) => error.message,
        // Completed steps had their effects, so these tools return a result that also reports the crash.
        Ok(output) if matches!(tool, "browser_act" | "browser_tabs") => output.text,
        Ok(output) => panic!("{tool}: {}", output.text),
    };
    (text, killed.elapsed())
}

/// Opens the page that blocks calls, and returns its observation.
async fn open_blocking_page(bench: &Bench) -> String {
    // Opens another page first, so that `browser_back` has a previous page.
    bench.open("inner").await;
    bench.show(BLOCKING_PAGE).await;
    bench.text("browser_observe", json!({})).await
}

/// Runs an endless script in the page.
fn keep_busy(bench: &Bench) {
    let page = bench.page();
    tokio::spawn(async move {
        let endless = json!({ "expression": "for (;;) {}" });
        let _: Result<Value, _> = page.call("Runtime.evaluate", endless).await;
    });
}

/// Checks that nothing remains of the killed browser and that the session continues in a new one.
async fn expect_recovery(bench: &Bench, tool: &str) {
    let stale = json!({ "steps": [{ "action": "click", "handle": "e1" }] });
    let error = bench.error("browser_act", stale.clone()).await;
    assert!(
        error.starts_with("the browser crashed") && error.contains("earlier handles are invalid"),
        "after {tool}: {error}"
    );
    let directory = bench.directory();
    let is_empty = || directory.read_dir().unwrap().count() == 0;
    wait_until(tool, || is_empty() && processes(&directory).is_empty()).await;
    let opened = bench.open("inner").await;
    assert!(opened.contains("Inner"), "after {tool}: {opened}");
    assert!(opened.contains("was restarted"), "after {tool}: {opened}");
    // The handles of the new browser differ from all old ones.
    bench.text("browser_observe", json!({})).await;
    let error = bench.error("browser_act", stale).await;
    assert!(
        error.contains("`e1` is unknown, or belongs to an earlier page or browser"),
        "after {tool}: {error}"
    );
}

#[tokio::test]
async fn killing_the_browser_fails_the_running_call_immediately_for_every_tool() {
    let bench = Bench::new().await;
    std::fs::write(bench.inside("report.txt"), "text").unwrap();
    let shown = open_blocking_page(&bench).await;
    let step = |action: &str, label: &str, rest: Value| {
        let mut step = json!({ "action": action, "handle": handle_of(&shown, label) });
        step.as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        json!({ "steps": [step] })
    };
    let silent = json!({ "url": bench.site.url("silent") });
    let calls = [
        ("browser_navigate", silent, Blocker::Call),
        (
            "browser_search",
            json!({ "query": "silence" }),
            Blocker::Call,
        ),
        (
            "browser_act",
            step("click", "Leave", json!({})),
            Blocker::Call,
        ),
        (
            "browser_act",
            step("type", "Name", json!({ "text": "abc" })),
            Blocker::Call,
        ),
        (
            "browser_act",
            step("upload", "File", json!({ "values": ["report.txt"] })),
            Blocker::Call,
        ),
        ("browser_observe", json!({}), Blocker::Script),
        ("browser_extract", json!({}), Blocker::Script),
        ("browser_screenshot", json!({}), Blocker::Script),
        (
            "browser_tabs",
            json!({ "action": "switch", "tab": "t1" }),
            Blocker::Script,
        ),
        ("browser_back", json!({}), Blocker::Script),
    ];
    for (tool, arguments, blocker) in calls {
        open_blocking_page(&bench).await;
        if blocker == Blocker::Script {
            keep_busy(&bench);
        }
        let name = format!("{tool} {arguments}");
        let (error, time) = kill_during(&bench, tool, arguments).await;
        println!("{name}: {} ms: {error}", time.as_millis());
        assert!(error.contains("the browser crashed"), "{name}: {error}");
        assert!(error.contains("navigate again"), "{name}: {error}");
        expect_recovery(&bench, &name).await;
        bench.text("browser_close", json!({})).await;
    }
}

/// Returns a random number below a limit. It need not be reproducible.
fn random(limit: u64) -> u64 {
    RandomState::new().hash_one(0) % limit
}

#[tokio::test]
async fn a_browser_killed_at_any_moment_is_reported_and_replaced() {
    let bench = Bench::new().await;
    let calls = [
        ("browser_observe", json!({})),
        ("browser_extract", json!({})),
        ("browser_screenshot", json!({})),
        ("browser_tabs", json!({ "action": "list" })),
        (
            "browser_navigate",
            json!({ "url": bench.site.url("frames") }),
        ),
        ("browser_back", json!({})),
    ];
    for _ in 0..5 {
        bench.open("inner").await;
        let main = main_process(&bench.directory());
        let delay = Duration::from_millis(random(400));
        let killer = async {
            tokio::time::sleep(delay).await;
            kill(main);
        };
        let calling = async {
            loop {
                for (tool, arguments) in &calls {
                    let called = bench.run(tool, arguments.clone());
                    let called = tokio::time::timeout(END_TIMEOUT + START_TIMEOUT, called).await;
                    let called = called.unwrap_or_else(|_| panic!("{tool} does not end"));
                    match called {
                        Err(error) => return (tool, error.message),
                        // The call succeeded just before the kill, or in a new browser.
                        Ok(output) if output.text.contains("crashed") => {
                            return (tool, output.text);
                        }
                        Ok(_) => {}
                    }
                }
            }
        };
        let ((tool, message), ()) = tokio::join!(calling, killer);
        println!("{delay:?}: {tool}: {message}");
        assert!(message.contains("crashed"), "{tool}: {message}");
    }
    bench.open("inner").await;
    main_process(&bench.directory());
}

#[tokio::test]
async fn a_browser_killed_while_it_closes_leaves_nothing() {
    let bench = Bench::new().await;
    let directory = bench.directory();
    for _ in 0..4 {
        bench.open("inner").await;
        let main = main_process(&directory);
        let delay = Duration::from_millis(random(40));
        let killer = async {
            tokio::time::sleep(delay).await;
            kill(main);
        };
        let (text, ()) = tokio::join!(bench.text("browser_close", json!({})), killer);
        assert_eq!(text, "Closed the browser.\n");
        crate::processes::wait_until_gone(&directory).await;
    }
}

#[tokio::test]
async fn killing_a_renderer_fails_the_call_but_not_the_browser() {
    let bench = Bench::new().await;
    open_blocking_page(&bench).await;
    let main = main_process(&bench.directory());
    keep_busy(&bench);
    let call = bench.run("browser_observe", json!({}));
    let mut call = std::pin::pin!(call);
    let early = tokio::time::timeout(HOLD_TIME, call.as_mut()).await;
    assert!(early.is_err(), "{early:?}");
    let renderers = renderers(main);
    assert!(!renderers.is_empty());
    renderers.into_iter().for_each(kill);
    let error = tokio::time::timeout(END_TIMEOUT, call).await.unwrap();
    let error = error.unwrap_err().message;
    assert!(
        error.starts_with("the page crashed; navigate again"),
        "{error}"
    );
    assert!(bench.open("inner").await.contains("Inner"));
    assert_eq!(main_process(&bench.directory()), main);
}
