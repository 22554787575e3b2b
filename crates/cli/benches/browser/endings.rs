//! Ends lango, turns and browsers in every possible way, and checks that all processes exit within seconds.

use crate::common::test_env::TestEnv;
use crate::lango::{EXIT_TIMEOUT, Harness, Run, RunningServer};
use crate::script::Task;
use rustix::process::{Pid, Signal, kill_process};
use std::thread;
use std::time::{Duration, Instant};

/// `browser.idleTime` for the test of idle browsers.
const IDLE_SECONDS: u64 = 2;

/// Ends lango in each way, and returns the problems.
pub(crate) fn run(harness: &Harness, is_long: bool) -> Vec<String> {
    let mut problems = Vec::new();
    let mut report = |name: &str, result: Result<Duration, String>| match result {
        Ok(time) => println!("  {name}: nothing left after {} ms", time.as_millis()),
        Err(problem) => {
            println!("  {name}: {problem}");
            problems.push(format!("{name}: {problem}"));
        }
    };
    println!("endings");
    report("the end of `lango run`", end_of_run(harness));
    report("the turn's timeout", turn_timeout(harness));
    report("SIGINT to `lango run`", signal_to_run(harness, Signal::INT));
    report(
        "SIGTERM to `lango run`",
        signal_to_run(harness, Signal::TERM),
    );
    report(
        "SIGKILL to `lango run`",
        signal_to_run(harness, Signal::KILL),
    );
    if is_long {
        report("SIGKILL to `lango serve`", kill_of_server(harness));
        report(
            "a cancelled turn, then the end of `lango serve`",
            cancel(harness),
        );
    }
    report(
        "SIGKILL to the browser, then the end of `lango serve`",
        kill_of_browser(harness),
    );
    report("an idle browser", idle(harness));
    problems
}

/// Waits until all processes of a run that had a browser have exited.
fn wait_for_exit(
    run: &Run,
    test_env: &TestEnv,
    leaves_directory: bool,
) -> Result<Duration, String> {
    if !run.processes.has_sandbox() {
        return Err("no browser was seen".to_owned());
    }
    let time = run.processes.wait_for_none(EXIT_TIMEOUT)?;
    let left = test_env.browsers();
    // The directory that a killed lango leaves is removed when the next browser starts.
    if left > 0 && !leaves_directory {
        return Err(format!("{left} private directories left"));
    }
    Ok(time)
}

fn end_of_run(harness: &Harness) -> Result<Duration, String> {
    let test_env = harness.test_env("");
    let mut run = Run::start(&test_env, &Task::Page(0));
    match run.wait() {
        Some(0) => wait_for_exit(&run, &test_env, false),
        code => Err(format!("exit code {code:?}")),
    }
}

fn turn_timeout(harness: &Harness) -> Result<Duration, String> {
    let test_env = harness.test_env("agent.turnTimeout = '4s'\n");
    let mut run = Run::start(&test_env, &Task::Hold);
    match run.wait() {
        Some(5) => wait_for_exit(&run, &test_env, false),
        code => Err(format!("exit code {code:?}")),
    }
}

fn signal_to_run(harness: &Harness, signal: Signal) -> Result<Duration, String> {
    let test_env = harness.test_env("");
    let before = harness.site.requests(crate::site::SILENT);
    let mut run = Run::start(&test_env, &Task::Hold);
    harness.site.wait_for_silent_request(before);
    run.processes.record();
    kill_process(Pid::from_child(&run.child), signal).map_err(|error| error.to_string())?;
    let code = run.wait();
    let expected = match signal {
        Signal::INT => Some(130),
        Signal::TERM => Some(143),
        // lango cannot handle SIGKILL; the kernel ends its child processes.
        _ => None,
    };
    if code != expected {
        return Err(format!("exit code {code:?}"));
    }
    wait_for_exit(&run, &test_env, expected.is_none())
}

fn kill_of_server(harness: &Harness) -> Result<Duration, String> {
    let test_env = harness.test_env("");
    let mut server = RunningServer::start(&test_env);
    let before = harness.site.requests(crate::site::SILENT);
    server.client.start_task("killed", &Task::Hold)?;
    harness.site.wait_for_silent_request(before);
    server.processes.record();
    server.process.kill();
    server.processes.wait_for_none(EXIT_TIMEOUT)
}

fn cancel(harness: &Harness) -> Result<Duration, String> {
    let test_env = harness.test_env("");
    let mut server = RunningServer::start(&test_env);
    let before = harness.site.requests(crate::site::SILENT);
    let id = server.client.start_task("cancelled", &Task::Hold)?;
    harness.site.wait_for_silent_request(before);
    let time = server.client.cancel(&id)?;
    if time > EXIT_TIMEOUT {
        return Err(format!("the turn ended after {time:?}"));
    }
    // The session continues in the same browser.
    server.client.ask("cancelled", &Task::Page(0))?;
    if test_env.browsers() != 1 {
        return Err(format!("{} browsers", test_env.browsers()));
    }
    server.end()
}

/// Kills the browser during a call: the call must fail immediately, and the session must continue in a new browser.
fn kill_of_browser(harness: &Harness) -> Result<Duration, String> {
    let test_env = harness.test_env("");
    let mut server = RunningServer::start(&test_env);
    let before = harness.site.requests(crate::site::SILENT);
    let (client, processes) = (&server.client, &mut server.processes);
    let (answer, time) = thread::scope(|scope| {
        let asking = scope.spawn(|| client.ask("crashed", &Task::Hold));
        harness.site.wait_for_silent_request(before);
        processes.record();
        let killed = Instant::now();
        processes.kill_browser();
        (asking.join().unwrap(), killed.elapsed())
    });
    let answer = answer?;
    if !answer.contains("the browser crashed") || time > EXIT_TIMEOUT {
        return Err(format!("after {time:?}: {answer}"));
    }
    let answer = server.client.ask("crashed", &Task::Page(0))?;
    if !answer.contains("was restarted") {
        return Err(format!("the next page: {answer}"));
    }
    server.end()
}

fn idle(harness: &Harness) -> Result<Duration, String> {
    let test_env = harness.test_env(&format!("browser.idleTime = '{IDLE_SECONDS}s'\n"));
    let mut server = RunningServer::start(&test_env);
    server.client.ask("idle", &Task::Page(0))?;
    server.processes.record();
    if server.processes.running().is_empty() {
        return Err("the browser was closed too early".to_owned());
    }
    let limit = Duration::from_secs(IDLE_SECONDS) + EXIT_TIMEOUT;
    let time = server.processes.wait_for_none(limit)?;
    // The next use starts a new browser.
    server.client.ask("idle", &Task::Page(0))?;
    server.end()?;
    Ok(time)
}
