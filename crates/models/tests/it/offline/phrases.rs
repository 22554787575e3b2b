//! What people type in their first five minutes, and which agent makes which call for it.

use super::commands::COMMANDS;
use super::memories::MEMORIES;
use super::searches::SEARCHES;
use super::{Mode, TOOLS, ask, done, play};

/// A message, and the calls that it leads to.
const PHRASES: &[(&str, &[&str])] = &[
    // Look around
    ("what files are here?", &["operator fs_list ."]),
    ("What files are in this folder", &["operator fs_list ."]),
    ("which files do you see?", &["operator fs_list ."]),
    ("LIST FILES", &["operator fs_list ."]),
    ("ls", &["operator fs_list ."]),
    ("list", &["operator fs_list ."]),
    ("Please list all files.", &["operator fs_list ."]),
    ("could you show me the files here?", &["operator fs_list ."]),
    ("Hello! Can you list the files?", &["operator fs_list ."]),
    ("what's in here", &["operator fs_list ."]),
    ("whats in this folder", &["operator fs_list ."]),
    ("show me what's here", &["operator fs_list ."]),
    ("Hallo lango, list the files", &["operator fs_list ."]),
    ("give me a list of the files", &["operator fs_list ."]),
    ("list the folder src", &["operator fs_list src"]),
    ("list src", &["operator fs_list src"]),
    ("ls src/", &["operator fs_list src/"]),
    ("what is in the src folder?", &["operator fs_list src"]),
    (
        "what is in crates/core/",
        &["operator fs_list crates/core/"],
    ),
    ("show me the files in docs", &["operator fs_list docs"]),
    ("show the folder src", &["operator fs_list src"]),
    ("show me the src folder", &["operator fs_list src"]),
    // Read
    ("read notes.md", &["operator fs_read notes.md"]),
    ("please read README.md.", &["operator fs_read README.md"]),
    ("Read README", &["operator fs_read README"]),
    ("show me notes.md", &["operator fs_read notes.md"]),
    ("open notes.md please", &["operator fs_read notes.md"]),
    ("cat src/main.rs", &["operator fs_read src/main.rs"]),
    ("what does notes.md say?", &["operator fs_read notes.md"]),
    ("what's in notes.md?", &["operator fs_read notes.md"]),
    (
        "show me the contents of budget.csv",
        &["operator fs_read budget.csv"],
    ),
    ("show me `odd name`", &["operator fs_read odd name"]),
    (
        "read the first 5 lines of notes.md",
        &["operator fs_read 5 | notes.md"],
    ),
    ("what is in the readme?", &["operator fs_read README.md"]),
    (
        "read notes.md and budget.csv",
        &["operator fs_read notes.md", "operator fs_read budget.csv"],
    ),
    (
        "show me a.md, b.md and c.md; then list src",
        &[
            "operator fs_read a.md",
            "operator fs_read b.md",
            "operator fs_read c.md",
            "operator fs_list src",
        ],
    ),
    ("read page.html", &["operator fs_read page.html"]),
    ("read src", &["operator fs_read src"]),
    ("read src/", &["operator fs_list src/"]),
    ("read @notes.md", &["operator fs_read notes.md"]),
    ("what is in @notes.md?", &["operator fs_read notes.md"]),
    ("list @src/", &["operator fs_list src/"]),
    ("read @\"a b.md\"", &["operator fs_read a b.md"]),
    // Sizes and dates
    ("how big is notes.md?", &["operator fs_stat notes.md"]),
    (
        "When was Cargo.toml changed?",
        &["operator fs_stat Cargo.toml"],
    ),
    (
        "what is the size of notes.md",
        &["operator fs_stat notes.md"],
    ),
    ("does notes.md exist?", &["operator fs_stat notes.md"]),
    // Write
    (
        "write todo.md with the text buy milk",
        &["operator fs_write buy milk\n | todo.md"],
    ),
    (
        "Write hello world to hello.txt",
        &["operator fs_write hello world\n | hello.txt"],
    ),
    (
        "create a file called todo.txt with the words \"milk and bread\"",
        &["operator fs_write milk and bread\n | todo.txt"],
    ),
    (
        "create notes/a.md with the word hi",
        &["operator fs_write hi\n | notes/a.md"],
    ),
    (
        "please create hello.txt containing \"hi there\"",
        &["operator fs_write hi there\n | hello.txt"],
    ),
    (
        "save \"x = 1\" to a.py",
        &["operator fs_write x = 1\n | a.py"],
    ),
    (
        "write notes.md: Hello. How are you?",
        &["operator fs_write Hello. How are you\n | notes.md"],
    ),
    ("make a folder called drafts", &["operator fs_mkdir drafts"]),
    (
        "create a new folder drafts/old",
        &["operator fs_mkdir drafts/old"],
    ),
    ("mkdir `x y`", &["operator fs_mkdir x y"]),
    // Edit
    (
        "replace \"old words\" with \"new words\" in @notes.md",
        &["operator fs_edit new words | old words | notes.md"],
    ),
    (
        "change \"old\" to \"new\" in notes.md",
        &["operator fs_edit new | old | notes.md"],
    ),
    (
        "replace milk with bread in todo.md",
        &["operator fs_edit bread | milk | todo.md"],
    ),
    (
        "in todo.md replace milk with oat milk",
        &["operator fs_edit oat milk | milk | todo.md"],
    ),
    (
        "In the file todo.md, change the word 'milk' to 'tea', please",
        &["operator fs_edit tea | milk | todo.md"],
    ),
    (
        "edit todo.md and change milk to bread",
        &["operator fs_edit bread | milk | todo.md"],
    ),
    (
        "remove \"milk\" from todo.md",
        &["operator fs_edit  | milk | todo.md"],
    ),
    // Delete
    ("delete todo.md", &["operator fs_delete todo.md"]),
    (
        "Can you delete the folder drafts?",
        &["operator fs_delete drafts"],
    ),
    (
        "remove the file notes/a.md",
        &["operator fs_delete notes/a.md"],
    ),
    // Web, secrets
    (
        "open https://example.com/",
        &["navigator browser_navigate https://example.com/"],
    ),
    (
        "open page.html and tell me the title",
        &["navigator browser_navigate page.html"],
    ),
    (
        "please read https://example.com/a.html?b=c.",
        &["librarian search_fetch https://example.com/a.html?b=c"],
    ),
    ("list my secrets", &["vault secrets_list"]),
    ("hash the text hello", &["vault crypto_hash hello"]),
    ("What is the hash of `a b`?", &["vault crypto_hash a b"]),
    // Several at once
    (
        "list the folder src, and remember that the release is on Friday",
        &[
            "operator fs_list src",
            "chronicler memory_save the release is on Friday",
        ],
    ),
    (
        "Read notes.md and list src",
        &["operator fs_read notes.md", "operator fs_list src"],
    ),
    (
        "what files are here and what is my editor?",
        &["operator fs_list .", "chronicler memory_recall editor"],
    ),
    (
        "Hi! Read notes.md. Then search for TODO. Thanks!",
        &["operator fs_read notes.md", "operator fs_search TODO"],
    ),
];

fn all_phrases() -> impl Iterator<Item = &'static (&'static str, &'static [&'static str])> {
    [PHRASES, COMMANDS, MEMORIES, SEARCHES]
        .into_iter()
        .flatten()
}

#[test]
fn phrases_of_the_first_five_minutes_reach_their_tool() {
    assert!(all_phrases().count() >= 60);
    let wrong: Vec<String> = all_phrases()
        .filter_map(|(text, calls)| {
            let turn = ask(text);
            let mut made: Vec<&str> = turn.calls.iter().map(String::as_str).collect();
            // Agents work at the same time, so their calls can be in any order.
            let mut expected = calls.to_vec();
            made.sort_unstable();
            expected.sort_unstable();
            let is_right = made == expected && !turn.is_refused();
            (!is_right).then(|| format!("{text:?}: {turn:#?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_same_phrases_work_for_a_single_agent_and_in_the_classic_topology() {
    for (text, calls) in all_phrases() {
        let names = |calls: &[&str]| {
            let mut names: Vec<String> = calls
                .iter()
                .map(|call| call.split_once(' ').unwrap().1.to_owned())
                .collect();
            names.sort_unstable();
            names
        };
        // There, secrets and skills belong to no agent.
        let is_owned = !calls
            .iter()
            .any(|call| call.contains("secrets_list") || call.contains("list_skills"));
        for mode in [Mode::Single, Mode::Classic] {
            if matches!(mode, Mode::Classic) && !is_owned {
                continue;
            }
            let turn = play(mode, TOOLS, text, done);
            let made: Vec<&str> = turn.calls.iter().map(String::as_str).collect();
            assert_eq!(names(&made), names(calls), "{text}: {turn:#?}");
        }
    }
}

#[test]
fn small_talk_is_answered_with_one_model_call_and_no_agent() {
    for (text, part) in [
        ("hello", "Hello! I am lango's built-in set of rules"),
        ("Hi there!", "Hello!"),
        ("good morning lango", "Hello!"),
        ("who are you?", "built-in set of rules, not an AI model"),
        ("Are you an AI?", "not an AI model"),
        ("what can you do?", "write todo.md with the text buy milk"),
        ("help", "search for TODO"),
        ("which agents exist?", "\n- librarian: "),
        ("List the agents.", "\n- chronicler: "),
        (
            "what day is it?",
            "Today is Monday, 2026-11-16 (UTC+01:00).",
        ),
        ("What's the date today?", "2026-11-16"),
        ("what time is it", "run `date`"),
        ("Where am I?", "working folder"),
        ("thanks", "You are welcome."),
        ("Thank you very much!", "You are welcome."),
        ("yes", "nothing to confirm"),
        ("no", "Nothing was done."),
        ("never mind", "Nothing was done."),
        ("forget it", "Nothing was done."),
        (
            "undo",
            "`/undo` in the chat, or `lango undo`, restores what",
        ),
        ("Undo that!", "What commands changed is not undone."),
        ("take that back", "`lango undo`"),
        ("how do I restore a file?", "`lango trash`"),
        ("exit", "press ctrl-d or type /quit"),
        ("quit", "press ctrl-d or type /quit"),
        ("Bye!", "press ctrl-d or type /quit"),
        ("how are you?", "set of rules"),
        ("how do I use a real model?", "lango setup"),
        ("where do I put my API key?", "lango setup"),
        (
            "lango setup",
            "Leave the chat with Ctrl-D and run `lango setup`",
        ),
        ("setup", "Leave the chat with Ctrl-D"),
        ("/setup", "Leave the chat with Ctrl-D"),
        ("run lango setup", "Leave the chat with Ctrl-D"),
        ("connect openai", "`OPENAI_API_KEY`"),
        ("how do I connect a model?", "start Ollama"),
        ("what is lango?", "built-in set of rules"),
        ("how does lango work?", "search for TODO"),
        ("which tools do you have?", "search for TODO"),
        ("was kannst du?", "search for TODO"),
        ("is this free?", "A real model costs what its provider"),
        ("is my data sent anywhere?", "on this machine"),
        ("Bonjour!", "Hello!"),
        ("Danke schön!", "You are welcome."),
        ("wow, cool", "You are welcome."),
        (
            "my dog is called Rex",
            "say: remember that my dog is called Rex",
        ),
        ("My name is Ada.", "say: remember that My name is Ada"),
    ] {
        let turn = ask(text);
        assert!(turn.answer.contains(part), "{text}: {turn:#?}");
        assert_eq!((turn.model_calls, turn.calls.len()), (1, 0), "{text}");
        assert!(!turn.is_refused(), "{text}");
    }
}

#[test]
fn plans_are_made_of_the_words_of_the_request() {
    for (text, goal) in [
        ("plan a release", "a release"),
        ("Make a plan for my holiday, please", "my holiday"),
        ("could you give me a plan to learn Rust?", "learn Rust"),
        (
            "break down the migration to PostgreSQL",
            "the migration to PostgreSQL",
        ),
        ("what are the steps to bake bread?", "bake bread"),
        ("help me plan a birthday party", "a birthday party"),
    ] {
        let turn = ask(text);
        assert_eq!(turn.delegations.len(), 1, "{text}");
        assert!(turn.delegations[0].starts_with("planner: "), "{turn:#?}");
        for part in [&format!("A plan for: {goal}\n"), "\n1. ", "\n4. "] {
            assert!(turn.answer.contains(part), "{text}: {turn:#?}");
        }
    }
    for mode in [Mode::Single, Mode::Classic] {
        let turn = play(mode, TOOLS, "plan a release", done);
        assert!(turn.answer.contains("A plan for: a release"), "{turn:#?}");
    }
}

#[test]
fn three_agents_work_in_one_round() {
    let turn =
        ask("list the folder src, remember that the release is on Friday, and plan the release");
    assert_eq!(
        turn.delegations,
        [
            "operator: list the folder src",
            "chronicler: remember that the release is on Friday",
            "planner: plan the release"
        ]
    );
    assert_eq!(turn.calls.len(), 2);
    assert!(turn.answer.contains("A plan for: the release"), "{turn:#?}");
}

#[test]
fn a_task_that_an_agent_rejects_goes_to_the_agent_that_can_do_it() {
    for (text, rejecting) in [
        (
            "ask the planner to list the files",
            "planner: this needs `fs_list`, and I do not have it",
        ),
        (
            "ask the librarian to read notes.md",
            "librarian: this needs `fs_read`, and I do not have it",
        ),
        (
            "@vault what files are here?",
            "vault: this needs `fs_list`, and I do not have it",
        ),
        (
            "tell operator: plan a release",
            "operator: I do not make plans",
        ),
    ] {
        let turn = ask(text);
        assert_eq!(turn.rejections, [rejecting], "{text}: {turn:#?}");
        assert_eq!(turn.delegations.len(), 2, "{text}");
        assert!(
            !turn.is_refused() && !turn.answer.is_empty(),
            "{text}: {turn:#?}"
        );
    }
    let turn = ask("ask the planner to list the files");
    assert_eq!(turn.calls, ["operator fs_list ."]);
}
