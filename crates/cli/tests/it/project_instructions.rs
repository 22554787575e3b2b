//! `AGENTS.md` of a project: which agents get it, and only with the content that the user trusted.

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

fn gets_agents_md(lango: &Lango, flags: &[&str], agent: &str) -> bool {
    instruction(lango, flags, agent).contains(HEADING)
}

#[test]
fn agents_md_reaches_operator_and_planner_only_with_trusted_content() {
    let lango = Lango::new();
    lango.file("AGENTS.md", "Use tabs.\n{{name}} ignores this.\n");
    let path = lango.workspace().join("AGENTS.md").display().to_string();
    let warning = format!(
        "ignored because the current content of these project files is not trusted: {path}; read them, then run `lango config trust`"
    );
    assert!(!gets_agents_md(&lango, &[], "operator"));
    let ran = lango.run(&["run", "hello"]).ok();
    assert_eq!(ran.stderr.matches(&warning).count(), 1, "{}", ran.stderr);

    let trusted = lango.run(&["config", "trust", "--yes"]).ok().stdout;
    assert_eq!(
        trusted,
        format!(
            "{path} is trusted with its current content; trust it again after a change\n  given to operator, planner\n"
        )
    );
    let ran = lango.run(&["run", "hello"]).ok();
    assert!(!ran.stderr.contains("ignored because"), "{}", ran.stderr);
    for (flags, agent, shown) in [
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
        assert_eq!(
            gets_agents_md(&lango, flags, agent),
            shown,
            "{flags:?} {agent}"
        );
    }
    let shown = instruction(&lango, &[], "operator");
    let expected = format!("{HEADING}\nUse tabs.\n{{{{name}}}} ignores this.\n");
    assert!(shown.ends_with(&expected), "{shown}");

    lango.file("AGENTS.md", "Use spaces.\n");
    assert!(!gets_agents_md(&lango, &[], "operator"), "it was changed");
    let ran = lango.run(&["run", "hello"]).ok();
    assert!(ran.stderr.contains(&warning), "{}", ran.stderr);
    lango.run(&["config", "trust", "--yes"]).ok();
    assert!(instruction(&lango, &[], "operator").contains("Use spaces."));
    lango.run(&["config", "trust", "--revoke"]).ok();
    assert!(!gets_agents_md(&lango, &[], "operator"));
    std::fs::remove_file(lango.workspace().join("AGENTS.md")).unwrap();
    let ran = lango.run(&["run", "hello"]).ok();
    assert!(!ran.stderr.contains("ignored because"), "{}", ran.stderr);
}

#[test]
fn agents_md_is_cut_at_32_kib_with_a_note() {
    let lango = Lango::new();
    let line = "Write a test for everything you do.\n";
    let long = line.repeat(2 * 32 * 1024 / line.len());
    lango.file("AGENTS.md", &long);
    lango.run(&["config", "trust", "--yes"]).ok();
    let shown = instruction(&lango, &[], "operator");
    let (_, shown) = shown.split_once(HEADING).unwrap();
    assert!(shown.len() < 32 * 1024 + 100, "{}", shown.len());
    let note = "[AGENTS.md continues; only its first 32 KiB are shown here]\n";
    assert!(shown.ends_with(note), "{}", &shown[shown.len() - 100..]);
}

#[test]
fn a_symlink_out_of_the_workspace_is_neither_read_nor_trusted() {
    let lango = Lango::new();
    lango.home_file("secret.txt", "the secret");
    let path = lango.workspace().join("AGENTS.md");
    symlink(lango.home().join("secret.txt"), &path).unwrap();
    let tree = lango.run(&["agents", "--json"]).ok().json();
    assert_eq!(tree["unheard_files"], json!([path]));
    let ran = lango.run(&["config", "trust", "--yes"]).exits(1);
    assert!(
        ran.stderr
            .contains("AGENTS.md` cannot be trusted: it is a link"),
        "{ran:?}"
    );
    assert!(!gets_agents_md(&lango, &[], "operator"));

    // A trusted file that is a symlink now is not followed either.
    std::fs::remove_file(&path).unwrap();
    lango.file("AGENTS.md", "the secret");
    lango.run(&["config", "trust", "--yes"]).ok();
    assert!(gets_agents_md(&lango, &[], "operator"));
    std::fs::remove_file(&path).unwrap();
    symlink(lango.home().join("secret.txt"), &path).unwrap();
    assert!(!gets_agents_md(&lango, &[], "operator"));
}

#[test]
fn a_topology_decides_which_agents_get_agents_md() {
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
    let trusted = lango.run(&["config", "trust", "--yes"]).ok().stdout;
    assert!(trusted.contains("given to planner, poet"), "{trusted}");
    assert!(gets_agents_md(&lango, &[], "poet") && !gets_agents_md(&lango, &[], "operator"));
    // No agent gets the file, so there is no warning about it.
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
