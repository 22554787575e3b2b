//! Every way in which a lango, a turn or a browser ends, and that no process is left of it within seconds.

use crate::common::place::Place;
use crate::lango::{GONE_WITHIN, Run, Served, World};
use crate::script::Task;
use rustix::process::{Pid, Signal, kill_process};
use std::thread;
use std::time::{Duration, Instant};

/// How long a browser may be idle in the part about that.
const IDLE_SECONDS: u64 = 2;

/// Ends lango in each way, and says what is wrong.
pub fn run(world: &World, is_long: bool) -> Vec<String> {
    let mut problems = Vec::new();
    let mut note = |way: &str, found: Result<Duration, String>| match found {
        Ok(time) => println!("  {way}: nothing left after {} ms", time.as_millis()),
        Err(problem) => {
            println!("  {way}: {problem}");
            problems.push(format!("{way}: {problem}"));
        }
    };
    println!("endings");
    note("the end of `lango run`", end_of_run(world));
    note("the turn's time-out", time_out(world));
    note("SIGINT to `lango run`", signal_to_run(world, Signal::INT));
    note("SIGTERM to `lango run`", signal_to_run(world, Signal::TERM));
    note("SIGKILL to `lango run`", signal_to_run(world, Signal::KILL));
    if is_long {
        note("SIGKILL to `lango serve`", kill_of_server(world));
        note(
            "a cancelled turn, then the end of `lango serve`",
            cancel(world),
        );
    }
    note(
        "SIGKILL to the browser, then the end of `lango serve`",
        kill_of_browser(world),
    );
    note("an idle browser", idle(world));
    problems
}

/// Waits until nothing is left of a run that had a browser.
fn gone(run: &Run, place: &Place, leaves_directory: bool) -> Result<Duration, String> {
    if !run.census.has_sandbox() {
        return Err("no browser was seen".to_owned());
    }
    let time = run.census.wait_for_none(GONE_WITHIN)?;
    let left = place.browsers();
    // What a killed lango leaves is removed with its next browser.
    if left > 0 && !leaves_directory {
        return Err(format!("{left} private directories left"));
    }
    Ok(time)
}

fn end_of_run(world: &World) -> Result<Duration, String> {
    let place = world.place("");
    let mut run = Run::start(&place, &Task::Page(0));
    match run.wait() {
        Some(0) => gone(&run, &place, false),
        code => Err(format!("exit code {code:?}")),
    }
}

fn time_out(world: &World) -> Result<Duration, String> {
    let place = world.place("agent.turnTimeout = '4s'\n");
    let mut run = Run::start(&place, &Task::Hold);
    match run.wait() {
        Some(5) => gone(&run, &place, false),
        code => Err(format!("exit code {code:?}")),
    }
}

fn signal_to_run(world: &World, signal: Signal) -> Result<Duration, String> {
    let place = world.place("");
    let before = world.site.requests(crate::site::SILENT);
    let mut run = Run::start(&place, &Task::Hold);
    world.site.wait_for_hold(before);
    run.census.take();
    kill_process(Pid::from_child(&run.child), signal).map_err(|error| error.to_string())?;
    let code = run.wait();
    // Nothing can be handled at a kill: the kernel ends what is below.
    let expected = (signal != Signal::KILL).then_some(130);
    if code != expected {
        return Err(format!("exit code {code:?}"));
    }
    gone(&run, &place, expected.is_none())
}

fn kill_of_server(world: &World) -> Result<Duration, String> {
    let place = world.place("");
    let mut served = Served::start(&place);
    let before = world.site.requests(crate::site::SILENT);
    served.client.give("killed", &Task::Hold)?;
    world.site.wait_for_hold(before);
    served.census.take();
    served.serving.kill();
    served.census.wait_for_none(GONE_WITHIN)
}

fn cancel(world: &World) -> Result<Duration, String> {
    let place = world.place("");
    let mut served = Served::start(&place);
    let before = world.site.requests(crate::site::SILENT);
    let id = served.client.give("cancelled", &Task::Hold)?;
    world.site.wait_for_hold(before);
    let time = served.client.cancel(&id)?;
    if time > GONE_WITHIN {
        return Err(format!("the turn ended after {time:?}"));
    }
    // The session goes on in the same browser.
    served.client.ask("cancelled", &Task::Page(0))?;
    if place.browsers() != 1 {
        return Err(format!("{} browsers", place.browsers()));
    }
    served.end()
}

/// The call that runs ends at once, and the session goes on in a new browser.
fn kill_of_browser(world: &World) -> Result<Duration, String> {
    let place = world.place("");
    let mut served = Served::start(&place);
    let before = world.site.requests(crate::site::SILENT);
    let (client, census) = (&served.client, &mut served.census);
    let (answer, time) = thread::scope(|scope| {
        let asking = scope.spawn(|| client.ask("crashed", &Task::Hold));
        world.site.wait_for_hold(before);
        census.take();
        let killed = Instant::now();
        census.kill_browser();
        (asking.join().unwrap(), killed.elapsed())
    });
    let answer = answer?;
    if !answer.contains("the browser crashed") || time > GONE_WITHIN {
        return Err(format!("after {time:?}: {answer}"));
    }
    let answer = served.client.ask("crashed", &Task::Page(0))?;
    if !answer.contains("was started anew") {
        return Err(format!("the next page: {answer}"));
    }
    served.end()
}

fn idle(world: &World) -> Result<Duration, String> {
    let place = world.place(&format!("browser.idleTime = '{IDLE_SECONDS}s'\n"));
    let mut served = Served::start(&place);
    served.client.ask("idle", &Task::Page(0))?;
    served.census.take();
    if served.census.living().is_empty() {
        return Err("the browser was closed before its time".to_owned());
    }
    let limit = Duration::from_secs(IDLE_SECONDS) + GONE_WITHIN;
    let time = served.census.wait_for_none(limit)?;
    // Another is started when it is needed.
    served.client.ask("idle", &Task::Page(0))?;
    served.end()?;
    Ok(time)
}
