//! `--continue`, `lango resume` and `lango chat`: earlier sessions are found by their folder and opened again.

use crate::archive::waiting_session;
use crate::lango::{Lango, finish, text};
use crate::terminal::Terminal;
use std::fs;

/// Asks in a folder below the workspace and returns the session's id.
fn ask_in(lango: &Lango, folder: &str, question: &str) -> String {
    let folder = lango.workspace().join(folder);
    fs::create_dir_all(&folder).unwrap();
    let mut command = lango.command(&["run", "--json", question]);
    let ran = finish(command.current_dir(folder), b"").ok();
    text(&ran.json()["session"]).to_owned()
}

#[test]
fn a_run_continues_the_last_session_of_its_folder() {
    let lango = Lango::new();
    lango
        .run(&["run", "--continue", "and then?"])
        .refused(2, &["there is no session to continue", "lango resume"]);
    let here = lango.session("first here");
    ask_in(&lango, "elsewhere", "not here");
    let ran = lango.run(&["run", "--json", "--continue", "second here"]);
    assert_eq!(text(&ran.ok().json()["session"]), here);
    let ran = lango.run(&["--json", "--continue", "third time here"]);
    assert_eq!(text(&ran.ok().json()["session"]), here);
    let ran = lango.piped(&["--continue"], "from a pipe").ok();
    assert!(!ran.stdout.is_empty());
    let listed = lango.run(&["sessions", "list", "--json"]).ok().json();
    assert_eq!(
        (&listed[0]["id"], &listed[0]["turns"]),
        (&here.into(), &4.into())
    );
    assert_eq!(
        text(&listed[0]["folder"]),
        lango.workspace().to_str().unwrap()
    );
    lango
        .run(&["--continue", "sessions", "list"])
        .refused(2, &["--continue"]);
    lango
        .run(&["run", "--continue", "--ephemeral", "x"])
        .exits(2);
}

#[test]
fn a_session_of_another_user_is_not_continued() {
    let lango = Lango::new();
    let other = ["-c", "session.user=ann", "run", "hello"];
    lango.run(&other).ok();
    lango
        .run(&["run", "--continue", "x"])
        .refused(2, &["no session"]);
}

#[test]
fn a_resumed_chat_shows_the_last_exchanges() {
    let lango = Lango::new();
    let session = lango.session("one two three");
    for question in ["hello", "list the files", "what is in notes.md?"] {
        lango.run(&["run", "--session", &session, question]).ok();
    }
    for arguments in [
        &["--continue"][..],
        &["chat", "--continue"],
        &["resume", &session],
        &["sessions", "resume", &session],
    ] {
        let mut terminal = Terminal::start(&lango, 100, arguments, &[]);
        let shown = terminal.prompt();
        assert!(shown.contains(&format!("session {session}")), "{shown}");
        assert!(!shown.contains("one two three"), "{shown}");
        let earlier = format!("… 1 earlier turn (lango sessions show {session})");
        assert!(shown.contains(&earlier), "{shown}");
        for part in ["> hello", "list the files", "what is in notes.md?", "Buy"] {
            assert!(shown.contains(part), "no {part:?} in {shown}");
        }
        terminal.press("\u{4}");
        assert_eq!(terminal.end().0, Some(0));
    }
}

#[test]
fn a_chat_can_be_named_and_a_new_one_shows_nothing_old() {
    let lango = Lango::new();
    lango.session("an old question");
    let mut terminal = Terminal::start(&lango, 100, &["chat"], &[]);
    let shown = terminal.prompt();
    assert!(!shown.contains("an old question"), "{shown}");
    terminal.press("\u{4}");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn without_an_id_the_sessions_of_this_folder_are_offered_first() {
    let lango = Lango::new();
    let no_sessions = lango.run(&["resume"]);
    no_sessions.refused(2, &["there are no sessions yet"]);
    let here = lango.session("asked here");
    let elsewhere = ask_in(&lango, "elsewhere", "asked elsewhere");
    let refused = lango.run(&["resume"]);
    let refused = refused.refused(2, &[&here, &elsewhere, "next: lango resume ID"]);
    let (first, second) = (refused.stderr.find(&here), refused.stderr.find(&elsewhere));
    assert!(first < second, "{refused:#?}");
    for (keys, chosen) in [
        ("\r", &here),
        ("\u{1b}[B\r", &elsewhere),
        ("elsew\r", &elsewhere),
    ] {
        let mut terminal = Terminal::start(&lango, 100, &["resume"], &[]);
        let offered = terminal.wait_for("enter opens");
        assert!(offered.contains("asked here"), "{offered}");
        assert!(offered.contains("elsewhere)"), "{offered}");
        terminal.press(keys);
        let shown = terminal.prompt();
        assert!(shown.contains(&format!("session {chosen}")), "{shown}");
        terminal.press("\u{4}");
        assert_eq!(terminal.end().0, Some(0));
    }
    let mut terminal = Terminal::start(&lango, 100, &["resume"], &[]);
    terminal.wait_for("enter opens");
    terminal.press("\u{4}");
    let (code, shown) = terminal.end();
    assert!(
        code == Some(130) && shown.contains("no session was chosen"),
        "{shown}"
    );
}

#[test]
fn the_picker_finds_old_sessions_marks_open_questions_and_stays_if_nothing_matches() {
    let lango = Lango::new();
    let old = lango.session("about the harbour");
    for number in 0..18 {
        lango.session(&format!("hello number {number}"));
    }
    let waiting = waiting_session(&lango);
    let mut terminal = Terminal::start(&lango, 100, &["resume"], &[]);
    // The message that led to the question.
    let offered = terminal.wait_for("> create notes/a.md");
    assert!(offered.contains("waits for your answer: "), "{offered}");
    terminal.press("nothing like this\r");
    terminal.wait_for("no match");
    terminal.press("\u{15}harbour");
    terminal.wait_for("about the harbour");
    terminal.press("\r");
    let shown = terminal.prompt();
    assert!(shown.contains(&format!("session {old}")), "{shown}");
    assert_ne!(old, waiting);
    terminal.press("\u{4}");
    assert_eq!(terminal.end().0, Some(0));
}
