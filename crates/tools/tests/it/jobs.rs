//! Background jobs: their status, their session, and how they end.

use crate::command_fixture::{CommandFixture, FixtureOptions, is_running, mark, wait_until};
use lango_core::Caller;
use lango_testkit::tool::caller;
use lango_tools::CommandLimits;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

fn other_session() -> Caller {
    Caller {
        session: "another".into(),
        ..caller()
    }
}

#[test]
fn a_job_outlives_its_call_and_can_be_watched_until_it_ends() {
    let fixture = CommandFixture::new();
    let command = "echo one; while [ ! -e go ]; do sleep 0.05; done; echo two >&2; exit 4";
    let started = fixture.text("exec_bg", json!({"command": command}));
    assert!(
        started.starts_with("job_1 runs in the background; "),
        "{started}"
    );
    let asked = json!({"job": "job_1"});
    let first = fixture.wait_for("exec_status", &asked, |text| text.contains("\none\n"));
    assert!(
        first.starts_with("job_1: running for ") && first.contains("; 1 line, 4 B\n"),
        "{first}"
    );
    assert!(first.contains("\n$ echo one; while"), "{first}");
    fixture.wait_for("exec_status", &asked, |text| {
        text.lines().next() != first.lines().next()
    });
    std::fs::write(fixture.inside("go"), "").unwrap();
    let last = fixture.wait_for("exec_status", &asked, |text| !text.contains("running"));
    assert!(last.starts_with("job_1: exit code 4 after "), "{last}");
    assert!(last.ends_with("\none\ntwo\n"), "{last}");
    let second_line = fixture.text("exec_status", json!({"job": "job_1", "from_line": 2}));
    assert!(second_line.ends_with("exit 4\ntwo\n"), "{second_line}");
    let past = fixture.text("exec_status", json!({"job": "job_1", "from_line": 9}));
    assert!(
        past.ends_with("[no output there: it has 2 lines]\n"),
        "{past}"
    );
    assert_eq!(fixture.text("exec_status", asked), last);
}

#[test]
fn a_job_that_ends_immediately_is_reported_as_ended() {
    let fixture = CommandFixture::new();
    let over = fixture.text("exec_bg", json!({"argv": ["no-such-program-anywhere"]}));
    assert!(
        over.starts_with("job_1 has already ended: exit code 127 after "),
        "{over}"
    );
}

#[test]
fn an_incomplete_line_is_shown_too() {
    let fixture = CommandFixture::new();
    fixture.text(
        "exec_bg",
        json!({"command": "printf 'waiting… '; sleep 1000"}),
    );
    let asked = json!({"job": "job_1"});
    fixture.wait_for("exec_status", &asked, |text| {
        text.ends_with("\nwaiting… \n")
    });
    fixture.text("exec_stop", json!({"job": "job_1"}));
}

#[test]
fn stopping_a_job_ends_all_its_processes_and_can_be_repeated() {
    let fixture = CommandFixture::new();
    let mark = mark("4713");
    fixture.text(
        "exec_bg",
        json!({"command": format!("echo up; setsid sleep {mark} & sleep {mark}")}),
    );
    wait_until("it runs", || is_running(&mark));
    for _ in 0..2 {
        let stopped = fixture.text("exec_stop", json!({"job": "job_1"}));
        assert!(
            stopped.starts_with("job_1: killed by signal 9 after "),
            "{stopped}"
        );
        assert!(stopped.ends_with("\nup\n"), "{stopped}");
    }
    assert!(!is_running(&mark));
}

#[test]
fn a_job_is_invisible_to_other_sessions() {
    let fixture = CommandFixture::new();
    fixture.text("exec", json!({"command": "echo mine"}));
    fixture.text("exec_bg", json!({"command": "echo mine; sleep 1000"}));
    let other = other_session();
    assert_eq!(
        fixture.call_as(&other, "exec_status", json!({})).unwrap(),
        "[no jobs in the background]\n"
    );
    for (tool, job) in [
        ("exec_status", "job_1"),
        ("exec_status", "run_1"),
        ("exec_stop", "job_1"),
    ] {
        let refused = fixture
            .call_as(&other, tool, json!({"job": job}))
            .unwrap_err()
            .message;
        let nowhere = fixture
            .call_as(&other, tool, json!({"job": "job_99"}))
            .unwrap_err()
            .message;
        assert_eq!(refused, nowhere.replace("job_99", job));
    }
    let own = fixture.text("exec_status", json!({}));
    assert!(own.starts_with("job_1: running for "), "{own}");
    assert!(own.contains("\nrun_1: exit code 0 after "), "{own}");
    fixture.text("exec_stop", json!({"job": "job_1"}));
}

#[test]
fn the_number_of_running_jobs_is_limited() {
    let limits = CommandLimits {
        jobs: 2,
        ..CommandLimits::default()
    };
    let fixture = CommandFixture::with(FixtureOptions {
        limits,
        ..FixtureOptions::default()
    });
    let sleep = json!({"command": "sleep 1000"});
    fixture.text("exec_bg", sleep.clone());
    fixture.text("exec_bg", sleep.clone());
    let full = fixture.error("exec_bg", sleep.clone());
    assert!(
        full.starts_with("2 jobs run in the background, which is the limit; "),
        "{full}"
    );
    assert!(
        fixture
            .text("exec", json!({"command": "echo still"}))
            .ends_with("\nstill\n")
    );
    fixture.text("exec_stop", json!({"job": "job_1"}));
    let next = fixture.text("exec_bg", sleep);
    assert!(next.starts_with("job_3 "), "{next}");
}

#[test]
fn a_job_has_limits_of_time_and_output() {
    let limits = CommandLimits {
        job_time: Duration::from_secs(1),
        output_bytes: 10_000,
        ..CommandLimits::default()
    };
    let fixture = CommandFixture::with(FixtureOptions {
        limits,
        ..FixtureOptions::default()
    });
    fixture.text(
        "exec_bg",
        json!({"command": "while :; do echo many words; done"}),
    );
    let asked = json!({"job": "job_1"});
    let last = fixture.wait_for("exec_status", &asked, |text| !text.contains("running"));
    assert!(last.contains("the time limit is 1 s"), "{last}");
    assert!(
        last.ends_with("[only the first 10.0 KB and the end of the output are stored]\n"),
        "{last}"
    );
}

#[test]
fn jobs_end_with_the_tools_and_with_the_runtime() {
    let fixture = CommandFixture::new();
    let (first, second) = (mark("4714"), mark("4715"));
    fixture.text("exec_bg", json!({"command": format!("sleep {first}")}));
    wait_until("it runs", || is_running(&first));
    let CommandFixture { tools, runtime, .. } = fixture;
    drop(tools);
    wait_until("it ended with the tools", || !is_running(&first));
    drop(runtime);

    let fixture = CommandFixture::new();
    fixture.text("exec_bg", json!({"command": format!("sleep {second}")}));
    wait_until("it runs", || is_running(&second));
    let CommandFixture { tools, runtime, .. } = fixture;
    drop(runtime);
    wait_until("it ended with the runtime", || !is_running(&second));
    drop(tools);
}

#[test]
fn a_job_is_stopped_if_the_call_that_starts_it_is_dropped() {
    let fixture = CommandFixture::new();
    let mark = mark("4716");
    let tool = fixture.tool("exec_bg");
    let who = caller();
    let arguments = Arc::new(json!({"command": format!("sleep {mark}")}));
    fixture.runtime.block_on(async {
        let call = tool.run(&who, arguments);
        let _ = tokio::time::timeout(Duration::from_millis(200), call).await;
    });
    let asked = json!({"job": "job_1"});
    fixture.wait_for("exec_status", &asked, |text| !text.contains("running"));
    assert!(!is_running(&mark));
}
