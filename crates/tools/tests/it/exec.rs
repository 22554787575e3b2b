//! Foreground commands: the shown command is the one that runs, and the result says what happened.

use crate::command_fixture::{
    CommandFixture, FixtureOptions, after_headline, is_running, mark, wait_until,
};
use lango_core::{Caller, Effect, Risk, RuleSubject};
use lango_sandbox::{Layer, Layers};
use lango_testkit::tool::caller;
use serde_json::json;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[test]
fn a_command_line_runs_in_a_shell_and_argv_does_not() {
    let fixture = CommandFixture::new();
    let line = fixture.text(
        "exec",
        json!({"command": "echo \"a  b\" 'c;d' $((1+2)) | cat; pwd"}),
    );
    let workspace = fixture
        .inside("")
        .to_str()
        .unwrap()
        .trim_end_matches('/')
        .to_owned();
    assert_eq!(
        after_headline(&line, "exit code 0 after "),
        format!("a  b c;d 3\n{workspace}\n")
    );
    let words = fixture.text(
        "exec",
        json!({"argv": ["printf", "<%s>\n", "a  b", "$HOME;ls", "", "it's \"so\"\n*"]}),
    );
    assert_eq!(
        after_headline(&words, "exit code 0 after "),
        "<a  b>\n<$HOME;ls>\n<>\n<it's \"so\"\n*>\n"
    );
}

#[test]
fn a_command_gets_the_key_of_its_call() {
    let fixture = CommandFixture::new();
    let line = fixture.text("exec", json!({"command": "echo $LANGO_CALL_KEY"}));
    let key = format!("{}\n", caller().key());
    assert_eq!(after_headline(&line, "exit code 0 after "), key);
}

#[test]
fn the_previewed_command_line_does_the_same_in_a_shell() {
    let fixture = CommandFixture::new();
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
    let preview = fixture.preview("exec", json!({"argv": argv})).unwrap();
    let line = preview.lines().next().unwrap().strip_prefix("$ ").unwrap();
    let direct = fixture.text("exec", json!({"argv": argv}));
    let shell = fixture.text("exec", json!({"command": line}));
    assert_eq!(
        after_headline(&direct, "exit code 0"),
        after_headline(&shell, "exit code 0")
    );
}

#[test]
fn the_first_line_is_the_status_and_a_failed_command_is_a_result() {
    let fixture = CommandFixture::new();
    let failed = fixture.text("exec", json!({"command": "echo out; echo err >&2; exit 3"}));
    let printed = after_headline(&failed, "exit code 3 after ");
    let mut lines: Vec<_> = printed.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["err", "out"]);
    let silent = fixture.text("exec", json!({"command": "true"}));
    assert_eq!(
        after_headline(&silent, "exit code 0 after "),
        "[no output]\n"
    );
    let killed = fixture.text("exec", json!({"command": "kill -SEGV $$"}));
    after_headline(&killed, "killed by signal 11 after ");
    let missing = fixture.text("exec", json!({"argv": ["no-such-program-anywhere"]}));
    after_headline(&missing, "exit code 127 after ");
}

#[test]
fn without_a_sandbox_nothing_runs_and_that_is_an_error() {
    let fixture = CommandFixture::with(FixtureOptions {
        layers: Layers {
            bubblewrap: Layer::Failing,
            ..Layers::default()
        },
        skills: vec![("touch", vec![("scripts/a.sh", "touch ran".into())])],
        ..FixtureOptions::default()
    });
    let command = json!({"command": "touch ran"});
    let script = json!({"script": "a.sh"});
    for (tool, arguments) in [
        ("exec", &command),
        ("exec_bg", &command),
        ("skill_touch", &script),
    ] {
        let error = fixture.error(tool, arguments.clone());
        assert!(
            error.starts_with("the command could not be run in the sandbox: "),
            "{tool}: {error}"
        );
    }
    assert!(!fixture.inside("ran").exists());
    let list = fixture.text("exec_status", json!({}));
    assert!(!list.contains("running"), "{list}");
}

#[test]
fn a_command_runs_in_the_requested_folder() {
    let fixture = CommandFixture::new();
    std::fs::create_dir_all(fixture.inside("a/b")).unwrap();
    std::os::unix::fs::symlink("a/b", fixture.inside("short")).unwrap();
    std::os::unix::fs::symlink(fixture.path("outside"), fixture.inside("out")).unwrap();
    std::fs::write(fixture.inside("file"), "").unwrap();
    let wanted = format!("{}\n", fixture.inside("a/b").display());
    for cwd in [
        "a/b",
        "./a/../a/b",
        "short",
        fixture.inside("a/b").to_str().unwrap(),
    ] {
        let text = fixture.text("exec", json!({"command": "pwd -P", "cwd": cwd}));
        assert_eq!(after_headline(&text, "exit code 0"), wanted, "{cwd}");
    }
    for cwd in [
        "..",
        "out",
        "/",
        "/etc",
        "a/../..",
        fixture.path("outside").to_str().unwrap(),
    ] {
        let error = fixture.error("exec", json!({"command": "pwd", "cwd": cwd}));
        assert!(error.contains("is outside the workspace"), "{cwd}: {error}");
    }
    for cwd in ["file", "nowhere"] {
        let error = fixture.error("exec", json!({"command": "pwd", "cwd": cwd}));
        assert!(error.contains("cannot be used"), "{cwd}: {error}");
    }
}

#[test]
fn nothing_runs_if_the_folder_is_another_one_than_when_the_user_was_asked() {
    let arguments = json!({"argv": ["./s.sh"], "cwd": "cw", "timeout_s": 20});
    let swaps: [(&str, bool); 2] = [("a folder", false), ("a link", true)];
    for tool in ["exec", "exec_bg"] {
        for (name, is_link) in swaps {
            let fixture = CommandFixture::new();
            for (folder, text) in [("one", "harmless"), ("two", "harmful")] {
                let script = fixture.inside(folder).join("s.sh");
                std::fs::create_dir(fixture.inside(folder)).unwrap();
                std::fs::write(&script, format!("#!/bin/sh\necho {text}\n")).unwrap();
                std::fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
            }
            let shown = fixture.inside("cw");
            if is_link {
                std::os::unix::fs::symlink("one", &shown).unwrap();
            } else {
                std::fs::rename(fixture.inside("one"), &shown).unwrap();
            }
            let approved = Caller {
                inspection: fixture.inspect(tool, arguments.clone()),
                ..caller()
            };
            let ran = fixture.call_inspected(&approved, tool, arguments.clone());
            // A job may still be running.
            let ran = ran.unwrap();
            assert!(tool == "exec_bg" || ran.contains("harmless"), "{ran}");
            std::fs::rename(&shown, fixture.inside("moved")).unwrap();
            std::os::unix::fs::symlink("two", &shown).unwrap();
            let refused = fixture.call_inspected(&approved, tool, arguments.clone());
            let refused = refused.expect_err(name).message;
            assert!(refused.contains("leads to another place"), "{refused}");
            fixture.text(tool, arguments.clone());
        }
    }
}

#[test]
fn invalid_arguments_are_refused_already_in_the_preview() {
    let fixture = CommandFixture::new();
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
            "`timeout_s` may be at most 110",
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
        let error = fixture.error("exec", arguments.clone());
        assert!(error.contains(problem), "{error}");
        let preview = fixture.preview("exec", arguments).unwrap();
        assert!(
            preview.starts_with("This call will fail: ") && preview.contains(problem),
            "{preview}"
        );
    }
}

#[test]
fn the_preview_shows_everything_that_matters_for_the_approval() {
    let fixture = CommandFixture::new();
    let workspace = fixture
        .inside("")
        .to_str()
        .unwrap()
        .trim_end_matches('/')
        .to_owned();
    let command = "make\u{202e} test\nrm -rf x\u{1b}[2K";
    let preview = fixture
        .preview("exec", json!({"command": command, "timeout_s": 7}))
        .unwrap();
    assert_eq!(
        preview,
        format!(
            "$ make\\u{{202e}} test␊\n> rm -rf x␛[2K\nrun by: /bin/sh\nfolder: {workspace}\nnetwork: closed\n\
             writes in: {workspace} (not .git, .env and other protected files)\ntime limit: 7 s\n"
        )
    );
    let open = CommandFixture::with(FixtureOptions {
        policy: Some(|policy, root| {
            policy.network = lango_sandbox::Network::Host;
            policy.read = vec!["/opt".into()];
            policy.write = vec![root.join("outside")];
        }),
        ..FixtureOptions::default()
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
        preview.contains(&format!(", {} (not .git", outside.display())),
        "{preview}"
    );
    assert!(preview.contains("also reads: /opt\n"), "{preview}");
}

#[test]
fn a_command_that_runs_too_long_is_stopped_and_its_output_is_returned() {
    let fixture = CommandFixture::new();
    let start = Instant::now();
    let mark = mark("4711");
    let command = format!("echo started; sleep {mark}");
    let text = fixture.text("exec", json!({"command": command, "timeout_s": 1}));
    assert!(start.elapsed() < Duration::from_secs(15));
    let printed = after_headline(&text, "stopped after ");
    assert!(text.contains(": the time limit is 1 s\n"), "{text}");
    assert_eq!(printed, "started\n");
    wait_until("the process has ended", || !is_running(&mark));
}

#[test]
fn dropping_a_call_ends_all_its_processes() {
    let fixture = CommandFixture::new();
    let marks = ["47121", "47122", "47123", "47124"].map(mark);
    let [a, b, c, d] = &marks;
    let command = format!("sleep {a} & setsid sleep {b} & (nohup sleep {c} &) ; sleep {d}");
    let tool = fixture.tool("exec");
    let who = caller();
    let mut call = tool.run(&who, Arc::new(json!({"command": command})));
    fixture.runtime.block_on(async {
        for mark in &marks {
            let started = async {
                while !is_running(mark) {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            };
            tokio::select! {
                _ = &mut call => panic!("it ended by itself"),
                () = started => {}
                () = tokio::time::sleep(Duration::from_secs(30)) => panic!("it never started"),
            }
        }
        drop(call);
    });
    wait_until("all of them have ended", || {
        !marks.iter().any(|mark| is_running(mark))
    });
    let status = fixture.text("exec_status", json!({"job": "run_1"}));
    assert!(
        status.starts_with("run_1: killed because its call was cancelled"),
        "{status}"
    );
}

#[test]
fn the_tools_declare_their_effects_and_risks() {
    let fixture = CommandFixture::new();
    let spec = |name: &str| fixture.tool(name).spec().clone();
    for name in ["exec", "exec_bg"] {
        assert_eq!(
            (spec(name).effect, spec(name).risk),
            (Effect::NonIdempotent, Risk::Dangerous),
            "{name}"
        );
        assert_eq!(spec(name).subject, RuleSubject::Command, "{name}");
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
