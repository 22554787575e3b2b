//! Invalid questions: each is refused with the reason and a next step, and nothing is stored.

use crate::lango::{Lango, text};
use std::process::Stdio;

/// Maximum length of a question in bytes.
const MAX_BYTES: usize = 1024 * 1024;

#[test]
fn a_question_that_is_not_utf_8_is_refused_with_the_position() {
    let lango = Lango::new();
    let ran = lango.piped(&["run"], b"caf\xc3\xa9 \xff and more");
    ran.refused(2, &["standard input", "UTF-8", "byte is number 7", "iconv"]);
    let ran = lango.piped(&["run", "what is this?"], b"\xff");
    ran.refused(2, &["byte is number 1"]);
    // An incomplete character at the end.
    lango
        .piped(&["run"], b"hello \xc3")
        .refused(2, &["number 7"]);
    assert!(!lango.home().exists());
}

#[test]
fn a_question_of_ten_megabytes_is_refused_with_the_limit() {
    let lango = Lango::new();
    let ten_megabytes = "long ".repeat(2_000_000);
    for arguments in [&["run"][..], &[], &["run", "-"], &["run", "summarise"]] {
        let ran = lango.piped(arguments, &ten_megabytes);
        ran.refused(2, &["1048576 bytes", "save it to a file"]);
    }
    assert!(!lango.home().exists());
}

#[test]
fn a_question_of_many_long_arguments_is_refused_with_the_limit() {
    let lango = Lango::new();
    // Linux limits an argument to 128 KiB, and all arguments to about 2 MiB.
    let piece = "x".repeat(120_000);
    let arguments = [&["run"], &[&*piece; 10][..]].concat();
    let ran = lango
        .run(&arguments)
        .refused(2, &["1048576", "1200009 bytes"]);
    assert!(ran.stderr.len() < 500, "the question is not repeated");
    assert_eq!(
        lango.run(&["sessions", "list", "--json"]).ok().stdout,
        "[]\n"
    );
}

#[test]
fn a_question_of_the_maximum_length_is_accepted_and_one_byte_more_is_not() {
    let lango = Lango::new();
    let longest = "x".repeat(MAX_BYTES);
    let summary = lango.piped(&["run", "--json"], &longest).ok().json();
    let events = lango.events(text(&summary["session"]));
    assert_eq!(events[0]["text"], longest);
    let ran = lango.piped(&["run"], format!("{longest}x"));
    ran.refused(2, &["1048576"]);
    let ran = lango.piped(&["run", "hello"], &longest[..MAX_BYTES - 10]);
    ran.refused(2, &["1048576"]);
}

#[test]
fn an_empty_question_is_refused_with_an_example() {
    let lango = Lango::new();
    for (arguments, input) in [
        (&["run"][..], ""),
        (&["run", ""], ""),
        (&["run", " ", "\t"], ""),
        (&["run", "-"], " \n\n"),
        (&[], ""),
    ] {
        let ran = lango.piped(arguments, input);
        ran.refused(2, &["empty", "lango run \"what files are here?\""]);
    }
    let listed = lango.run(&["sessions", "list", "--json"]).ok();
    assert_eq!(listed.stdout, "[]\n");
}

#[test]
fn a_question_with_a_nul_is_stored_unchanged() {
    let lango = Lango::new();
    let summary = lango.piped(&["run", "--json"], "hello\0you").ok().json();
    let events = lango.events(text(&summary["session"]));
    assert_eq!(events[0]["text"], "hello\0you");
    let listed = lango.run(&["sessions", "list"]).ok();
    assert!(listed.stdout.contains("hello␀you"), "{listed:#?}");
}

#[test]
fn unreadable_input_is_refused() {
    let lango = Lango::new();
    let folder = std::fs::File::open(lango.workspace()).unwrap();
    let mut command = lango.command(&["run", "hello"]);
    let child = command.stdin(Stdio::from(folder)).stdout(Stdio::piped());
    let child = child.stderr(Stdio::piped()).spawn().unwrap();
    let ran = crate::lango::finish_child(child, b"");
    ran.refused(2, &["standard input cannot be read", "Is a directory"]);
}

#[test]
fn a_missing_file_is_reported_by_the_agent_and_is_not_a_failure() {
    let lango = Lango::new();
    let summary = lango.ask("read nowhere.txt");
    assert_eq!(summary["outcome"], "answered");
    let answer = text(&summary["answer"]);
    assert!(answer.contains("nowhere.txt"), "{answer}");
}

#[test]
fn a_file_outside_the_workspace_is_not_read() {
    let lango = Lango::new();
    lango.home_file("secret.txt", "the secret");
    for question in ["read ../home/secret.txt", "read /etc/passwd"] {
        let answer = lango.ask(question)["answer"].to_string();
        assert!(!answer.contains("the secret"), "{answer}");
        assert!(!answer.contains("root:"), "{answer}");
    }
}
