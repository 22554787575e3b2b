//! Chromium killed from outside while each tool runs: the call fails at once with the next step, the next page opens in a new
//! browser, and nothing is left of the old one.

use crate::processes::{kill, main_process, processes, renderers, wait_until};
use crate::support::Bench;
use serde_json::{Value, json};
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

/// How soon a call must end after the browser was killed.
const END_TIME: Duration = Duration::from_secs(4);
/// How long a new browser may take.
const START_TIME: Duration = Duration::from_secs(5);
/// After this long a call that a page holds is under way.
const HOLD_TIME: Duration = Duration::from_millis(400);

/// A page whose controls keep every script that comes after them waiting.
const HOLDING: &str = "<title>Holding</title><a href=/silent>Leave</a>\
    <input aria-label=Name oninput='for (;;) {}'><input type=file aria-label=File onchange='for (;;) {}'>\
    <table><tr><th>A<th>B<tr><td>1<td>2</table>";

/// What keeps a call from ending before the browser is killed.
#[derive(Clone, Copy, PartialEq)]
enum Hold {
    /// What the call itself causes: a server that does not answer, a script without end.
    Itself,
    /// A script that runs already.
    Script,
}

/// The handle of an element that an observation shows with this label.
fn handle_of(observation: &str, label: &str) -> String {
    let line = observation.lines().find(|line| line.contains(label));
    let line = line.unwrap_or_else(|| panic!("no {label}: {observation}"));
    let is_handle =
        |word: &&str| word.len() > 1 && word.starts_with('e') && word[1..].parse::<u32>().is_ok();
    let mut words = line.split(|c: char| !c.is_ascii_alphanumeric());
    words.find(is_handle).unwrap().to_owned()
}

/// Calls a tool, kills the browser while it runs, and gives what it says and the time that it still took.
async fn kill_during(bench: &Bench, tool: &str, arguments: Value) -> (String, Duration) {
    let main = main_process(&bench.directory());
    let call = bench.run(tool, arguments);
    let mut call = std::pin::pin!(call);
    let early = tokio::time::timeout(HOLD_TIME, call.as_mut()).await;
    assert!(early.is_err(), "{tool} ended before the kill: {early:?}");
    kill(main);
    let killed = Instant::now();
    let ended = tokio::time::timeout(END_TIME, call).await;
    let text = match ended.unwrap_or_else(|_| panic!("{tool} does not end")) {
        Err(error) => error.message,
        // What was done had its effect, and the result says so too.
        Ok(output) if matches!(tool, "browser_act" | "browser_tabs") => output.text,
        Ok(output) => panic!("{tool}: {}", output.text),
    };
    (text, killed.elapsed())
}

/// Opens the page that holds calls, and gives what is on it.
async fn open_holding(bench: &Bench) -> String {
    // A page before it, for the way back.
    bench.open("inner").await;
    bench.show(HOLDING).await;
    bench.text("browser_observe", json!({})).await
}

/// Lets a script run in the page until the page ends.
fn keep_busy(bench: &Bench) {
    let page = bench.page();
    tokio::spawn(async move {
        let endless = json!({ "expression": "for (;;) {}" });
        let _: Result<Value, _> = page.call("Runtime.evaluate", endless).await;
    });
}

/// Checks what is left of the killed browser, and that the session goes on in another one.
async fn expect_recovery(bench: &Bench, tool: &str) {
    let stale = json!({ "steps": [{ "action": "click", "handle": "e1" }] });
    let error = bench.error("browser_act", stale.clone()).await;
    assert!(
        error.starts_with("the browser crashed")
            && error.contains("handles from before are invalid"),
        "after {tool}: {error}"
    );
    let directory = bench.directory();
    let is_empty = || directory.read_dir().unwrap().count() == 0;
    wait_until(tool, || is_empty() && processes(&directory).is_empty()).await;
    let opened = bench.open("inner").await;
    assert!(opened.contains("Inner"), "after {tool}: {opened}");
    assert!(
        opened.contains("was started anew"),
        "after {tool}: {opened}"
    );
    // The new browser has elements with handles too, and none of them is an old one.
    bench.text("browser_observe", json!({})).await;
    let error = bench.error("browser_act", stale).await;
    assert!(
        error.contains("`e1` is unknown, or from an earlier page or browser"),
        "after {tool}: {error}"
    );
}

#[tokio::test]
async fn a_browser_that_is_killed_during_a_call_fails_it_at_once_whatever_the_tool() {
    let bench = Bench::new().await;
    std::fs::write(bench.inside("report.txt"), "text").unwrap();
    let shown = open_holding(&bench).await;
    let step = |action: &str, label: &str, rest: Value| {
        let mut step = json!({ "action": action, "handle": handle_of(&shown, label) });
        step.as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        json!({ "steps": [step] })
    };
    let silent = json!({ "url": bench.site.url("silent") });
    let calls = [
        ("browser_navigate", silent, Hold::Itself),
        (
            "browser_search",
            json!({ "query": "silence" }),
            Hold::Itself,
        ),
        (
            "browser_act",
            step("click", "Leave", json!({})),
            Hold::Itself,
        ),
        (
            "browser_act",
            step("type", "Name", json!({ "text": "abc" })),
            Hold::Itself,
        ),
        (
            "browser_act",
            step("upload", "File", json!({ "values": ["report.txt"] })),
            Hold::Itself,
        ),
        ("browser_observe", json!({}), Hold::Script),
        ("browser_extract", json!({}), Hold::Script),
        ("browser_screenshot", json!({}), Hold::Script),
        (
            "browser_tabs",
            json!({ "action": "switch", "tab": "t1" }),
            Hold::Script,
        ),
        ("browser_back", json!({}), Hold::Script),
    ];
    for (tool, arguments, hold) in calls {
        open_holding(&bench).await;
        if hold == Hold::Script {
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

/// A number below a limit; nothing has to repeat it.
fn random(limit: u64) -> u64 {
    RandomState::new().hash_one(0) % limit
}

#[tokio::test]
async fn a_browser_that_is_killed_at_any_moment_is_told_of_and_replaced() {
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
                    let called = tokio::time::timeout(END_TIME + START_TIME, called).await;
                    let called = called.unwrap_or_else(|_| panic!("{tool} does not end"));
                    match called {
                        Err(error) => return (tool, error.message),
                        // Read just before the browser was killed, or opened in a new one.
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
async fn a_browser_that_is_killed_while_it_closes_leaves_nothing() {
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
async fn a_renderer_that_is_killed_fails_the_call_and_not_the_browser() {
    let bench = Bench::new().await;
    open_holding(&bench).await;
    let main = main_process(&bench.directory());
    keep_busy(&bench);
    let call = bench.run("browser_observe", json!({}));
    let mut call = std::pin::pin!(call);
    let early = tokio::time::timeout(HOLD_TIME, call.as_mut()).await;
    assert!(early.is_err(), "{early:?}");
    let renderers = renderers(main);
    assert!(!renderers.is_empty());
    renderers.into_iter().for_each(kill);
    let error = tokio::time::timeout(END_TIME, call).await.unwrap();
    let error = error.unwrap_err().message;
    assert!(
        error.starts_with("the page crashed; navigate again"),
        "{error}"
    );
    assert!(bench.open("inner").await.contains("Inner"));
    assert_eq!(main_process(&bench.directory()), main);
}
