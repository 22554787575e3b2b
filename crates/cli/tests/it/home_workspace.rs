//! lango started in the user's home, or in a folder above it.

use crate::lango::{Lango, RunResult, finish, of_type, text};
use crate::models::{Provider, flags};
use lango_testkit::model::{call, delegate_and_finish, say};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const ALLOW: &str = r#"approval.rules=[{action="allow"}]"#;

/// Files in a home that contain secrets or are run by programs.
const DOTFILES: [&str; 9] = [
    ".netrc",
    ".zsh_history",
    ".config/hub",
    ".terraform.d/credentials.tfrc.json",
    ".m2/settings.xml",
    ".bashrc",
    ".zshrc",
    ".vimrc",
    ".xprofile",
];

/// Creates a workspace that is the user's home as well.
fn at_home() -> Lango {
    let lango = Lango::new();
    for path in DOTFILES {
        lango.file(path, "planted-secret\n");
    }
    lango
}

fn run_at_home(lango: &Lango, home: &Path, arguments: &[&str]) -> RunResult {
    finish(lango.command(arguments).env("HOME", home), b"")
}

#[test]
fn in_the_home_commands_see_everything_but_dotfiles() {
    let lango = at_home();
    let home = lango.workspace();
    let line = "cat notes.md .netrc .zsh_history .config/hub .terraform.d/* .m2/*; ls -A; \
                for f in .bashrc .zshrc .vimrc .xprofile; do echo evil > $f; done";
    let question = format!("run `{line}`");
    let ran = run_at_home(&lango, &home, &["-c", ALLOW, "run", &question]).ok();
    assert!(ran.stdout.contains("Buy *bread*"), "{ran:#?}");
    assert!(!ran.stdout.contains("planted-secret"), "{ran:#?}");
    assert_eq!(
        ran.stderr.matches("is your home folder").count(),
        1,
        "{ran:#?}"
    );
    for path in DOTFILES {
        let content = fs::read_to_string(home.join(path)).unwrap();
        assert_eq!(content, "planted-secret\n", "{path}");
    }
}

#[test]
fn in_the_home_file_tools_cannot_access_dotfiles() {
    let lango = at_home();
    let calls: Vec<Value> = DOTFILES
        .iter()
        .map(|path| json!({ "path": path }))
        .chain([json!({ "path": ".new-rc" })])
        .collect();
    let mut replies = vec![delegate_and_finish("operator", "look")];
    replies.extend(
        calls
            .iter()
            .map(|arguments| call("fs_read", arguments.clone())),
    );
    replies.extend(calls.iter().map(|arguments| {
        let path = &arguments["path"];
        call("fs_write", json!({ "path": path, "content": "evil" }))
    }));
    replies.push(call("fs_search", json!({ "pattern": "planted-secret" })));
    replies.push(call("fs_list", json!({})));
    replies.push(say("Done."));
    let provider = Provider::new(replies);
    let mut arguments = vec!["run".to_owned()];
    arguments.extend(flags("openai", provider.server.url()));
    arguments.extend(["-c", ALLOW, "--json", "look"].map(str::to_owned));
    // The home through a symlink.
    let link = lango.home().with_file_name("link-to-home");
    std::os::unix::fs::symlink(lango.workspace(), &link).unwrap();
    let mut command = lango.command(&arguments);
    let ran = finish(command.env("HOME", &link), b"").ok().json();
    let log = lango.events(text(&ran["session"]));
    let returned = of_type(&log, "tool.returned");
    assert_eq!(returned.len(), 2 * calls.len() + 2, "{returned:#?}");
    for event in returned {
        let output = text(&event["output"]);
        assert!(!output.contains("planted-secret\n"), "{output}");
        assert!(!output.contains(".netrc:"), "{output}");
    }
    assert!(!lango.workspace().join(".new-rc").exists());
    for path in DOTFILES {
        let content = fs::read_to_string(lango.workspace().join(path)).unwrap();
        assert_eq!(content, "planted-secret\n", "{path}");
    }
}

#[test]
fn in_the_home_lango_stores_its_files_and_runs_skill_scripts() {
    let lango = at_home();
    let home = lango.workspace();
    let skill = "---\nname: greet\ndescription: Greets.\n---\nSay hello.\n";
    lango.file(".config/lango/skills/greet/SKILL.md", skill);
    lango.file(
        ".config/lango/skills/greet/scripts/hello.sh",
        "#!/bin/sh\necho hello > greeting.txt\ncat .config/hub .config/lango/lango.toml\n",
    );
    lango.file(".config/lango/lango.toml", "# planted-secret\n");
    let provider = Provider::new(vec![
        delegate_and_finish("operator", "greet"),
        call("skill_greet", json!({ "script": "scripts/hello.sh" })),
        say("Greeted."),
    ]);
    let mut arguments = vec!["run".to_owned()];
    arguments.extend(flags("openai", provider.server.url()));
    arguments.extend(["-c", ALLOW, "--json", "greet"].map(str::to_owned));
    let mut command = lango.command(&arguments);
    let ran = finish(command.env_remove("LANGO_HOME").env("HOME", &home), b"").ok();
    let greeting = fs::read_to_string(home.join("greeting.txt"));
    assert_eq!(greeting.ok().as_deref(), Some("hello\n"), "{ran:#?}");
    assert!(home.join(".local/share/lango/lango.db").is_file());
    let requests = provider.server.requests();
    let last = requests.last().unwrap().body.to_string();
    assert!(!last.contains("planted-secret"), "{last}");
}

#[test]
fn a_folder_above_the_home_cannot_be_the_workspace() {
    let lango = Lango::new();
    let home = lango.workspace().join("users/ada");
    fs::create_dir_all(&home).unwrap();
    let above = lango.workspace();
    for folder in [Path::new("/"), &above, &above.join("users")] {
        let mut command = lango.command(&["run", "hello"]);
        let ran = finish(command.env("HOME", &home).current_dir(folder), b"");
        let place = format!("`{}` cannot be a workspace", folder.display());
        ran.refused(2, &[&place, "change to the folder of a project"]);
        let mut doctor = lango.command(&["doctor"]);
        let doctor = finish(doctor.env("HOME", &home).current_dir(folder), b"");
        assert!(
            doctor.exits(3).stdout.contains("✗ workspace      `/"),
            "{folder:?}"
        );
        // Commands that need no workspace work everywhere.
        let mut list = lango.command(&["sessions", "list"]);
        finish(list.env("HOME", &home).current_dir(folder), b"").ok();
    }
    let mut command = lango.command(&["run", "hello"]);
    finish(command.env("HOME", &home).current_dir(&home), b"").ok();
}

#[test]
fn a_git_directory_cannot_be_the_workspace() {
    let lango = Lango::new();
    lango.file("HEAD", "ref: refs/heads/main\n");
    lango.file("objects/x", "");
    lango.file("refs/x", "");
    lango.run(&["run", "hello"]).refused(
        2,
        &["it is the folder of a git repository itself (bare, or `.git`)"],
    );
}
