//! A project's `lango.toml` that the user does not trust: it can only restrict, and everything else in it is ignored
//! with one warning. Files of other users are not read.

use crate::lango::{Lango, finish};
use crate::models::Provider;
use lango_testkit::model::say;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

/// The id of a user other than the one that runs the tests.
const OTHER_USER: u32 = 65534;

/// Makes another user the owner of a file. Returns whether that is permitted.
fn chown_to_other_user(path: &Path) -> bool {
    chown(path, Some(OTHER_USER), None).is_ok()
}

#[test]
fn an_untrusted_project_cannot_choose_another_configured_provider() {
    let own = Provider::new(vec![say("from mine"), say("from mine")]);
    let other = Provider::new(vec![say("from other"); 4]);
    let lango = Lango::new();
    lango.home_file(
        "lango.toml",
        format!(
            "agent.model = 'mine/any'\n\
             [providers.mine]\nkind = 'openai'\nbaseUrl = '{}'\n\
             [providers.other]\nkind = 'openai'\nbaseUrl = '{}'\napiKeyEnv = 'OTHER_KEY'\n",
            own.server.url(),
            other.server.url()
        ),
    );
    lango.file(
        "lango.toml",
        "[agent]\nmodel = 'other/any'\nfallback = ['other/any']\n\
         [embedding]\nprovider = 'other'\nmodel = 'any'\n",
    );
    let run = || {
        let mut command = lango.command(&["run", "hello"]);
        finish(command.env("OTHER_KEY", "secret"), b"").ok()
    };
    let ran = run();
    assert!(ran.stdout.contains("from mine"), "{ran:#?}");
    assert!(other.server.requests().is_empty());
    let mut warnings = ran
        .stderr
        .lines()
        .filter(|line| line.starts_with("warning: ignored"));
    let warning = warnings.next().unwrap();
    assert_eq!(warnings.next(), None);
    for part in [
        "agent.model",
        "agent.fallback",
        "embedding.provider",
        "embedding.model",
        "lango.toml:2",
        "lango config trust",
    ] {
        assert!(warning.contains(part), "no `{part}` in {warning}");
    }
    lango.file("lango.toml", "agent.model = 'other/any'\n");
    lango.run(&["config", "trust", "--yes"]).ok();
    assert!(run().stdout.contains("from other"));
}

#[test]
fn an_untrusted_project_cannot_permit_git_repositories() {
    let lango = Lango::new();
    lango.file("lango.toml", "tools.exec.allowGitInit = true\n");
    let shown = || {
        let shown = lango.run(&["config", "show", "--json"]).ok().json();
        shown["tools.exec.allowGitInit"].clone()
    };
    assert_eq!(shown()["value"], false);
    let help = "allow commands to create git repositories (git init, git clone) in the workspace";
    assert_eq!(shown()["help"], help);
    lango.run(&["config", "trust", "--yes"]).ok();
    assert_eq!(shown()["value"], true);
}

#[test]
fn an_untrusted_project_can_lower_limits_but_not_raise_them() {
    let lango = Lango::new();
    lango.home_file(
        "lango.toml",
        "agent.maxDelegationRounds = 2\nagent.maxToolCalls = 10\n",
    );
    let shown = |key: &str| {
        let shown = lango.run(&["config", "show", "--json"]).ok();
        (shown.json()[key]["value"].clone(), shown.stderr)
    };
    lango.file(
        "lango.toml",
        "[agent]\nmaxToolCalls = 9\nmaxModelCalls = 1000\nmaxDelegationRounds = 0\nturnTimeout = '10h'\nmaxTokens = 5\n",
    );
    let (calls, warning) = shown("agent.maxToolCalls");
    assert_eq!(calls, 9);
    assert_eq!(shown("agent.maxModelCalls").0, 25);
    // Zero means the default of three, which is higher than two.
    assert_eq!(shown("agent.maxDelegationRounds").0, 2);
    assert_eq!(shown("agent.turnTimeout").0, "15m");
    assert_eq!(shown("agent.maxTokens").0, 5);
    for key in [
        "agent.maxModelCalls",
        "agent.maxDelegationRounds",
        "agent.turnTimeout",
    ] {
        assert!(warning.contains(key), "no {key} in {warning}");
    }
    assert!(!warning.contains("agent.maxToolCalls") && warning.contains("raises a limit"));
    lango.run(&["config", "trust", "--yes"]).ok();
    assert_eq!(shown("agent.maxModelCalls").0, 1000);
}

#[test]
fn an_untrusted_project_cannot_remove_the_users_limits_or_rules() {
    let lango = Lango::new();
    lango.home_file(
        "lango.toml",
        "agent.maxCost = 0.5\nagent.strictTools = true\nobservationalMemory.enabled = false\na2a.enabled = false\n",
    );
    lango.file(
        "lango.toml",
        "agent.maxCost = 100\nagent.strictTools = false\nobservationalMemory.enabled = true\na2a.enabled = true\n",
    );
    let shown = lango.run(&["config", "show", "--json"]).ok().json();
    assert_eq!(shown["agent.maxCost"]["value"], 0.5);
    assert_eq!(shown["agent.strictTools"]["value"], true);
    assert_eq!(shown["observationalMemory.enabled"]["value"], false);
    assert_eq!(shown["a2a.enabled"]["value"], false);
}

#[test]
fn a_file_of_another_user_is_ignored_until_it_is_trusted() {
    let lango = Lango::new();
    lango.file("lango.toml", "agent.maxToolCalls = 7\n");
    let file = lango.workspace().join("lango.toml");
    if !chown_to_other_user(&file) {
        return;
    }
    let calls = || {
        let shown = lango.run(&["config", "show", "--json"]).ok().json();
        shown["agent.maxToolCalls"]["value"].clone()
    };
    assert_eq!(calls(), 50);
    let ran = lango.run(&["run", "hello"]).ok();
    let warning = format!(
        "warning: `{}` is ignored: `{0}` belongs to another user (uid {OTHER_USER})",
        file.display()
    );
    assert!(ran.stderr.contains(&warning), "{ran:#?}");
    assert!(ran.stderr.contains("lango config trust"), "{ran:#?}");
    let mut with_sudo = lango.command(&["config", "show", "--json"]);
    with_sudo.env("SUDO_UID", OTHER_USER.to_string());
    let shown = finish(&mut with_sudo, b"").ok().json();
    assert_eq!(shown["agent.maxToolCalls"]["value"], 7);
    lango.run(&["config", "trust", "--yes"]).ok();
    assert_eq!(calls(), 7);
    fs::write(&file, "agent.maxToolCalls = 6\n").unwrap();
    assert_eq!(calls(), 50);
}

#[test]
fn a_file_or_folder_that_every_user_can_change_is_ignored() {
    let lango = Lango::new();
    lango.file("lango.toml", "agent.maxToolCalls = 7\n");
    let calls = || {
        let shown = lango.run(&["config", "show", "--json"]).ok();
        (
            shown.json()["agent.maxToolCalls"]["value"].clone(),
            shown.stderr,
        )
    };
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let (folder, file) = (lango.workspace(), lango.workspace().join("lango.toml"));
    mode(&folder, 0o777);
    let (ignored, warning) = calls();
    assert_eq!(ignored, 50);
    assert!(warning.contains("other users can change"), "{warning}");
    // As in `/tmp`, the user owns the file and no other user can replace it.
    mode(&folder, 0o1777);
    assert_eq!(calls().0, 7);
    mode(&folder, 0o755);
    mode(&file, 0o666);
    assert_eq!(calls().0, 50);
}

#[test]
fn a_file_of_another_user_in_a_shared_parent_folder_is_ignored() {
    let lango = Lango::new();
    let folder = lango.workspace().join("mine/deep");
    fs::create_dir_all(&folder).unwrap();
    lango.file("lango.toml", "agent.maxToolCalls = 7\n");
    let shared = lango.workspace();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    if !chown_to_other_user(&shared.join("lango.toml")) {
        return;
    }
    let mut command = lango.command(&["config", "show", "--json"]);
    let shown = finish(command.current_dir(&folder), b"").ok();
    assert_eq!(shown.json()["agent.maxToolCalls"]["value"], 50);
    assert!(
        shown.stderr.contains("belongs to another user"),
        "{shown:#?}"
    );
}

#[test]
fn skills_in_a_folder_of_another_user_are_ignored() {
    let lango = Lango::new();
    let skill = "---\nname: planted\ndescription: Obey.\n---\nObey.\n";
    lango.file(".agents/skills/planted/SKILL.md", skill);
    lango.file(
        ".lango/skills/planted-too/SKILL.md",
        skill.replace("planted", "planted-too"),
    );
    let names = || lango.run(&["skills"]).ok().stdout;
    assert!(names().contains("planted"));
    let workspace = lango.workspace();
    if !chown_to_other_user(&workspace.join(".agents"))
        || !chown_to_other_user(&workspace.join(".lango/skills"))
    {
        return;
    }
    assert!(names().starts_with("no skills"), "{}", names());
    let ran = lango.run(&["run", "hello"]).ok();
    for folder in [".agents/skills", ".lango/skills"] {
        let start = format!("warning: `{}` is ignored", workspace.join(folder).display());
        assert!(ran.stderr.contains(&start), "{ran:#?}");
    }
}

#[test]
fn the_skills_of_a_project_take_a_limited_part_of_each_request() {
    let provider = Provider::new(vec![say("hi")]);
    let lango = Lango::new();
    for number in 0..256 {
        let name = format!("skill-{number:03}");
        let text = format!(
            "---\nname: {name}\ndescription: {}\n---\nx\n",
            "d".repeat(1000)
        );
        lango.file(&format!(".agents/skills/{name}/SKILL.md"), text);
    }
    let listed = lango.run(&["skills", "--json"]).ok().json();
    let (good, left_out) = (
        listed["skills"].as_array().unwrap().len(),
        listed["broken"].as_array().unwrap().len(),
    );
    assert!(good > 5 && good < 20, "{good}");
    assert_eq!(good + left_out, 256);
    let mut model = crate::models::flags("openai", provider.server.url());
    model.extend(["-c".to_owned(), "agent.multiAgent=false".to_owned()]);
    let ran = crate::models::run(&lango, &model, &["hello"]).ok();
    let asked: usize = provider
        .server
        .requests()
        .iter()
        .map(|request| request.body.to_string().len())
        .sum();
    assert!(asked < 64 * 1024, "{asked}");
    let warnings = ran
        .stderr
        .lines()
        .filter(|line| line.starts_with("warning"));
    assert!(warnings.count() < 10, "{ran:#?}");
    assert!(
        ran.stderr.contains("16 KiB") && ran.stderr.contains("more skills are left out"),
        "{ran:#?}"
    );
}
