//! Commands without an action: they list.

use crate::lango::Lango;

const COMMANDS: [&str; 6] = [
    "sessions",
    "memory",
    "mcp",
    "knowledge",
    "tokens",
    "secrets",
];

#[test]
fn a_command_without_an_action_prints_what_its_list_prints() {
    let lango = Lango::new();
    for command in COMMANDS {
        let listed = lango.run(&[command, "list"]).ok();
        let ran = lango.run(&[command]).ok();
        assert_eq!(ran.stdout, listed.stdout, "{command}");
        assert_eq!(ran.stderr, listed.stderr, "{command}");
        let help = lango.run(&[command, "--help"]).ok();
        assert!(help.stdout.contains("Usage: lango "), "{help:#?}");
        lango.run(&[command, "lst"]).exits(2);
    }
}

#[test]
fn config_without_an_action_shows_the_configuration() {
    let lango = Lango::new();
    let shown = lango.run(&["config", "show"]).ok();
    assert_eq!(lango.run(&["config"]).ok().stdout, shown.stdout);
}

#[test]
fn the_list_of_a_command_without_an_action_has_its_entries() {
    let lango = Lango::new();
    let session = lango.session("remember that my editor is helix");
    lango.file("notes.md", "bread\n");
    lango.run(&["knowledge", "add", "notes.md"]).ok();
    lango.run(&["tokens", "create", "laptop"]).ok();
    lango.run(&["mcp", "add", "git", "--", "true"]).ok();
    crate::secrets::set(&lango, "DEPLOY_TOKEN", "a-value-0123").ok();
    let entries = [
        session.as_str(),
        "my editor is helix",
        "git",
        "notes.md",
        "laptop",
        "DEPLOY_TOKEN",
    ];
    for (command, entry) in COMMANDS.into_iter().zip(entries) {
        let ran = lango.run(&[command]);
        let listed = lango.run(&[command, "list"]);
        assert_eq!(ran.code, listed.code, "{ran:#?}");
        assert!(ran.stdout.contains(entry), "{command}: {ran:#?}");
    }
    let ran = lango.run(&["secrets", "--server"]).ok();
    assert!(!ran.stdout.contains("DEPLOY_TOKEN"), "{ran:#?}");
}
