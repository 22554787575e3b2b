//! Trust in a project's agent files, which are instructions from a folder that may have been cloned.

use crate::lango::{Lango, text};
use serde_json::{Value, json};
use std::fs;

const SCOUT: &str = "---\ndescription: Looks around\nprefixes: [fs_]\n---\nLook.\n";

fn tree(lango: &Lango) -> Value {
    lango.run(&["agents", "--json"]).ok().json()
}

fn source(lango: &Lango, agent: &str) -> Option<String> {
    let tree = tree(lango);
    let mut agents = tree["agents"].as_array().unwrap().iter();
    let found = agents.find(|found| found["name"] == agent)?;
    Some(text(&found["source"]).to_owned())
}

fn in_project(lango: &Lango, file: &str) -> String {
    let path = lango.workspace().join(".lango/agents").join(file);
    path.display().to_string()
}

#[test]
fn t18_a_projects_agents_are_used_only_with_trusted_content() {
    let lango = Lango::new();
    lango.file(".lango/agents/scout.md", SCOUT);
    let path = in_project(&lango, "scout.md");
    let unheard = |files: Value| {
        assert_eq!(tree(&lango)["unheard_files"], files);
    };
    assert_eq!(source(&lango, "scout"), None);
    unheard(json!([path]));
    let warning = format!(
        "ignored because the current content of these project files is not trusted: {path}; read them, then run `lango config trust`"
    );
    assert!(lango.run(&["agents"]).ok().stdout.contains(&warning));
    for arguments in [&["run", "hello"][..], &["config", "check"]] {
        let ran = lango.run(arguments).ok();
        assert!(ran.stderr.contains(&warning), "{ran:#?}");
    }

    let trusted = lango.run(&["config", "trust", "--yes"]).ok().stdout;
    let expected = format!(
        "{path} is trusted with its current content; trust it again after a change\n  \
         the agent `scout`: Looks around\n  owns the tools that start with fs_\n"
    );
    assert_eq!(trusted, expected);
    assert_eq!(source(&lango, "scout"), Some(path.clone()));
    unheard(json!([]));

    // Another file and a change are not covered by the trust.
    lango.file(".lango/agents/other.md", SCOUT);
    assert_eq!(
        (source(&lango, "scout"), source(&lango, "other")),
        (Some(path.clone()), None)
    );
    lango.file(
        ".lango/agents/scout.md",
        SCOUT.replace("Look.", "Look away."),
    );
    assert_eq!(source(&lango, "scout"), None);
    unheard(json!([in_project(&lango, "other.md"), path]));
    lango.run(&["config", "trust", "--yes"]).ok();
    unheard(json!([]));
    lango.run(&["config", "trust", "--revoke"]).ok();
    unheard(json!([in_project(&lango, "other.md"), path]));
}

#[test]
fn t18_the_trust_list_at_its_former_path_is_valid_until_a_new_one_is_written() {
    let lango = Lango::new();
    lango.file(".lango/agents/scout.md", SCOUT);
    lango.run(&["config", "trust", "--yes"]).ok();
    let (now, former) = (
        lango.home().join("trust/trusted.json"),
        lango.home().join("trusted.json"),
    );
    fs::rename(&now, &former).unwrap();
    assert_eq!(tree(&lango)["unheard_files"], json!([]));
    lango.run(&["config", "trust", "--revoke"]).ok();
    assert!(now.exists() && !former.exists());
    let path = in_project(&lango, "scout.md");
    assert_eq!(tree(&lango)["unheard_files"], json!([path]));
}

#[test]
fn t18_a_projects_agent_replaces_the_users_only_if_it_is_trusted() {
    let lango = Lango::new();
    lango.home_file("agents/scout.md", SCOUT);
    lango.home_file("agents/zebra.md", "---\ndescription: Stripes\n---\nStripe.");
    lango.file(
        ".lango/agents/scout.md",
        SCOUT.replace("Looks around", "Looks here"),
    );
    lango.file(
        ".lango/agents/ant.md",
        "---\ndescription: Small\n---\nCrawl.",
    );
    let mine = lango.home().join("agents/scout.md").display().to_string();
    assert_eq!(source(&lango, "scout"), Some(mine));
    lango.run(&["config", "trust", "--yes"]).ok();
    assert_eq!(
        source(&lango, "scout"),
        Some(in_project(&lango, "scout.md"))
    );
    let tree = tree(&lango);
    let names: Vec<&str> = tree["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| text(&a["name"]))
        .collect();
    assert_eq!(
        names[names.len() - 3..],
        ["scout", "zebra", "ant"],
        "yours first, each by its name"
    );
}

#[test]
fn t18_broken_files_and_symlinks_of_an_untrusted_project_neither_stop_lango_nor_are_trusted() {
    let lango = Lango::new();
    lango.file(".lango/agents/scout.md", "---\ncolour: red\n---\n");
    lango.run(&["run", "hello"]).ok();
    let place = format!(
        "{}:2: unknown field `colour`",
        in_project(&lango, "scout.md")
    );
    lango
        .run(&["config", "trust", "--yes"])
        .refused(3, &[&place]);
    assert!(
        lango
            .run(&["agents"])
            .ok()
            .stdout
            .contains("ignored because"),
        "the trust was not kept"
    );

    lango.home_file("secret.md", SCOUT);
    let folder = lango.workspace().join(".lango/agents");
    std::fs::remove_file(folder.join("scout.md")).unwrap();
    std::os::unix::fs::symlink(lango.home().join("secret.md"), folder.join("scout.md")).unwrap();
    assert_eq!(source(&lango, "scout"), None);
    let ran = lango.run(&["config", "trust", "--yes"]).exits(1);
    assert!(
        ran.stderr
            .contains("scout.md` cannot be trusted: it is a link"),
        "{ran:#?}"
    );

    // A folder that is a symlink is ignored.
    lango.file("elsewhere/scout.md", SCOUT);
    std::fs::remove_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink(lango.workspace().join("elsewhere"), &folder).unwrap();
    assert_eq!(source(&lango, "scout"), None);
    assert_eq!(tree(&lango)["unheard_files"], json!([folder]));
}

#[test]
fn a_project_without_files_has_nothing_to_trust() {
    let ran = Lango::new().run(&["config", "trust", "--yes"]);
    ran.refused(2, &["there is no lango.toml", ".lango/agents"]);
}

#[test]
fn t18_an_untrusted_project_cannot_name_agents_in_other_folders() {
    let lango = Lango::new();
    lango.file("crew/scout.md", SCOUT);
    for (key, agents) in [("agent.agentsDir", "crew"), ("agent.topology", "./crew")] {
        lango.file("lango.toml", format!("{key} = '{agents}'\n"));
        assert_eq!(source(&lango, "scout"), None, "{key}");
        let ran = lango.run(&["run", "hello"]).ok();
        assert!(
            ran.stderr.contains(key) && ran.stderr.contains("lango config trust"),
            "{ran:#?}"
        );
        let trusted = lango.run(&["config", "trust", "--yes"]).ok().stdout;
        for part in [
            &format!("now in effect: {key}"),
            "crew/scout.md is trusted",
            "the agent `scout`",
        ] {
            assert!(trusted.contains(part), "no `{part}` in {trusted}");
        }
        assert!(source(&lango, "scout").is_some(), "{key}");
        lango.file(
            "crew/scout.md",
            SCOUT.replace("Look.", &format!("Look at {key}.")),
        );
        let changed = lango.run(&["agents"]);
        match key {
            "agent.topology" => {
                let named = "crew/scout.md` belongs to the topology that the project's file names, and its current content is not trusted";
                changed.refused(3, &[named, "lango config trust"]);
            }
            _ => assert_eq!(source(&lango, "scout"), None, "{:#?}", changed),
        }
        lango.run(&["config", "trust", "--yes"]).ok();
        assert!(source(&lango, "scout").is_some(), "{key}");
        lango.run(&["config", "trust", "--revoke"]).ok();
    }
    // The choice of built-in agents is the user's too.
    lango.file("lango.toml", "agent.topology = 'classic'\n");
    assert_eq!(tree(&lango)["topology"], "specialists");
    lango.run(&["config", "trust", "--yes"]).ok();
    assert_eq!(tree(&lango)["topology"], "classic");
}
