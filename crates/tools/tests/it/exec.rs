//! Commands in the foreground: what runs is what was shown, and what comes back is what happened.

use crate::command_bench::{Ask, CommandBench, is_running, mark, wait_until};
use lango_core::{Effect, Risk, Subject};
use lango_testkit::tool::caller;
use lango_tools::CommandLimits;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What comes after the first line, which must begin so.
fn after_headline<'a>(text: &'a str, headline: &str) -> &'a str {
    let (first, rest) = text.split_once('\n').unwrap();
    assert!(first.starts_with(headline), "{text}");
    rest
}

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
            preview.starts_with("nothing will run: ") && preview.contains(problem),
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
fn a_long_output_has_its_start_and_its_end_and_the_rest_is_paged_through() {
    let bench = CommandBench::new();
    let text = bench.text("exec", json!({"command": "seq 1 20000"}));
    assert!(text.len() < 26_000, "{}", text.len());
    let printed = after_headline(&text, "exit code 0 after ");
    assert!(
        printed.starts_with("1\n2\n3\n") && printed.ends_with("\n19999\n20000\n"),
        "{text}"
    );
    let remark = printed
        .lines()
        .find(|line| line.starts_with("[… "))
        .unwrap();
    let call = remark
        .split_once("exec_status ")
        .unwrap()
        .1
        .trim_end_matches(" …]");
    let mut arguments: serde_json::Value = serde_json::from_str(call).unwrap();
    let head: String = printed
        .split_inclusive('\n')
        .take_while(|line| !line.starts_with('['))
        .collect();
    let mut whole = head;
    loop {
        let page = bench.text("exec_status", arguments.clone());
        assert!(page.len() < 40_000);
        let body = page.splitn(3, '\n').nth(2).unwrap();
        whole.extend(
            body.split_inclusive('\n')
                .filter(|line| !line.starts_with('[')),
        );
        let Some((_, next)) = body.split_once("[read on with exec_status ") else {
            break;
        };
        arguments = serde_json::from_str(next.trim_end().trim_end_matches(']')).unwrap();
    }
    let wanted: String = (1..=20_000).map(|number| format!("{number}\n")).collect();
    assert_eq!(whole, wanted);
}

#[test]
fn a_line_longer_than_any_page_is_paged_through_too() {
    let bench = CommandBench::new();
    let text = bench.text(
        "exec",
        json!({"command": "head -c 100000 /dev/zero | tr '\\0' x"}),
    );
    let call = text
        .split_once("exec_status ")
        .unwrap()
        .1
        .split_once(" …]")
        .unwrap()
        .0;
    let arguments: serde_json::Value = serde_json::from_str(call).unwrap();
    let skipped = arguments["skip_bytes"].as_u64().unwrap();
    let page = bench.text("exec_status", arguments);
    let next = page
        .split_once("\"skip_bytes\":")
        .unwrap()
        .1
        .split_once('}')
        .unwrap()
        .0;
    assert_eq!(next.parse::<u64>().unwrap(), skipped + 32 * 1024);
}

#[test]
fn an_output_past_its_limit_keeps_its_start_and_its_end_and_says_so() {
    let limits = CommandLimits {
        output_bytes: 100_000,
        ..CommandLimits::default()
    };
    let bench = CommandBench::with(Ask {
        limits,
        ..Ask::default()
    });
    let text = bench.text("exec", json!({"command": "seq 1 200000"}));
    assert!(
        text.ends_with(
            "199999\n200000\n[only the first 100.0 KB and the end of the output are kept]\n"
        ),
        "{text}"
    );
    let files: Vec<_> = std::fs::read_dir(bench.path("data/outputs"))
        .unwrap()
        .flatten()
        .collect();
    assert_eq!(files.len(), 1);
    assert!(files[0].metadata().unwrap().len() < 140_000);
    let kept = std::fs::read_to_string(files[0].path()).unwrap();
    assert!(kept.contains(" of the output left out here]\n"));
}

#[test]
fn what_is_not_text_is_made_visible() {
    let bench = CommandBench::new();
    let text = bench.text(
        "exec",
        json!({"command": "printf 'a\\033[1mb\\000c\\377d\\r\\ne\\n'"}),
    );
    assert_eq!(after_headline(&text, "exit code 0"), "a␛[1mb␀c�d\ne\n");
}

#[test]
fn outputs_are_files_of_lango_alone_and_the_oldest_make_room() {
    let limits = CommandLimits {
        kept_outputs: 3,
        ..CommandLimits::default()
    };
    let bench = CommandBench::with(Ask {
        limits,
        ..Ask::default()
    });
    for number in 1..=5 {
        bench.text("exec", json!({"command": format!("echo {number}")}));
    }
    let folder = bench.path("data/outputs");
    assert_eq!(
        folder.metadata().unwrap().permissions().mode() & 0o777,
        0o700
    );
    let mut texts = Vec::new();
    for file in std::fs::read_dir(&folder).unwrap().flatten() {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        texts.push(std::fs::read_to_string(file.path()).unwrap());
    }
    texts.sort();
    assert_eq!(texts, ["3\n", "4\n", "5\n"]);
    let list = bench.text("exec_status", json!({}));
    assert!(
        !list.contains("run_2:") && list.contains("run_5:"),
        "{list}"
    );
    let gone = bench.error("exec_status", json!({"job": "run_1"}));
    assert!(gone.starts_with("there is no job \"run_1\""), "{gone}");
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
