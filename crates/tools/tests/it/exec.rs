//! Commands in the foreground: what runs is what was shown, and what comes back is what happened.

use crate::command_bench::{Ask, CommandBench, after_headline, is_running, mark, wait_until};
use lango_core::{Effect, Risk, Subject};
use lango_sandbox::{Layer, Layers};
use lango_testkit::tool::caller;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[test]
fn a_line_is_run_by_the_shell_and_words_are_not() {
    let bench = CommandBench::new();
    let line = bench.text(
        "exec",
        json!({"command": "echo \"a  b\" 'c;d' $((1+2)) | cat; pwd"}),
    );
    let workspace = bench
        .inside("")
        .to_str()
        .unwrap()
        .trim_end_matches('/')
        .to_owned();
    assert_eq!(
        after_headline(&line, "exit code 0 after "),
        format!("a  b c;d 3\n{workspace}\n")
    );
    let words = bench.text(
        "exec",
        json!({"argv": ["printf", "<%s>\n", "a  b", "$HOME;ls", "", "it's \"so\"\n*"]}),
    );
    assert_eq!(
        after_headline(&words, "exit code 0 after "),
        "<a  b>\n<$HOME;ls>\n<>\n<it's \"so\"\n*>\n"
    );
}

#[test]
fn a_command_is_told_the_key_of_its_call() {
    let bench = CommandBench::new();
    let line = bench.text("exec", json!({"command": "echo $LANGO_CALL_KEY"}));
    let key = format!("{}\n", caller().key());
    assert_eq!(after_headline(&line, "exit code 0 after "), key);
}

#[test]
fn the_words_that_a_person_is_shown_do_the_same_when_a_shell_runs_them() {
    let bench = CommandBench::new();
    let argv = [
        "printf",
        "<%s>",
        "a'b",
        "$(id)",
        "\\n",
        "`x`",
        "größe",
        "-n",
        "~",
        "a=b c",
        "!#&|*?[]{}",
    ];
    let preview = bench.preview("exec", json!({"argv": argv})).unwrap();
    let line = preview.lines().next().unwrap().strip_prefix("$ ").unwrap();
    let direct = bench.text("exec", json!({"argv": argv}));
    let shell = bench.text("exec", json!({"command": line}));
    assert_eq!(
        after_headline(&direct, "exit code 0"),
        after_headline(&shell, "exit code 0")
    );
}

#[test]
fn how_it_ended_is_the_first_line_and_a_failure_is_a_result() {
    let bench = CommandBench::new();
    let failed = bench.text("exec", json!({"command": "echo out; echo err >&2; exit 3"}));
    let printed = after_headline(&failed, "exit code 3 after ");
    let mut lines: Vec<_> = printed.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["err", "out"]);
    let silent = bench.text("exec", json!({"command": "true"}));
    assert_eq!(
        after_headline(&silent, "exit code 0 after "),
        "[no output]\n"
    );
    let killed = bench.text("exec", json!({"command": "kill -SEGV $$"}));
    after_headline(&killed, "ended by signal 11 after ");
    let missing = bench.text("exec", json!({"argv": ["no-such-program-anywhere"]}));
    after_headline(&missing, "exit code 127 after ");
}

#[test]
fn without_a_sandbox_nothing_runs_and_that_is_an_error() {
    let bench = CommandBench::with(Ask {
        layers: Layers {
            bubblewrap: Layer::Failing,
            ..Layers::default()
        },
        skills: vec![("touch", vec![("scripts/a.sh", "touch ran".into())])],
        ..Ask::default()
    });
    let command = json!({"command": "touch ran"});
    let script = json!({"script": "a.sh"});
    for (tool, arguments) in [
        ("exec", &command),
        ("exec_bg", &command),
        ("skill_touch", &script),
    ] {
        let error = bench.error(tool, arguments.clone());
        assert!(
            error.starts_with("the command could not be run in the sandbox: "),
            "{tool}: {error}"
        );
    }
    assert!(!bench.inside("ran").exists());
    let list = bench.text("exec_status", json!({}));
    assert!(!list.contains("running"), "{list}");
}

#[test]
fn it_runs_in_the_folder_that_was_asked_for() {
    let bench = CommandBench::new();
    std::fs::create_dir_all(bench.inside("a/b")).unwrap();
    std::os::unix::fs::symlink("a/b", bench.inside("short")).unwrap();
    std::os::unix::fs::symlink(bench.path("outside"), bench.inside("out")).unwrap();
    std::fs::write(bench.inside("file"), "").unwrap();
    let wanted = format!("{}\n", bench.inside("a/b").display());
    for cwd in [
        "a/b",
        "./a/../a/b",
        "short",
        bench.inside("a/b").to_str().unwrap(),
    ] {
        let text = bench.text("exec", json!({"command": "pwd -P", "cwd": cwd}));
        assert_eq!(after_headline(&text, "exit code 0"), wanted, "{cwd}");
    }
    for cwd in [
        "..",
        "out",
        "/",
        "/etc",
        "a/../..",
        bench.path("outside").to_str().unwrap(),
    ] {
        let error = bench.error("exec", json!({"command": "pwd", "cwd": cwd}));
        assert!(
            error.contains("leads outside the workspace"),
            "{cwd}: {error}"
        );
    }
    for cwd in ["file", "nowhere"] {
        let error = bench.error("exec", json!({"command": "pwd", "cwd": cwd}));
        assert!(
            error.contains("is not a folder that can be used"),
            "{cwd}: {error}"
        );
    }
}

#[test]
fn arguments_that_make_no_command_are_refused_and_say_so_before() {
    let bench = CommandBench::new();
    let refused = [
        (json!({}), "exactly one of"),
        (json!({"command": "ls", "argv": ["ls"]}), "exactly one of"),
        (json!({"command": " \n"}), "`command` is empty"),
        (json!({"argv": []}), "`argv` names no program"),
        (json!({"argv": ["", "x"]}), "`argv` names no program"),
        (json!({"argv": ["a\u{0}b"]}), "NUL character"),
        (json!({"command": "x".repeat(70_000)}), "longer than 64 KiB"),
        (
            json!({"command": "ls", "timeout_s": 100_000}),
            "`timeout_s` may be up to 110",
        ),
        (
            json!({"command": "ls", "timeout_s": 0}),
            "do not fit `exec`",
        ),
        (
            json!({"command": "ls", "shell": "bash"}),
            "unknown field `shell`",
        ),
    ];
    for (arguments, problem) in refused {
        let error = bench.error("exec", arguments.clone());
        assert!(error.contains(problem), "{error}");
        let preview = bench.preview("exec", arguments).unwrap();
        assert!(
            preview.starts_with("This call will fail: ") && preview.contains(problem),
            "{preview}"
        );
    }
}

#[test]
fn what_a_person_is_asked_shows_everything_that_decides() {
    let bench = CommandBench::new();
    let workspace = bench
        .inside("")
        .to_str()
        .unwrap()
        .trim_end_matches('/')
        .to_owned();
    let command = "make\u{202e} test\nrm -rf x\u{1b}[2K";
    let preview = bench
        .preview("exec", json!({"command": command, "timeout_s": 7}))
        .unwrap();
    assert_eq!(
        preview,
        format!(
            "$ make\\u{{202e}} test␊\n> rm -rf x␛[2K\nrun by: /bin/sh\nfolder: {workspace}\nnetwork: closed\n\
             writes in: {workspace}\nstopped after: 7 s\n"
        )
    );
    let open = CommandBench::with(Ask {
        policy: Some(|policy, root| {
            policy.network = lango_sandbox::Network::Host;
            policy.read = vec!["/opt".into()];
            policy.write = vec![root.join("outside")];
        }),
        ..Ask::default()
    });
    let preview = open
        .preview("exec_bg", json!({"argv": ["ls", "a b"]}))
        .unwrap();
    let outside = open.path("outside");
    assert!(
        preview.starts_with("$ ls 'a b'\nrun by: itself, without a shell\n"),
        "{preview}"
    );
    assert!(preview.contains("network: OPEN"), "{preview}");
    assert!(
        preview.contains(&format!(", {}\n", outside.display())),
        "{preview}"
    );
    assert!(preview.contains("also reads: /opt\n"), "{preview}");
}

#[test]
fn a_command_that_takes_too_long_is_stopped_and_what_it_printed_is_kept() {
    let bench = CommandBench::new();
    let start = Instant::now();
    let mark = mark("4711");
    let command = format!("echo begun; sleep {mark}");
    let text = bench.text("exec", json!({"command": command, "timeout_s": 1}));
    assert!(start.elapsed() < Duration::from_secs(15));
    let printed = after_headline(&text, "stopped after ");
    assert!(text.contains(": it may run for 1 s\n"), "{text}");
    assert_eq!(printed, "begun\n");
    wait_until("the process is gone", || !is_running(&mark));
}

#[test]
fn a_call_that_is_dropped_takes_all_processes_with_it() {
    let bench = CommandBench::new();
    let marks = ["47121", "47122", "47123", "47124"].map(mark);
    let [a, b, c, d] = &marks;
    let command = format!("sleep {a} & setsid sleep {b} & (nohup sleep {c} &) ; sleep {d}");
    let tool = bench.tool("exec");
    let who = caller();
    let mut call = tool.run(&who, Arc::new(json!({"command": command})));
    bench.runtime.block_on(async {
        for mark in &marks {
            let begun = async {
                while !is_running(mark) {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            };
            tokio::select! {
                _ = &mut call => panic!("it ended by itself"),
                () = begun => {}
                () = tokio::time::sleep(Duration::from_secs(30)) => panic!("it never began"),
            }
        }
        drop(call);
    });
    wait_until("all of them are gone", || {
        !marks.iter().any(|mark| is_running(mark))
    });
    let status = bench.text("exec_status", json!({"job": "run_1"}));
    assert!(
        status.starts_with("run_1: ended with the call that waited for it"),
        "{status}"
    );
}

#[test]
fn the_tools_say_how_dangerous_they_are() {
    let bench = CommandBench::new();
    let spec = |name: &str| bench.tool(name).spec().clone();
    for name in ["exec", "exec_bg"] {
        assert_eq!(
            (spec(name).effect, spec(name).risk),
            (Effect::Effect, Risk::Dangerous),
            "{name}"
        );
        assert_eq!(spec(name).subject, Subject::Command, "{name}");
        assert_eq!(
            spec(name).parameters["additionalProperties"],
            json!(false),
            "{name}"
        );
    }
    assert_eq!(
        (spec("exec_status").effect, spec("exec_status").risk),
        (Effect::Pure, Risk::Safe)
    );
    assert_eq!(
        (spec("exec_stop").effect, spec("exec_stop").risk),
        (Effect::Idempotent, Risk::Safe)
    );
}
