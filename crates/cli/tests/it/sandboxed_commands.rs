//! Commands and skills through the real binary, in the real sandbox.

use crate::lango::{Lango, TIMEOUT, finish, finish_child, of_type, text};
use crate::models::{self, Provider, flags};
use lango_testkit::model::{call, delegate_and_finish, say};
use serde_json::json;
use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

const ALLOW: &str = r#"approval.rules=[{action="allow"}]"#;

/// Runs a command through the operator and returns its output.
fn exec(lango: &Lango, line: &str) -> String {
    let question = format!("run `{line}`");
    lango
        .run(&["-c", ALLOW, "run", "-q", &question])
        .ok()
        .stdout
}

#[test]
fn a_command_runs_in_the_workspace_and_reports_its_exit_code() {
    let lango = Lango::new();
    let printed = exec(&lango, "ls; exit 3");
    assert!(printed.starts_with("exit code 3 after "), "{printed}");
    assert!(printed.contains("budget.csv\nnotes.md\nsrc\n"), "{printed}");
}

#[test]
fn a_command_sees_neither_lango_nor_the_home_nor_the_network() {
    let lango = Lango::new();
    lango.session("hello");
    lango.home_file("skills/x", "");
    let home = lango.home().display();
    let printed = exec(
        &lango,
        &format!(
            "cat {home}/lango.db; ls {home}; cat /etc/shadow /root/.bashrc; env; ls /sys/class/net"
        ),
    );
    assert!(!printed.contains("SQLite format"), "{printed}");
    assert!(!printed.contains("root:"), "{printed}");
    assert!(!printed.contains("LANGO_HOME"), "{printed}");
}

#[test]
fn a_home_inside_the_workspace_is_hidden_too() {
    let lango = Lango::new();
    let inside = lango.workspace().join("inner");
    let run = |line: &str| {
        let question = format!("run `{line}`");
        let mut command = lango.command(&["-c", ALLOW, "run", "-q", &question]);
        finish(command.env("LANGO_HOME", &inside), b"").ok().stdout
    };
    run("true");
    assert!(inside.join("lango.db").exists());
    let printed = run(
        "cat inner/lango.db inner/outputs/*; ls inner/trash; echo x > inner/lango.toml; echo x > inner/new; rm -rf inner",
    );
    assert!(!printed.contains("SQLite format"), "{printed}");
    assert!(!inside.join("new").exists() && !inside.join("lango.toml").exists());
    assert!(inside.join("lango.db").exists());
    let mut read = lango.command(&["run", "-q", "read `inner/lango.db`"]);
    let printed = finish(read.env("LANGO_HOME", &inside), b"").ok().stdout;
    assert!(printed.contains("does not exist"), "{printed}");
}

#[test]
fn a_running_command_does_not_see_a_change_of_the_trust_list() {
    let lango = Lango::new();
    let inside = lango.workspace().join("inner");
    lango.file("lango.toml", "agent.maxToolCalls = 7\n");
    let trust = || {
        let mut command = lango.command(&["config", "trust", "--yes"]);
        finish(command.env("LANGO_HOME", &inside), b"").ok()
    };
    trust();
    let line = "touch started; while [ ! -e go ]; do sleep 0.05; done; ls inner; find inner -name trusted* -exec cat {} +";
    let question = format!("run `{line}`");
    let mut command = lango.command(&["-c", ALLOW, "run", "-q", &question]);
    let command = command.env("LANGO_HOME", &inside);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = command.spawn().unwrap();
    let since = Instant::now();
    while !lango.workspace().join("started").exists() {
        assert!(since.elapsed() < TIMEOUT, "the command did not start");
        thread::sleep(Duration::from_millis(20));
    }
    // This writes the list again.
    trust();
    let list = inside.join("trust/trusted.json");
    assert!(fs::read_to_string(list).unwrap().contains("lango.toml"));
    lango.file("go", "");
    let printed = finish_child(running, b"").ok().stdout;
    assert!(printed.contains("\ntrust\n"), "{printed}");
    assert!(!printed.contains("lango.toml\":"), "{printed}");
}

#[test]
fn only_the_configuration_opens_other_folders() {
    let lango = Lango::new();
    let outside = tempfile::tempdir().unwrap();
    let folder = outside.path().canonicalize().unwrap();
    fs::write(folder.join("data.txt"), "outside data").unwrap();
    let line = format!("cat {0}/data.txt; echo x > {0}/new", folder.display());
    let printed = exec(&lango, &line);
    assert!(
        !printed.contains("outside data") && !folder.join("new").exists(),
        "{printed}"
    );
    let read = format!("tools.exec.read=[{:?}]", folder.to_str().unwrap());
    let question = format!("run `{line}`");
    let ran = lango
        .run(&["-c", ALLOW, "-c", &read, "run", "-q", &question])
        .ok();
    assert!(
        ran.stdout.contains("outside data") && !folder.join("new").exists(),
        "{ran:#?}"
    );
    let file = format!("read `{}/data.txt`", folder.display());
    let ran = lango.run(&["-c", &read, "run", "-q", &file]).ok();
    assert!(
        ran.stdout.contains("outside data"),
        "the file tools follow the same settings: {ran:#?}"
    );
    let write = format!("tools.exec.write={:?}", folder.to_str().unwrap());
    lango
        .run(&["-c", ALLOW, "-c", &write, "run", "-q", &question])
        .ok();
    assert!(folder.join("new").exists());
}

#[test]
fn a_command_is_limited_in_processes_and_memory() {
    let lango = Lango::new();
    let run = |key: &str, line: &str| {
        let question = format!("run `{line}`");
        lango
            .run(&["-c", ALLOW, "-c", key, "run", "-q", &question])
            .ok()
            .stdout
    };
    let bomb = run(
        "tools.exec.maxProcesses=20",
        "for i in $(seq 100); do sleep 30 & done; wait",
    );
    assert!(bomb.contains("stopped") || bomb.contains("fork"), "{bomb}");
    let bomb = run(
        "tools.exec.maxMemoryMb=64",
        "python3 -c 'x = bytearray(900_000_000)'",
    );
    assert!(
        bomb.contains("stopped")
            || bomb.contains("signal")
            || bomb.contains("MemoryError")
            || bomb.contains("137"),
        "{bomb}"
    );
}

#[test]
fn without_bubblewrap_no_command_runs_as_root_and_lango_says_why() {
    let lango = Lango::new();
    // Hide bubblewrap: mount over its usual path, and set a PATH without it.
    let script = format!(
        "mount --bind /dev/null /usr/bin/bwrap && PATH=/nowhere exec {} \"$@\"",
        crate::lango::BINARY
    );
    let run = |arguments: &[&str]| {
        let mut command = std::process::Command::new("unshare");
        lango.prepare(&mut command);
        let command = command
            .args(["-m", "sh", "-c", &script, "sh"])
            .args(arguments);
        finish(command, b"")
    };
    let agents = run(&["agents"]).ok().stdout;
    assert!(agents.contains("unavailable tools: exec_bg"), "{agents}");
    assert!(agents.contains("bubblewrap"), "{agents}");
    assert!(agents.contains("fs_search, exec\n"), "{agents}");
    let doctor = run(&["doctor"]).exits(3).stdout;
    assert!(
        doctor.contains("✗ sandbox        none, so commands cannot run"),
        "{doctor}"
    );
    let ran = run(&["-c", ALLOW, "run", "run `ls`"]).ok();
    assert!(!ran.stdout.contains("notes.md"), "{ran:#?}");
}

#[test]
fn a_skill_is_loaded_when_it_is_used_and_a_broken_one_is_reported() {
    let lango = with_skill();
    let skill = "---\nname: greet\ndescription: Greets people.\n---\nSay hello.\n";
    lango.file(
        ".agents/skills/of-project/SKILL.md",
        skill.replace("greet", "of-project"),
    );
    lango.file(".lango/skills/broken/SKILL.md", "no front matter");
    let listed = lango.run(&["skills", "--json"]).ok().json();
    let names: Vec<&str> = listed["skills"]
        .as_array()
        .unwrap()
        .iter()
        .map(|skill| text(&skill["name"]))
        .collect();
    assert_eq!(names, ["greet", "of-project"]);
    assert!(text(&listed["broken"][0]["path"]).contains("broken"));
    let agents = lango.run(&["agents"]).ok().stdout;
    assert!(agents.contains("skill_greet, skill_of-project"), "{agents}");
    assert!(agents.contains("skill execution"), "{agents}");
    let ran = lango.run(&["run", "hello"]).ok();
    assert!(
        ran.stderr.contains("warning: the skill") && ran.stderr.contains("is left out"),
        "{ran:#?}"
    );
}

/// Creates a home with the skill `greet`, which has a script.
fn with_skill() -> Lango {
    let lango = Lango::new();
    let skill = "---\nname: greet\ndescription: Greets people by name.\n---\nSay hello.\n";
    lango.home_file("skills/greet/SKILL.md", skill);
    let script = "#!/bin/sh\necho hello $1 > greeting.txt\ntouch ../outside.txt\n";
    lango.home_file("skills/greet/scripts/hello.sh", script);
    lango
}

#[test]
fn reading_a_skill_needs_no_approval_but_its_script_does_and_is_confined() {
    let lango = with_skill();
    let script = json!({ "script": "scripts/hello.sh", "arguments": ["Ada"] });
    let replies = || {
        vec![
            delegate_and_finish("operator", "greet Ada"),
            call("skill_greet", json!({})),
            call("skill_greet", script.clone()),
            say("Greeted."),
        ]
    };
    let provider = Provider::new(replies());
    let model = flags("openai", provider.server.url());
    let ran = models::run(&lango, &model, &["--json", "greet Ada"])
        .exits(4)
        .json();
    assert_eq!(
        (&ran["tool_calls"], &ran["denied"][0]["tool"]),
        (&json!(1), &json!("skill_greet"))
    );
    let log = lango.events(text(&ran["session"]));
    let returned = of_type(&log, "tool.returned");
    assert!(
        text(&returned[0]["output"]).contains("Say hello."),
        "{returned:?}"
    );
    assert!(!lango.workspace().join("greeting.txt").exists());

    let provider = Provider::new(replies());
    let model = flags("openai", provider.server.url());
    models::run(&lango, &model, &["-c", ALLOW, "greet Ada"]).ok();
    let greeting = fs::read_to_string(lango.workspace().join("greeting.txt"));
    assert_eq!(greeting.unwrap(), "hello Ada\n");
    assert!(!lango.workspace().join("../outside.txt").exists());
}

#[test]
fn a_background_job_ends_with_lango() {
    let lango = Lango::new();
    let beat = "while true; do date +%s%N > beat; sleep 0.05; done";
    let provider = Provider::new(vec![
        delegate_and_finish("operator", "start"),
        call("exec_bg", json!({ "command": beat })),
        call("exec_status", json!({})),
        say("Started."),
    ]);
    let model = flags("openai", provider.server.url());
    let ran = models::run(&lango, &model, &["-c", ALLOW, "--json", "start it"])
        .ok()
        .json();
    let log = lango.events(text(&ran["session"]));
    let returned = of_type(&log, "tool.returned");
    assert!(
        text(&returned[1]["output"]).contains("job_1"),
        "{returned:?}"
    );
    let last = fs::read(lango.workspace().join("beat")).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(
        fs::read(lango.workspace().join("beat")).unwrap(),
        last,
        "the job is still running"
    );
}

#[test]
fn a_jobs_output_and_every_request_are_in_the_log() {
    let lango = Lango::new();
    let summary = lango
        .run(&["-c", ALLOW, "run", "--json", "run `echo one; echo two >&2`"])
        .ok()
        .json();
    let log = lango.events(text(&summary["session"]));
    let called = of_type(&log, "tool.called");
    assert_eq!(called[0]["arguments"]["command"], "echo one; echo two >&2");
    let returned = text(&of_type(&log, "tool.returned")[0]["output"]);
    assert!(
        returned.contains("one\n") && returned.contains("two"),
        "{returned}"
    );
}
