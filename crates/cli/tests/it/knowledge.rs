//! The librarian and the chronicler through the real binary: they find what they saved, with the right names, without
//! an AI model or the network.

use crate::lango::{Lango, field_values, finish_child, of_type, text};
use serde_json::{Value, json};
use std::fs;
use std::process::Stdio;

/// Returns the tools of an agent with these settings, or `None` if there is no such agent.
fn tools(lango: &Lango, flags: &[&str], agent: &str) -> Option<Vec<String>> {
    let flags = flags.iter().flat_map(|flag| ["-c", flag]);
    let arguments: Vec<&str> = flags.chain(["agents", "--json"]).collect();
    let tree = lango.run(&arguments).ok().json();
    let agents = tree["agents"].as_array().unwrap().clone();
    let found = agents.into_iter().find(|found| found["name"] == agent)?;
    let tools = found["tools"].as_array().unwrap().clone();
    Some(tools.iter().map(|tool| text(tool).to_owned()).collect())
}

fn has(tools: &Option<Vec<String>>, name: &str) -> bool {
    tools.iter().flatten().any(|tool| tool == name)
}

/// Asks a question, and returns the answer and the events.
fn ask(lango: &Lango, question: &str) -> (String, Vec<Value>) {
    let summary = lango.ask(question);
    let log = lango.events(text(&summary["session"]));
    (text(&summary["answer"]).to_owned(), log)
}

#[test]
fn k01_the_graph_setting_adds_and_removes_its_tools() {
    let lango = Lango::new();
    for (flag, is_there) in [("graph.enabled=true", true), ("graph.enabled=false", false)] {
        let tools = tools(&lango, &[flag], "librarian");
        for name in ["graph_traverse", "graph_query", "graph_relate"] {
            assert_eq!(has(&tools, name), is_there, "{flag} {name}");
        }
    }
}

#[test]
fn k02_the_retrieval_tool_exists_only_with_an_embedding_provider() {
    let lango = Lango::new();
    assert!(
        has(&tools(&lango, &[], "librarian"), "rag_retrieve"),
        "offline counts"
    );
    let off = tools(&lango, &["embedding.provider=none"], "librarian");
    assert!(!has(&off, "rag_retrieve") && has(&off, "search_knowledge"));
    let broken = ["embedding.provider=model2vec", "embedding.model=/nowhere"];
    assert!(!has(&tools(&lango, &broken, "librarian"), "rag_retrieve"));
    let ran = lango
        .run(&["-c", broken[0], "-c", broken[1], "run", "hello"])
        .ok();
    assert!(ran.stderr.contains("searched by keywords only"), "{ran:#?}");
    let flags = ["-c", broken[0], "-c", broken[1], "knowledge"];
    for command in [&["add", "notes.md"][..], &["reindex"]] {
        let ran = lango.run(&[&flags, command].concat());
        ran.refused(3, &["/nowhere"]);
    }
    let found = lango.run(&[&flags[..], &["search", "--json", "x"]].concat());
    assert!(found.ok().json()["notes"].to_string().contains("/nowhere"));
}

#[test]
fn k03_observational_memory_adds_its_tools_when_enabled() {
    let lango = Lango::new();
    for flag in ["observationalMemory.enabled=true", "graph.enabled=true"] {
        let on = tools(&lango, &[flag], "chronicler");
        assert!(has(&on, "memory_list_observations") && has(&on, "memory_list_reflections"));
    }
    let off = tools(&lango, &["observationalMemory.enabled=false"], "chronicler");
    assert_eq!(off, None, "an agent without tools is skipped");
}

#[test]
fn k04_each_of_the_five_tools_answers_from_stored_data_through_its_agent() {
    let lango = Lango::new();
    ask(&lango, "relate Ada knows Babbage");
    ask(&lango, "relate Babbage built Engine");
    let fact = |line: &str| line.replace("TODAY", &today());
    let (answer, log) = ask(&lango, "what is related to Ada?");
    let walked = "Ada knows Babbage (since TODAY, from librarian)\n\
                  Babbage built Engine (since TODAY, from librarian)\n";
    assert!(answer.starts_with(&fact(walked)), "{answer}");
    assert_eq!(of_type(&log, "tool.called")[0]["tool"], "graph_traverse");
    assert_eq!(of_type(&log, "tool.returned")[0]["author"], "librarian");
    let (answer, log) = ask(&lango, "facts about Babbage");
    let found = "Babbage built Engine (since TODAY, from librarian)";
    assert!(answer.contains(&fact(found)), "{answer}");
    assert_eq!(of_type(&log, "tool.called")[0]["tool"], "graph_query");

    ask(&lango, "note that deploys: happen on Monday");
    let (answer, log) = ask(&lango, "what do you know about deploys?");
    assert!(answer.contains("(from knowledge/deploys)"), "{answer}");
    assert!(answer.contains("happen on Monday"), "{answer}");
    assert_eq!(of_type(&log, "tool.called")[0]["tool"], "rag_retrieve");

    let low = [
        "observationalMemory.messageTokenThreshold=1",
        "observationalMemory.observationTokenThreshold=1",
    ];
    let run = |session: Option<&str>, question: &str| {
        let mut arguments = vec!["-c", low[0], "-c", low[1], "run", "--json"];
        arguments.extend(session.iter().flat_map(|session| ["--session", session]));
        arguments.push(question);
        lango.run(&arguments).ok().json()
    };
    let session = text(&run(None, "hello, my name is Ada and I prefer tea")["session"]).to_owned();
    let answer = run(Some(&session), "list your observations");
    assert!(text(&answer["answer"]).contains("I prefer tea"), "{answer}");
    assert_eq!(answer["author"], "chronicler");
    run(Some(&session), "hello again, my project is called Engine");
    let answer = run(Some(&session), "list your reflections");
    assert!(text(&answer["answer"]).contains("I prefer tea"), "{answer}");
}

/// Returns today's date as facts show it.
fn today() -> String {
    let seconds = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let days = seconds / 86_400;
    // Convert days to a date of the Gregorian calendar.
    let z = days + 719_468;
    let era = z / 146_097;
    let doe = z % 146_097;
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let (day, month) = (
        doy - (153 * mp + 2) / 5 + 1,
        if mp < 10 { mp + 3 } else { mp - 9 },
    );
    let year = yoe + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
}

#[test]
fn a_memory_is_found_in_another_session_and_included_in_its_first_turn() {
    let lango = Lango::new();
    let (answer, log) = ask(&lango, "remember that my editor is helix");
    assert!(answer.contains("Saved as"), "{answer}");
    assert_eq!(
        field_values(&log, "author").last(),
        Some(&"lango-orchestrator")
    );
    let (answer, log) = ask(&lango, "what is my editor?");
    assert!(answer.contains("my editor is helix"), "{answer}");
    let memory = text(&log[0]["settings"]["memory"]);
    assert!(
        memory.contains("helix") && memory.starts_with("<memory>"),
        "{memory}"
    );
    let forget = r#"approval.rules=[{action="allow",tool="memory_forget"}]"#;
    lango.run(&["-c", forget, "run", "forget my editor"]).ok();
    let (answer, log) = ask(&lango, "recall my editor");
    assert!(!answer.contains("helix"), "{answer}");
    assert_eq!(log[0]["settings"]["memory"], Value::Null);
}

#[test]
fn an_ephemeral_run_has_no_memory_and_stores_nothing() {
    let lango = Lango::new();
    let ran = lango.run(&["run", "--ephemeral", "remember that my editor is helix"]);
    let ran = ran.ok();
    assert!(ran.stdout.contains("No agent here can do that"), "{ran:#?}");
    assert!(!lango.home().exists());
}

#[test]
fn a_folder_is_added_searched_updated_and_removed() {
    let lango = Lango::new();
    lango.file("docs/one.md", "# Wings\n\nA swept wing delays the shock.\n");
    lango.file(
        "docs/two.html",
        "<p>Boundary <b>layers</b> grow.</p><script>x()</script>",
    );
    lango.file("docs/broken.pdf", "%PDF-1.4 nothing");
    let added = lango
        .run(&["knowledge", "add", "--json", "docs"])
        .ok()
        .json();
    assert_eq!(
        (&added["added"], &added["skipped"]),
        (&json!(2), &json!(1)),
        "{added}"
    );
    let search = |text: &str| {
        lango
            .run(&["knowledge", "search", "--json", text])
            .ok()
            .json()
    };
    let hits = search("swept wings");
    let hit = &hits["hits"][0];
    assert!(text(&hit["source"]).ends_with("docs/one.md"), "{hits}");
    assert!(hit["id"].is_i64() && hit["score"].is_f64(), "{hits}");
    assert_eq!(hit["trust"], "untrusted");
    for odd in ["?", "\"", "a AND (", "NEAR(x", "*", "ünï"] {
        search(odd);
    }
    lango.file("docs/one.md", "# Wings\n\nA delta wing.\n");
    fs::remove_file(lango.workspace().join("docs/two.html")).unwrap();
    let added = lango
        .run(&["knowledge", "add", "--json", "docs"])
        .ok()
        .json();
    assert_eq!(
        (&added["updated"], &added["removed"]),
        (&json!(1), &json!(1)),
        "{added}"
    );
    assert!(!search("boundary layers").to_string().contains("two.html"));
    lango.run(&["knowledge", "forget", "docs/one.md"]).ok();
    assert!(search("delta")["hits"].as_array().unwrap().is_empty());
    lango
        .run(&["knowledge", "forget", "docs/one.md"])
        .refused(2, &["no document"]);
    lango
        .run(&["knowledge", "add", "nowhere"])
        .refused(2, &["`nowhere` does not exist\n"]);
}

#[test]
fn a_search_prints_where_its_hits_are_and_nothing_if_nothing_matches() {
    let lango = Lango::new();
    lango.file("docs/one.md", "# Wings\n\nSwept wings.\n");
    lango.run(&["knowledge", "add", "docs"]).ok();
    let found = lango.run(&["knowledge", "search", "wings"]).ok().stdout;
    let place = format!("  {}:3 ", lango.workspace().join("docs/one.md").display());
    let score = found.split(&place).next().unwrap();
    assert!(score.parse::<f64>().is_ok(), "{found}");
    let found = lango.run(&["knowledge", "search", "qqqqxyz"]).ok().stdout;
    assert!(found.starts_with("nothing found"), "{found}");
}

#[test]
fn concurrent_additions_run_one_after_the_other() {
    let lango = Lango::new();
    for number in 0..60 {
        lango.file(
            &format!("many/{number}.md"),
            format!("# {number}\n\nSome words.\n"),
        );
    }
    let start = || {
        let mut command = lango.command(&["knowledge", "add", "many"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let both = [start(), start()];
    for child in both {
        finish_child(child, b"").ok();
    }
    let listed = lango.run(&["knowledge", "list", "--json"]).ok().json();
    assert_eq!(listed.as_array().unwrap().len(), 60);
}

#[test]
fn another_embedding_model_is_refused_until_the_library_is_reindexed() {
    let lango = Lango::new();
    lango.run(&["knowledge", "add", "notes.md"]).ok();
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../knowledge/tests/fixtures/model2vec"
    );
    let model = format!("embedding.model={folder}");
    let run = |arguments: &[&str]| {
        let flags = ["-c", "embedding.provider=model2vec", "-c", &model];
        lango.run(&[&flags, arguments].concat())
    };
    let found = run(&["knowledge", "search", "--json", "bread"]).ok().json();
    assert!(
        text(&found["hits"][0]["source"]).ends_with("notes.md"),
        "{found}"
    );
    assert!(found["notes"].to_string().contains("reindex"), "{found}");
    run(&["knowledge", "add", "budget.csv"]).refused(3, &["model2vec", "reindex"]);
    let reindexed = run(&["knowledge", "reindex"]).ok().stdout;
    assert!(reindexed.contains("recomputed"), "{reindexed}");
    run(&["knowledge", "add", "budget.csv"]).ok();
    lango
        .run(&["knowledge", "add", "src"])
        .refused(3, &["offline", "reindex"]);
    let none = ["-c", "embedding.provider=none"];
    let reindex = lango.run(&[none[0], none[1], "knowledge", "reindex"]);
    reindex.refused(3, &["embedding"]);
}

#[test]
fn a_skill_is_written_only_if_allowed_and_is_then_listed() {
    let lango = Lango::new();
    let listed = ask(&lango, "list skills").0;
    assert!(listed.contains("no skills"), "{listed}");
    let tools = tools(&lango, &[], "librarian");
    assert!(has(&tools, "create_skill") && has(&tools, "list_skills"));
}

#[test]
fn the_configured_limits_of_graph_and_memory_are_enforced() {
    let lango = Lango::new();
    ask(&lango, "relate Ada knows Babbage");
    ask(&lango, "relate Babbage built Engine");
    let walk = |flag: &str| {
        let arguments = ["-c", flag, "run", "-q", "what is related to Ada?"];
        lango.run(&arguments).ok().stdout
    };
    assert!(!walk("graph.maxDepth=1").contains("Engine"));
    assert!(!walk("graph.maxResults=1").contains("Engine"));
    assert!(walk("graph.maxDepth=2").contains("Engine"));
    ask(&lango, "remember that my editor is helix");
    let flag = "observationalMemory.contextTokens=1";
    let summary = lango
        .run(&["-c", flag, "run", "--json", "hello"])
        .ok()
        .json();
    let log = lango.events(text(&summary["session"]));
    assert_eq!(
        log[0]["settings"]["memory"],
        Value::Null,
        "there is no room"
    );
}

#[test]
fn skills_are_found_in_additional_folders() {
    let lango = Lango::new();
    let skill = "---\nname: greet\ndescription: Greets.\n---\nHi.\n";
    lango.home_file("more/greet/SKILL.md", skill);
    let flag = format!("skill.dirs={}", lango.home().join("more").display());
    let listed = lango.run(&["-c", &flag, "skills", "--json"]).ok().json();
    assert_eq!(listed["skills"][0]["name"], "greet");
}
