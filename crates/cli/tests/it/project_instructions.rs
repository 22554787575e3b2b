//! `AGENTS.md` of a project: who is told it, and only as the user trusted it.

use crate::lango::Lango;
use serde_json::json;
use std::os::unix::fs::symlink;

const HEADING: &str = "## Instructions of this project (AGENTS.md, which the user trusts)";

fn instruction(lango: &Lango, flags: &[&str], agent: &str) -> String {
    let arguments: Vec<&str> = flags
        .iter()
        .copied()
        .chain(["agents", "--instruction", agent])
        .collect();
    lango.run(&arguments).ok().stdout
}

fn is_told(lango: &Lango, flags: &[&str], agent: &str) -> bool {
    instruction(lango, flags, agent).contains(HEADING)
}

#[test]
fn it_is_told_to_operator_and_planner_once_it_is_trusted_and_as_it_was_then() {
    let lango = Lango::new();
    lango.file("AGENTS.md", "Use tabs.\n{{name}} ignores this.\n");
    let path = lango.workspace().join("AGENTS.md").display().to_string();
    let warning = format!(
        "not heard, because these files of the project are not trusted as they are: {path}; read them, then `lango config trust`"
    );
    assert!(!is_told(&lango, &[], "operator"));
    let ran = lango.run(&["run", "hello"]).ok();
    assert_eq!(ran.stderr.matches(&warning).count(), 1, "{}", ran.stderr);

    let trusted = lango.run(&["config", "trust"]).ok().stdout;
    assert_eq!(
        trusted,
        format!(
            "{path} is trusted as it is now; a change has to be trusted again\n  told to operator, planner\n"
        )
    );
    let ran = lango.run(&["run", "hello"]).ok();
    assert!(!ran.stderr.contains("not heard"), "{}", ran.stderr);
    for (flags, agent, told) in [
        (&[][..], "operator", true),
        (&[], "planner", true),
        (&[], "librarian", false),
        (&[], "lango-orchestrator", false),
        (&["-c", "agent.topology=classic"], "executor", true),
        (&["-c", "agent.topology=classic"], "planner", true),
        (&["-c", "agent.topology=classic"], "researcher", false),
        (
            &["-c", "agent.topology=classic"],
            "lango-orchestrator",
            false,
        ),
        (&["-c", "agent.multiAgent=false"], "lango-agent", true),
    ] {
        assert_eq!(is_told(&lango, flags, agent), told, "{flags:?} {agent}");
    }
    let told = instruction(&lango, &[], "operator");
    let expected = format!("{HEADING}\nUse tabs.\n{{{{name}}}} ignores this.\n");
    assert!(told.ends_with(&expected), "{told}");

    lango.file("AGENTS.md", "Use spaces.\n");
    assert!(!is_told(&lango, &[], "operator"), "it was changed");
    let ran = lango.run(&["run", "hello"]).ok();
    assert!(ran.stderr.contains(&warning), "{}", ran.stderr);
    lango.run(&["config", "trust"]).ok();
    assert!(instruction(&lango, &[], "operator").contains("Use spaces."));
    lango.run(&["config", "trust", "--revoke"]).ok();
    assert!(!is_told(&lango, &[], "operator"));
    std::fs::remove_file(lango.workspace().join("AGENTS.md")).unwrap();
    let ran = lango.run(&["run", "hello"]).ok();
    assert!(!ran.stderr.contains("not heard"), "{}", ran.stderr);
}

#[test]
fn more_than_32_kib_of_it_are_cut_with_a_note() {
    let lango = Lango::new();
    let line = "Write a test for everything you do.\n";
    let long = line.repeat(2 * 32 * 1024 / line.len());
    lango.file("AGENTS.md", &long);
    lango.run(&["config", "trust"]).ok();
    let told = instruction(&lango, &[], "operator");
    let (_, told) = told.split_once(HEADING).unwrap();
    assert!(told.len() < 32 * 1024 + 100, "{}", told.len());
    let note = "[AGENTS.md goes on; only its first 32 KiB are shown here]\n";
    assert!(told.ends_with(note), "{}", &told[told.len() - 100..]);
}

#[test]
fn a_link_out_of_the_workspace_is_neither_read_nor_trusted() {
    let lango = Lango::new();
    lango.home_file("secret.txt", "the secret");
    let path = lango.workspace().join("AGENTS.md");
    symlink(lango.home().join("secret.txt"), &path).unwrap();
    let tree = lango.run(&["agents", "--json"]).ok().json();
    assert_eq!(tree["unheard_files"], json!([path]));
    let ran = lango.run(&["config", "trust"]).exits(1);
    assert!(
        ran.stderr
            .contains("AGENTS.md` cannot be trusted: it is a link"),
        "{ran:?}"
    );
    assert!(!is_told(&lango, &[], "operator"));

    // A file that was trusted and is a link now is not followed either.
    std::fs::remove_file(&path).unwrap();
    lango.file("AGENTS.md", "the secret");
    lango.run(&["config", "trust"]).ok();
    assert!(is_told(&lango, &[], "operator"));
    std::fs::remove_file(&path).unwrap();
    symlink(lango.home().join("secret.txt"), &path).unwrap();
    assert!(!is_told(&lango, &[], "operator"));
}

#[test]
fn a_topology_says_which_agents_are_told_it() {
    let lango = Lango::new();
    lango.file("AGENTS.md", "Use tabs.\n");
    lango.home_file(
        "agents/operator.md",
        "---\ndescription: Does it\nprefixes: [fs_]\n---\nDo it.\n",
    );
    lango.home_file(
        "agents/poet.md",
        "---\ndescription: Writes verse\nproject_instructions: true\n---\nRhyme.\n",
    );
    let trusted = lango.run(&["config", "trust"]).ok().stdout;
    assert!(trusted.contains("told to planner, poet"), "{trusted}");
    assert!(is_told(&lango, &[], "poet") && !is_told(&lango, &[], "operator"));
    // Nobody is told, so nothing is asked about it.
    lango.home_file(
        "agents/alone/poet.md",
        "---\ndescription: Writes verse\n---\nRhyme.\n",
    );
    lango.run(&["config", "trust", "--revoke"]).ok();
    let ran = lango
        .run(&["-c", "agent.topology=alone", "run", "hello"])
        .ok();
    assert!(!ran.stderr.contains("AGENTS.md"), "{}", ran.stderr);
}
