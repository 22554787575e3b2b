//! Commands in the background: how they stand, whose they are, and that they end.

use crate::command_bench::{Ask, CommandBench, is_running, mark, wait_until};
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
fn a_job_goes_on_after_the_call_and_can_be_watched_to_its_end() {
    let bench = CommandBench::new();
    let command = "echo one; while [ ! -e go ]; do sleep 0.05; done; echo two >&2; exit 4";
    let started = bench.text("exec_bg", json!({"command": command}));
    assert!(
        started.starts_with("job_1 runs in the background; "),
        "{started}"
    );
    let asked = json!({"job": "job_1"});
    let first = bench.wait_for("exec_status", &asked, |text| text.contains("\none\n"));
    assert!(
        first.starts_with("job_1: running for ") && first.contains("; 1 line, 4 B\n"),
        "{first}"
    );
    assert!(first.contains("\n$ echo one; while"), "{first}");
    bench.wait_for("exec_status", &asked, |text| {
        text.lines().next() != first.lines().next()
    });
    std::fs::write(bench.inside("go"), "").unwrap();
    let last = bench.wait_for("exec_status", &asked, |text| !text.contains("running"));
    assert!(last.starts_with("job_1: exit code 4 after "), "{last}");
    assert!(last.ends_with("\none\ntwo\n"), "{last}");
    let second_line = bench.text("exec_status", json!({"job": "job_1", "from_line": 2}));
    assert!(second_line.ends_with("exit 4\ntwo\n"), "{second_line}");
    let past = bench.text("exec_status", json!({"job": "job_1", "from_line": 9}));
    assert!(
        past.ends_with("[nothing there: the output has 2 lines]\n"),
        "{past}"
    );
    assert_eq!(bench.text("exec_status", asked), last);
}

#[test]
fn a_job_that_is_over_at_once_says_so() {
    let bench = CommandBench::new();
    let over = bench.text("exec_bg", json!({"argv": ["no-such-program-anywhere"]}));
    assert!(
        over.starts_with("job_1 is over already: exit code 127 after "),
        "{over}"
    );
}

#[test]
fn a_line_that_has_not_ended_is_seen_too() {
    let bench = CommandBench::new();
    bench.text(
        "exec_bg",
        json!({"command": "printf 'waiting… '; sleep 1000"}),
    );
    let asked = json!({"job": "job_1"});
    bench.wait_for("exec_status", &asked, |text| {
        text.ends_with("\nwaiting… \n")
    });
    bench.text("exec_stop", json!({"job": "job_1"}));
}

#[test]
fn stopping_ends_everything_a_job_started_and_may_be_done_twice() {
    let bench = CommandBench::new();
    let mark = mark("4713");
    bench.text(
        "exec_bg",
        json!({"command": format!("echo up; setsid sleep {mark} & sleep {mark}")}),
    );
    wait_until("it runs", || is_running(&mark));
    for _ in 0..2 {
        let stopped = bench.text("exec_stop", json!({"job": "job_1"}));
        assert!(
            stopped.starts_with("job_1: ended by signal 9 after "),
            "{stopped}"
        );
        assert!(stopped.ends_with("\nup\n"), "{stopped}");
    }
    assert!(!is_running(&mark));
}

#[test]
fn a_job_of_another_session_does_not_exist() {
    let bench = CommandBench::new();
    bench.text("exec", json!({"command": "echo mine"}));
    bench.text("exec_bg", json!({"command": "echo mine; sleep 1000"}));
    let other = other_session();
    assert_eq!(
        bench.call_as(&other, "exec_status", json!({})).unwrap(),
        "[no jobs in the background]\n"
    );
    for (tool, job) in [
        ("exec_status", "job_1"),
        ("exec_status", "run_1"),
        ("exec_stop", "job_1"),
    ] {
        let refused = bench
            .call_as(&other, tool, json!({"job": job}))
            .unwrap_err()
            .message;
        let nowhere = bench
            .call_as(&other, tool, json!({"job": "job_99"}))
            .unwrap_err()
            .message;
        assert_eq!(refused, nowhere.replace("job_99", job));
    }
    let own = bench.text("exec_status", json!({}));
    assert!(own.starts_with("job_1: running for "), "{own}");
    assert!(own.contains("\nrun_1: exit code 0 after "), "{own}");
    bench.text("exec_stop", json!({"job": "job_1"}));
}

#[test]
fn there_are_only_so_many_jobs_at_a_time() {
    let limits = CommandLimits {
        jobs: 2,
        ..CommandLimits::default()
    };
    let bench = CommandBench::with(Ask {
        limits,
        ..Ask::default()
    });
    let sleep = json!({"command": "sleep 1000"});
    bench.text("exec_bg", sleep.clone());
    bench.text("exec_bg", sleep.clone());
    let full = bench.error("exec_bg", sleep.clone());
    assert!(
        full.starts_with("2 jobs run in the background, which is all there may be; "),
        "{full}"
    );
    assert!(
        bench
            .text("exec", json!({"command": "echo still"}))
            .ends_with("\nstill\n")
    );
    bench.text("exec_stop", json!({"job": "job_1"}));
    let next = bench.text("exec_bg", sleep);
    assert!(next.starts_with("job_3 "), "{next}");
}

#[test]
fn a_job_has_a_limit_of_time_and_of_output_as_well() {
    let limits = CommandLimits {
        job_time: Duration::from_secs(1),
        output_bytes: 10_000,
        ..CommandLimits::default()
    };
    let bench = CommandBench::with(Ask {
        limits,
        ..Ask::default()
    });
    bench.text(
        "exec_bg",
        json!({"command": "while :; do echo many words; done"}),
    );
    let asked = json!({"job": "job_1"});
    let last = bench.wait_for("exec_status", &asked, |text| !text.contains("running"));
    assert!(last.contains("it may run for 1 s"), "{last}");
    assert!(
        last.ends_with("[only the first 10.0 KB and the end of the output are kept]\n"),
        "{last}"
    );
}

#[test]
fn jobs_end_with_the_tools_and_with_the_runtime() {
    let bench = CommandBench::new();
    let (first, second) = (mark("4714"), mark("4715"));
    bench.text("exec_bg", json!({"command": format!("sleep {first}")}));
    wait_until("it runs", || is_running(&first));
    let CommandBench { tools, runtime, .. } = bench;
    drop(tools);
    wait_until("it ended with the tools", || !is_running(&first));
    drop(runtime);

    let bench = CommandBench::new();
    bench.text("exec_bg", json!({"command": format!("sleep {second}")}));
    wait_until("it runs", || is_running(&second));
    let CommandBench { tools, runtime, .. } = bench;
    drop(runtime);
    wait_until("it ended with the runtime", || !is_running(&second));
    drop(tools);
}

#[test]
fn a_job_whose_start_was_given_up_is_ended() {
    let bench = CommandBench::new();
    let mark = mark("4716");
    let tool = bench.tool("exec_bg");
    let who = caller();
    let arguments = Arc::new(json!({"command": format!("sleep {mark}")}));
    bench.runtime.block_on(async {
        let call = tool.run(&who, arguments);
        let _ = tokio::time::timeout(Duration::from_millis(200), call).await;
    });
    let asked = json!({"job": "job_1"});
    bench.wait_for("exec_status", &asked, |text| !text.contains("running"));
    assert!(!is_running(&mark));
}
