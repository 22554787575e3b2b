//! Skills in use: read when they are used, confined to their folder, and their scripts to the sandbox.

use crate::command_bench::{Ask, CommandBench, is_running, mark, wait_until};
use crate::support::{SECRET, prepared};
use lango_core::{Caller, Effect, Extent, Inspection, Risk};
use lango_testkit::tool::caller;
use serde_json::json;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::time::Duration;

/// A bench with one skill `pdf`, which has these files.
fn bench(files: &[(&'static str, &str)]) -> CommandBench {
    let files = files
        .iter()
        .map(|(path, text)| (*path, (*text).to_owned()))
        .collect();
    CommandBench::with(Ask {
        skills: vec![("pdf", files)],
        ..Ask::default()
    })
}

#[test]
fn a_skill_is_a_safe_tool_until_it_runs_a_script() {
    let bench = bench(&[]);
    let spec = bench.tool("skill_pdf").spec().clone();
    assert!(
        spec.description
            .starts_with("Does a thing.\n[A skill. Call it without arguments first")
    );
    assert_eq!((spec.effect, spec.risk), (Effect::Effect, Risk::Safe));
    assert_eq!(spec.risk_of(&json!({"file": "a"})), Risk::Safe);
    assert_eq!(spec.risk_of(&json!({"script": "a"})), Risk::Dangerous);
}

#[test]
fn without_arguments_it_tells_how_it_is_done_as_it_stands_now() {
    let bench = bench(&[
        ("scripts/run.sh", "echo run\n"),
        ("references/deep/notes.md", "notes\n"),
        ("assets/a.bin", "\0"),
        ("scripts/.hidden", ""),
    ]);
    assert_eq!(
        bench.text("skill_pdf", json!({})),
        "# How to pdf\n\n[files of this skill; read one with skill_pdf {\"file\":…}, run one below scripts/ with \
         skill_pdf {\"script\":…}]\nassets/a.bin  1 B\nreferences/deep/notes.md  6 B\nscripts/run.sh  9 B\n"
    );
    let changed = "---\nname: pdf\ndescription: New.\n---\nOther steps\n---\nand more";
    std::fs::write(bench.path("skills/pdf/SKILL.md"), changed).unwrap();
    let text = bench.text("skill_pdf", json!({}));
    assert!(text.starts_with("Other steps\n---\nand more\n"), "{text}");
}

#[test]
fn what_vanished_or_broke_since_the_start_is_told_in_words() {
    let bench = bench(&[("references/a.md", "a"), ("scripts/a.sh", "true")]);
    let file = bench.path("skills/pdf/SKILL.md");
    let cases: [(&[u8], &str); 4] = [
        (
            b"# no front matter\n",
            "cannot be read any more: `SKILL.md`: it does not begin with",
        ),
        (
            b"---\nname: pdf\n---\n\xff\n",
            "cannot be read any more: `SKILL.md`: ",
        ),
        (b"", "cannot be read any more: `SKILL.md` is empty"),
        (b"---\nname: pdf\ndescription: x\n---\n \n", ""),
    ];
    for (content, problem) in cases {
        std::fs::write(&file, content).unwrap();
        match bench.call("skill_pdf", json!({})) {
            Ok(text) => assert!(text.starts_with("[SKILL.md says nothing more"), "{text}"),
            Err(error) => assert!(
                !problem.is_empty() && error.message.contains(problem),
                "{error}"
            ),
        }
    }
    std::fs::remove_file(&file).unwrap();
    let gone = bench.error("skill_pdf", json!({}));
    assert!(
        gone.contains("cannot be read any more: it has no `SKILL.md`"),
        "{gone}"
    );
    assert!(prepared("mkfifo", &[], &file));
    let fifo = bench.error("skill_pdf", json!({}));
    assert!(
        fifo.contains("`SKILL.md` is a named pipe, not a file"),
        "{fifo}"
    );
    let missing = bench.error("skill_pdf", json!({"file": "references/b.md"}));
    assert!(
        missing.starts_with("the skill `pdf` has no file `references/b.md`, or none any more"),
        "{missing}"
    );
    std::fs::remove_dir_all(bench.path("skills/pdf")).unwrap();
    for arguments in [
        json!({}),
        json!({"file": "references/a.md"}),
        json!({"script": "scripts/a.sh"}),
    ] {
        let gone = bench.error("skill_pdf", arguments);
        assert!(
            gone.starts_with("the skill `pdf` is not there any more"),
            "{gone}"
        );
    }
}

#[test]
fn a_file_is_read_in_pages_and_only_if_it_is_text() {
    let long: String = (1..=10_000)
        .map(|number| format!("line {number}\n"))
        .collect();
    let bench = bench(&[
        ("references/long.md", &long),
        ("assets/a.bin", "a\0b"),
        ("assets/empty", ""),
    ]);
    let first = bench.text("skill_pdf", json!({"file": "references/long.md"}));
    let (_, call) = first
        .split_once("[there is more; read on with skill_pdf ")
        .unwrap();
    let next: serde_json::Value =
        serde_json::from_str(call.trim_end().trim_end_matches(']')).unwrap();
    let second = bench.text("skill_pdf", next);
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
    let absolute = bench.path("skills/pdf/references/long.md");
    assert_eq!(
        bench.text("skill_pdf", json!({"file": absolute})).len(),
        first.len()
    );
    assert_eq!(
        bench.text("skill_pdf", json!({"file": "assets/empty"})),
        "[nothing in assets/empty from line 1 on]\n"
    );
    let binary = bench.error("skill_pdf", json!({"file": "assets/a.bin"}));
    assert!(binary.contains("is not UTF-8 text"), "{binary}");
    let folder = bench.error("skill_pdf", json!({"file": "assets"}));
    assert!(folder.contains("is a folder, not a file"), "{folder}");
}

#[test]
fn no_file_or_script_outside_the_skill_is_reached() {
    let bench = bench(&[
        ("scripts/real.sh", "true"),
        ("references/evil.sh", "echo evil"),
    ]);
    let skill = bench.path("skills/pdf");
    symlink(bench.path("outside"), skill.join("scripts/link")).unwrap();
    symlink("../../../outside/secret.txt", skill.join("scripts/up.sh")).unwrap();
    symlink("/", skill.join("scripts/root")).unwrap();
    symlink("/proc/self/root", skill.join("references/process")).unwrap();
    symlink("../references/evil.sh", skill.join("scripts/aside.sh")).unwrap();
    assert!(prepared("mkfifo", &[], &skill.join("scripts/fifo.sh")));
    std::fs::write(bench.path("outside/run.sh"), "echo outside").unwrap();
    let secret = bench.path("outside/secret.txt");
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
            let error = bench.error("skill_pdf", json!({argument: path}));
            assert!(!error.contains(SECRET), "{path}: {error}");
        }
    }
    // Inside of the skill, but not a script.
    let aside = bench.error("skill_pdf", json!({"script": "aside.sh"}));
    assert!(
        aside.contains("is not in `scripts/` of the skill `pdf`"),
        "{aside}"
    );
    let aside = bench.error(
        "skill_pdf",
        json!({"script": "scripts/../references/evil.sh"}),
    );
    assert!(
        aside.contains("is not in `scripts/` of the skill `pdf`"),
        "{aside}"
    );
}

#[test]
fn a_link_put_in_the_place_of_a_skill_leads_nowhere() {
    let bench = bench(&[("references/secret.txt", "its own")]);
    let skill = bench.path("skills/pdf");
    std::fs::rename(&skill, bench.path("skills/away")).unwrap();
    std::fs::create_dir(bench.path("outside/references")).unwrap();
    std::fs::write(bench.path("outside/references/secret.txt"), SECRET).unwrap();
    for target in [bench.path("outside"), "../outside".into(), "away".into()] {
        symlink(&target, &skill).unwrap();
        let error = bench.error("skill_pdf", json!({"file": "references/secret.txt"}));
        assert!(
            error.starts_with("the folder of the skill `pdf` cannot be opened any more"),
            "{error}"
        );
        std::fs::remove_file(&skill).unwrap();
    }
}

#[test]
fn a_script_is_run_by_its_first_line_or_its_ending_in_the_workspace() {
    let bench = bench(&[
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
    let workspace = bench
        .inside("")
        .to_str()
        .unwrap()
        .trim_end_matches('/')
        .to_owned();
    let run = |script: &str, arguments: &[&str]| {
        let text = bench.text(
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
    let unknown = bench.error("skill_pdf", json!({"script": "unknown"}));
    assert!(
        unknown.starts_with("nobody knows how to run `scripts/unknown`"),
        "{unknown}"
    );
    let status = bench.text("exec_status", json!({"job": "run_4", "from_line": 1}));
    assert!(status.ends_with("\ndeep\n"), "{status}");
}

#[test]
fn a_person_sees_the_command_and_the_start_of_the_script() {
    let script: String = (1..=60)
        .map(|line| format!("echo {line}\u{202e}\n"))
        .collect();
    let bench = bench(&[("scripts/a.sh", &script)]);
    let arguments = json!({"script": "a.sh", "arguments": ["a b"]});
    let preview = bench.preview("skill_pdf", arguments).unwrap();
    let path = bench.path("skills/pdf/scripts/a.sh");
    assert!(
        preview.starts_with(&format!("$ /bin/sh {} 'a b'\n", path.display())),
        "{preview}"
    );
    assert!(
        preview.contains(&format!(
            "also reads: {}\n",
            bench.path("skills/pdf").display()
        )),
        "{preview}"
    );
    assert!(
        preview.contains("; the script:\n| echo 1\\u{202e}\n"),
        "{preview}"
    );
    let end = "| echo 40\\u{202e}\n[20 more lines not shown; view all to see them]\n";
    assert!(preview.ends_with(end), "{preview}");
    let tool = bench.tool("skill_pdf");
    let whole = tool.preview(Arc::new(json!({"script": "a.sh"})), Extent::Whole);
    let whole = bench.runtime.block_on(whole).unwrap();
    assert!(whole.ends_with("| echo 60\\u{202e}\n"), "{whole}");
    assert_eq!(bench.preview("skill_pdf", json!({})), None);
    let refused = bench
        .preview("skill_pdf", json!({"script": "nowhere.sh"}))
        .unwrap();
    assert!(refused.starts_with("This call will fail: "), "{refused}");
}

#[test]
fn a_script_runs_only_with_the_files_that_were_approved() {
    let bench = bench(&[
        ("scripts/a.sh", ". \"$(dirname \"$0\")/lib.sh\"; say"),
        ("scripts/lib.sh", "say() { echo approved; }\n"),
    ]);
    let arguments = Arc::new(json!({"script": "a.sh"}));
    let tool = bench.tool("skill_pdf");
    let inspect = || {
        bench
            .runtime
            .block_on(tool.inspect(&caller(), Arc::clone(&arguments)))
    };
    let run = |inspection: &Inspection| {
        let who = Caller {
            inspection: inspection.clone(),
            ..caller()
        };
        let result = bench
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
        let file = bench.path("skills/pdf").join(path);
        let before = std::fs::read(&file).ok();
        std::fs::write(&file, text).unwrap();
        assert_ne!(inspect(), approved, "{path}");
        let refused = run(&approved);
        assert!(
            refused.contains("not those that were approved"),
            "{refused}"
        );
        match before {
            Some(before) => std::fs::write(&file, before).unwrap(),
            None => std::fs::remove_file(&file).unwrap(),
        }
    }
    assert!(!bench.inside("planted").exists());
    assert_eq!(inspect(), approved);
    let unasked = run(&Inspection::default());
    assert!(
        unasked.contains("not those that were approved"),
        "{unasked}"
    );
}

#[test]
fn arguments_that_do_not_go_together_are_refused() {
    let bench = bench(&[("scripts/a.sh", "true")]);
    let both = bench.error("skill_pdf", json!({"script": "a.sh", "file": "SKILL.md"}));
    assert!(
        both.starts_with("give a `script` to run or a `file` to read"),
        "{both}"
    );
    let alone = bench.error("skill_pdf", json!({"arguments": ["x"]}));
    assert!(alone.starts_with("`arguments` are for a script"), "{alone}");
    let unknown = bench.error("skill_pdf", json!({"path": "x"}));
    assert!(unknown.contains("unknown field `path`"), "{unknown}");
}

#[test]
fn a_hidden_skill_is_read_and_its_scripts_are_not_run() {
    let bench = CommandBench::with(Ask {
        policy: Some(|policy, root| policy.hidden.push(root.join("skills"))),
        skills: vec![("pdf", vec![("scripts/a.sh", "true".into())])],
        ..Ask::default()
    });
    assert!(
        bench
            .text("skill_pdf", json!({}))
            .starts_with("# How to pdf\n")
    );
    let error = bench.error("skill_pdf", json!({"script": "a.sh"}));
    assert!(error.contains("hidden from commands"), "{error}");
}

#[test]
fn a_script_ends_with_the_call_that_was_dropped() {
    let mark = mark("4717");
    let bench = bench(&[("scripts/a.sh", &format!("sleep {mark} & sleep {mark}"))]);
    let tool = bench.tool("skill_pdf");
    let arguments = Arc::new(json!({"script": "a.sh"}));
    let who = Caller {
        inspection: bench
            .runtime
            .block_on(tool.inspect(&caller(), Arc::clone(&arguments))),
        ..caller()
    };
    let mut call = tool.run(&who, arguments);
    bench.runtime.block_on(async {
        while !is_running(&mark) {
            let moment = tokio::time::timeout(Duration::from_millis(20), &mut call).await;
            assert!(moment.is_err(), "it ended by itself");
        }
        drop(call);
    });
    wait_until("it is gone", || !is_running(&mark));
}
