//! Using skills: their files are read at the time of the call, from their folder only, and scripts run in the sandbox.

use crate::command_fixture::{CommandFixture, FixtureOptions, is_running, mark, wait_until};
use crate::support::{SECRET, create_special};
use lango_core::{Caller, Effect, Inspection, PreviewLength, PreviewRequest, Risk};
use lango_testkit::tool::caller;
use serde_json::json;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::time::Duration;

/// Creates a fixture with one skill `pdf` that has these files.
fn fixture(files: &[(&'static str, &str)]) -> CommandFixture {
    let files = files
        .iter()
        .map(|(path, text)| (*path, (*text).to_owned()))
        .collect();
    CommandFixture::with(FixtureOptions {
        skills: vec![("pdf", files)],
        ..FixtureOptions::default()
    })
}

#[test]
fn a_skill_is_a_safe_tool_until_it_runs_a_script() {
    let fixture = fixture(&[]);
    let spec = fixture.tool("skill_pdf").spec().clone();
    assert!(
        spec.description
            .starts_with("Does a thing.\n[A skill. Call it without arguments first")
    );
    assert_eq!(
        (spec.effect, spec.risk),
        (Effect::NonIdempotent, Risk::Safe)
    );
    assert_eq!(spec.risk_of(&json!({"file": "a"})), Risk::Safe);
    assert_eq!(spec.risk_of(&json!({"script": "a"})), Risk::Dangerous);
}

#[test]
fn without_arguments_a_skill_returns_its_current_instructions() {
    let fixture = fixture(&[
        ("scripts/run.sh", "echo run\n"),
        ("references/deep/notes.md", "notes\n"),
        ("assets/a.bin", "\0"),
        ("scripts/.hidden", ""),
    ]);
    assert_eq!(
        fixture.text("skill_pdf", json!({})),
        "# How to pdf\n\n[files of this skill; read one with skill_pdf {\"file\":…}, run one in scripts/ with \
         skill_pdf {\"script\":…}]\nassets/a.bin  1 B\nreferences/deep/notes.md  6 B\nscripts/run.sh  9 B\n"
    );
    let changed = "---\nname: pdf\ndescription: New.\n---\nOther steps\n---\nand more";
    std::fs::write(fixture.path("skills/pdf/SKILL.md"), changed).unwrap();
    let text = fixture.text("skill_pdf", json!({}));
    assert!(text.starts_with("Other steps\n---\nand more\n"), "{text}");
}

#[test]
fn a_skill_that_vanished_or_broke_since_startup_is_explained() {
    let fixture = fixture(&[("references/a.md", "a"), ("scripts/a.sh", "true")]);
    let file = fixture.path("skills/pdf/SKILL.md");
    let cases: [(&[u8], &str); 4] = [
        (
            b"# no front matter\n",
            "can no longer be read: `SKILL.md`: it does not start with",
        ),
        (
            b"---\nname: pdf\n---\n\xff\n",
            "can no longer be read: `SKILL.md`: ",
        ),
        (b"", "can no longer be read: `SKILL.md` is empty"),
        (b"---\nname: pdf\ndescription: x\n---\n \n", ""),
    ];
    for (content, problem) in cases {
        std::fs::write(&file, content).unwrap();
        match fixture.call("skill_pdf", json!({})) {
            Ok(text) => assert!(text.starts_with("[SKILL.md has no instructions"), "{text}"),
            Err(error) => assert!(
                !problem.is_empty() && error.message.contains(problem),
                "{error}"
            ),
        }
    }
    std::fs::remove_file(&file).unwrap();
    let gone = fixture.error("skill_pdf", json!({}));
    assert!(
        gone.contains("can no longer be read: it has no `SKILL.md`"),
        "{gone}"
    );
    assert!(create_special("mkfifo", &[], &file));
    let fifo = fixture.error("skill_pdf", json!({}));
    assert!(
        fifo.contains("`SKILL.md` is a named pipe, not a file"),
        "{fifo}"
    );
    let missing = fixture.error("skill_pdf", json!({"file": "references/b.md"}));
    assert!(
        missing.starts_with("the skill `pdf` has no file `references/b.md`"),
        "{missing}"
    );
    std::fs::remove_dir_all(fixture.path("skills/pdf")).unwrap();
    for arguments in [
        json!({}),
        json!({"file": "references/a.md"}),
        json!({"script": "scripts/a.sh"}),
    ] {
        let gone = fixture.error("skill_pdf", arguments);
        assert!(
            gone.starts_with("the skill `pdf` no longer exists"),
            "{gone}"
        );
    }
}

#[test]
fn a_file_is_read_in_pages_and_only_if_it_is_text() {
    let long: String = (1..=10_000)
        .map(|number| format!("line {number}\n"))
        .collect();
    let fixture = fixture(&[
        ("references/long.md", &long),
        ("assets/a.bin", "a\0b"),
        ("assets/empty", ""),
    ]);
    let first = fixture.text("skill_pdf", json!({"file": "references/long.md"}));
    let (_, call) = first
        .split_once("[there is more; continue with skill_pdf ")
        .unwrap();
    let next: serde_json::Value =
        serde_json::from_str(call.trim_end().trim_end_matches(']')).unwrap();
    let second = fixture.text("skill_pdf", next);
    let last_of_first = first
        .lines()
        .rev()
        .nth(1)
        .unwrap()
        .strip_prefix("line ")
        .unwrap();
    let number: u64 = last_of_first.parse().unwrap();
    assert!(
        second.starts_with(&format!("line {}\n", number + 1)),
        "{second}"
    );
    let absolute = fixture.path("skills/pdf/references/long.md");
    assert_eq!(
        fixture.text("skill_pdf", json!({"file": absolute})).len(),
        first.len()
    );
    assert_eq!(
        fixture.text("skill_pdf", json!({"file": "assets/empty"})),
        "[assets/empty has no text from line 1 on]\n"
    );
    let binary = fixture.error("skill_pdf", json!({"file": "assets/a.bin"}));
    assert!(binary.contains("is not UTF-8 text"), "{binary}");
    let folder = fixture.error("skill_pdf", json!({"file": "assets"}));
    assert!(folder.contains("is a folder, not a file"), "{folder}");
}

#[test]
fn files_and_scripts_outside_the_skill_cannot_be_reached() {
    let fixture = fixture(&[
        ("scripts/real.sh", "true"),
        ("references/evil.sh", "echo evil"),
    ]);
    let skill = fixture.path("skills/pdf");
    symlink(fixture.path("outside"), skill.join("scripts/link")).unwrap();
    symlink("../../../outside/secret.txt", skill.join("scripts/up.sh")).unwrap();
    symlink("/", skill.join("scripts/root")).unwrap();
    symlink("/proc/self/root", skill.join("references/process")).unwrap();
    symlink("../references/evil.sh", skill.join("scripts/aside.sh")).unwrap();
    assert!(create_special(
        "mkfifo",
        &[],
        &skill.join("scripts/fifo.sh")
    ));
    std::fs::write(fixture.path("outside/run.sh"), "echo outside").unwrap();
    let secret = fixture.path("outside/secret.txt");
    let secret = secret.to_str().unwrap();
    let paths = [
        "../../outside/secret.txt",
        "scripts/../../../outside/secret.txt",
        "scripts/link/secret.txt",
        "scripts/link/run.sh",
        "scripts/up.sh",
        "up.sh",
        "scripts/root/etc/passwd",
        "references/process/etc/passwd",
        "scripts/fifo.sh",
        "/etc/passwd",
        "/proc/self/environ",
        "../pdf/../../data/key",
        secret,
        "",
        ".",
        "a\0b",
    ];
    for path in paths {
        for argument in ["file", "script"] {
            let error = fixture.error("skill_pdf", json!({argument: path}));
            assert!(!error.contains(SECRET), "{path}: {error}");
        }
    }
    // Inside the skill, but not in `scripts/`.
    let aside = fixture.error("skill_pdf", json!({"script": "aside.sh"}));
    assert!(
        aside.contains("is not in `scripts/` of the skill `pdf`"),
        "{aside}"
    );
    let aside = fixture.error(
        "skill_pdf",
        json!({"script": "scripts/../references/evil.sh"}),
    );
    assert!(
        aside.contains("is not in `scripts/` of the skill `pdf`"),
        "{aside}"
    );
}

#[test]
fn a_link_that_replaces_a_skill_is_not_followed() {
    let fixture = fixture(&[("references/secret.txt", "its own")]);
    let skill = fixture.path("skills/pdf");
    std::fs::rename(&skill, fixture.path("skills/away")).unwrap();
    std::fs::create_dir(fixture.path("outside/references")).unwrap();
    std::fs::write(fixture.path("outside/references/secret.txt"), SECRET).unwrap();
    for target in [fixture.path("outside"), "../outside".into(), "away".into()] {
        symlink(&target, &skill).unwrap();
        let error = fixture.error("skill_pdf", json!({"file": "references/secret.txt"}));
        assert!(
            error.starts_with("the folder of the skill `pdf` can no longer be opened"),
            "{error}"
        );
        std::fs::remove_file(&skill).unwrap();
    }
}

#[test]
fn a_script_runs_in_the_workspace_with_the_interpreter_of_its_first_line_or_extension() {
    let fixture = fixture(&[
        (
            "scripts/a.sh",
            "printf '<%s>' \"$@\"; pwd; cat \"$(dirname \"$0\")/../references/r.md\"",
        ),
        (
            "scripts/tool",
            "#!/bin/sh -e\necho by shebang\nfalse\necho not here\n",
        ),
        (
            "scripts/b.py",
            "import sys\nprint('python', sys.argv[1:])\n",
        ),
        ("scripts/sub/c.sh", "echo deep; exit 7"),
        ("scripts/unknown", "words"),
        ("references/r.md", "reference\n"),
    ]);
    let workspace = fixture
        .inside("")
        .to_str()
        .unwrap()
        .trim_end_matches('/')
        .to_owned();
    let run = |script: &str, arguments: &[&str]| {
        let text = fixture.text(
            "skill_pdf",
            json!({"script": script, "arguments": arguments}),
        );
        let (first, rest) = text.split_once('\n').unwrap();
        (
            first.split(" after").next().unwrap().to_owned(),
            rest.to_owned(),
        )
    };
    let result = |code: i32, text: &str| (format!("exit code {code}"), text.to_owned());
    let printed = format!("<a b><$HOME>{workspace}\nreference\n");
    assert_eq!(run("scripts/a.sh", &["a b", "$HOME"]), result(0, &printed));
    assert_eq!(run("tool", &[]), result(1, "by shebang\n"));
    assert_eq!(run("b.py", &["x"]), result(0, "python ['x']\n"));
    assert_eq!(run("sub/c.sh", &[]), result(7, "deep\n"));
    let unknown = fixture.error("skill_pdf", json!({"script": "unknown"}));
    assert!(
        unknown.starts_with("lango does not know how to run `scripts/unknown`"),
        "{unknown}"
    );
    let status = fixture.text("exec_status", json!({"job": "run_4", "from_line": 1}));
    assert!(status.ends_with("\ndeep\n"), "{status}");
}

#[test]
fn the_preview_shows_the_command_and_the_start_of_the_script() {
    let script: String = (1..=60)
        .map(|line| format!("echo {line}\u{202e}\n"))
        .collect();
    let fixture = fixture(&[("scripts/a.sh", &script)]);
    let arguments = json!({"script": "a.sh", "arguments": ["a b"]});
    let preview = fixture.preview("skill_pdf", arguments).unwrap();
    let path = fixture.path("skills/pdf/scripts/a.sh");
    assert!(
        preview.starts_with(&format!("$ /bin/sh {} 'a b'\n", path.display())),
        "{preview}"
    );
    assert!(
        preview.contains(&format!(
            "also reads: {}\n",
            fixture.path("skills/pdf").display()
        )),
        "{preview}"
    );
    assert!(
        preview.contains("; the script:\n| echo 1\\u{202e}\n"),
        "{preview}"
    );
    let end = "| echo 40\\u{202e}\n[20 more lines not shown; view all to see them]\n";
    assert!(preview.ends_with(end), "{preview}");
    let tool = fixture.tool("skill_pdf");
    let arguments = json!({"script": "a.sh"});
    let request = PreviewRequest {
        length: PreviewLength::Full,
        inspection: fixture.inspect("skill_pdf", arguments.clone()),
    };
    let whole = tool.preview(Arc::new(arguments.clone()), request.clone());
    let whole = fixture.runtime.block_on(whole).unwrap();
    std::fs::write(fixture.path("skills/pdf/scripts/a.sh"), "echo other").unwrap();
    let changed = tool.preview(Arc::new(arguments), request);
    let changed = fixture.runtime.block_on(changed).unwrap();
    assert!(changed.contains("changed after the approval"), "{changed}");
    assert!(whole.ends_with("| echo 60\\u{202e}\n"), "{whole}");
    assert_eq!(fixture.preview("skill_pdf", json!({})), None);
    let refused = fixture
        .preview("skill_pdf", json!({"script": "nowhere.sh"}))
        .unwrap();
    assert!(refused.starts_with("This call will fail: "), "{refused}");
}

#[test]
fn a_script_runs_only_with_the_files_that_were_approved() {
    let fixture = fixture(&[
        ("scripts/a.sh", ". \"$(dirname \"$0\")/lib.sh\"; say"),
        ("scripts/lib.sh", "say() { echo approved; }\n"),
    ]);
    let arguments = Arc::new(json!({"script": "a.sh"}));
    let tool = fixture.tool("skill_pdf");
    let inspect = || {
        fixture
            .runtime
            .block_on(tool.inspect(&caller(), Arc::clone(&arguments)))
    };
    let run = |inspection: &Inspection| {
        let who = Caller {
            inspection: inspection.clone(),
            ..caller()
        };
        let result = fixture
            .runtime
            .block_on(tool.run(&who, Arc::clone(&arguments)));
        result.map_or_else(|error| error.message, |output| output.text)
    };
    let approved = inspect();
    assert!(run(&approved).contains("approved"));
    for (path, text) in [
        ("scripts/a.sh", "touch planted"),
        ("scripts/lib.sh", "say() { touch planted; }\n"),
        ("scripts/new.sh", "touch planted"),
        (
            "SKILL.md",
            "---\nname: pdf\ndescription: x\n---\nOther steps",
        ),
    ] {
        let file = fixture.path("skills/pdf").join(path);
        let before = std::fs::read(&file).ok();
        std::fs::write(&file, text).unwrap();
        assert_ne!(inspect(), approved, "{path}");
        let refused = run(&approved);
        assert!(refused.contains("changed after the approval"), "{refused}");
        match before {
            Some(before) => std::fs::write(&file, before).unwrap(),
            None => std::fs::remove_file(&file).unwrap(),
        }
    }
    assert!(!fixture.inside("planted").exists());
    assert_eq!(inspect(), approved);
    let unasked = run(&Inspection::default());
    assert!(unasked.contains("changed after the approval"), "{unasked}");
}

#[test]
fn conflicting_arguments_are_refused() {
    let fixture = fixture(&[("scripts/a.sh", "true")]);
    let both = fixture.error("skill_pdf", json!({"script": "a.sh", "file": "SKILL.md"}));
    assert!(
        both.starts_with("pass a `script` to run or a `file` to read"),
        "{both}"
    );
    let alone = fixture.error("skill_pdf", json!({"arguments": ["x"]}));
    assert!(alone.starts_with("`arguments` are for a script"), "{alone}");
    let unknown = fixture.error("skill_pdf", json!({"path": "x"}));
    assert!(unknown.contains("unknown field `path`"), "{unknown}");
}

#[test]
fn a_hidden_skill_can_be_read_but_its_scripts_do_not_run() {
    let fixture = CommandFixture::with(FixtureOptions {
        policy: Some(|policy, root| policy.hidden.push(root.join("skills"))),
        skills: vec![("pdf", vec![("scripts/a.sh", "true".into())])],
        ..FixtureOptions::default()
    });
    assert!(
        fixture
            .text("skill_pdf", json!({}))
            .starts_with("# How to pdf\n")
    );
    let error = fixture.error("skill_pdf", json!({"script": "a.sh"}));
    assert!(error.contains("hidden from commands"), "{error}");
}

#[test]
fn dropping_a_call_ends_its_script() {
    let mark = mark("4717");
    let fixture = fixture(&[("scripts/a.sh", &format!("sleep {mark} & sleep {mark}"))]);
    let tool = fixture.tool("skill_pdf");
    let arguments = Arc::new(json!({"script": "a.sh"}));
    let who = Caller {
        inspection: fixture
            .runtime
            .block_on(tool.inspect(&caller(), Arc::clone(&arguments))),
        ..caller()
    };
    let mut call = tool.run(&who, arguments);
    fixture.runtime.block_on(async {
        while !is_running(&mark) {
            let moment = tokio::time::timeout(Duration::from_millis(20), &mut call).await;
            assert!(moment.is_err(), "it ended by itself");
        }
        drop(call);
    });
    wait_until("it has ended", || !is_running(&mark));
}
