//! The output of commands: its start and end are shown, it is stored within limits, and it can be read in pages.

use crate::command_fixture::{CommandFixture, FixtureOptions, after_headline};
use lango_tools::CommandLimits;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

#[test]
fn of_a_long_output_the_start_and_the_end_are_shown_and_the_rest_is_paged() {
    let fixture = CommandFixture::new();
    let text = fixture.text("exec", json!({"command": "seq 1 20000"}));
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
        let page = fixture.text("exec_status", arguments.clone());
        assert!(page.len() < 40_000);
        let body = page.splitn(3, '\n').nth(2).unwrap();
        whole.extend(
            body.split_inclusive('\n')
                .filter(|line| !line.starts_with('[')),
        );
        let Some((_, next)) = body.split_once("[continue with exec_status ") else {
            break;
        };
        arguments = serde_json::from_str(next.trim_end().trim_end_matches(']')).unwrap();
    }
    let wanted: String = (1..=20_000).map(|number| format!("{number}\n")).collect();
    assert_eq!(whole, wanted);
}

#[test]
fn a_line_longer_than_a_page_is_paged_too() {
    let fixture = CommandFixture::new();
    let text = fixture.text(
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
    let page = fixture.text("exec_status", arguments);
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
fn of_an_output_past_its_limit_the_start_and_the_end_are_stored() {
    let limits = CommandLimits {
        output_bytes: 100_000,
        ..CommandLimits::default()
    };
    let fixture = CommandFixture::with(FixtureOptions {
        limits,
        ..FixtureOptions::default()
    });
    let text = fixture.text("exec", json!({"command": "seq 1 200000"}));
    assert!(
        text.ends_with(
            "199999\n200000\n[only the first 100.0 KB and the end of the output are stored]\n"
        ),
        "{text}"
    );
    let files: Vec<_> = std::fs::read_dir(fixture.path("data/outputs"))
        .unwrap()
        .flatten()
        .collect();
    assert_eq!(files.len(), 1);
    assert!(files[0].metadata().unwrap().len() < 140_000);
    let stored = std::fs::read_to_string(files[0].path()).unwrap();
    assert!(stored.contains(" of output omitted here]\n"));
}

#[test]
fn output_that_is_not_text_is_made_visible() {
    let fixture = CommandFixture::new();
    let text = fixture.text(
        "exec",
        json!({"command": "printf 'a\\033[1mb\\000c\\377d\\r\\ne\\n'"}),
    );
    assert_eq!(after_headline(&text, "exit code 0"), "ab␀c�d\ne\n");
}

#[test]
fn outputs_are_private_files_and_the_oldest_are_removed() {
    let limits = CommandLimits {
        stored_outputs: 3,
        ..CommandLimits::default()
    };
    let fixture = CommandFixture::with(FixtureOptions {
        limits,
        ..FixtureOptions::default()
    });
    for number in 1..=5 {
        fixture.text("exec", json!({"command": format!("echo {number}")}));
    }
    let folder = fixture.path("data/outputs");
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
    let list = fixture.text("exec_status", json!({}));
    assert!(
        !list.contains("run_2:") && list.contains("run_5:"),
        "{list}"
    );
    let removed = fixture.error("exec_status", json!({"job": "run_1"}));
    assert!(
        removed.starts_with("job \"run_1\" does not exist"),
        "{removed}"
    );
}

#[test]
fn outputs_of_an_earlier_run_are_removed_too_and_other_files_stay() {
    for (stored_outputs, stored_bytes, left) in [
        (
            3,
            1_000_000,
            &["c.out", "d.out", "notes.txt", "t_1-call_1.out"][..],
        ),
        (9, 1_000, &["d.out", "notes.txt", "t_1-call_1.out"]),
    ] {
        let fixture = CommandFixture::with(FixtureOptions {
            limits: CommandLimits {
                stored_outputs,
                stored_bytes,
                ..CommandLimits::default()
            },
            ..FixtureOptions::default()
        });
        let outputs = fixture.path("data/outputs");
        assert!(
            !outputs.exists(),
            "nothing is created before the first command"
        );
        std::fs::create_dir_all(&outputs).unwrap();
        std::fs::write(outputs.join("notes.txt"), "mine").unwrap();
        let now = std::time::SystemTime::now();
        for (name, age, size) in [("a", 40, 10), ("b", 30, 10), ("c", 20, 600), ("d", 10, 600)] {
            let file = std::fs::File::create(outputs.join(format!("{name}.out"))).unwrap();
            file.set_len(size).unwrap();
            file.set_modified(now - std::time::Duration::from_secs(age))
                .unwrap();
        }
        fixture.text("exec", json!({"argv": ["true"]}));
        let entries = std::fs::read_dir(&outputs).unwrap().flatten();
        let mut names: Vec<_> = entries
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, left);
    }
}
