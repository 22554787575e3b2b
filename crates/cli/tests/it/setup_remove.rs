//! What `lango setup` takes back, through the real binary: a provider with its key, and the selection of a model.

use crate::lango::{Lango, finish};
use crate::models::Provider;
use crate::secrets::PASSPHRASE;
use crate::setup::{KEY, config, keys_file, mode, with_key};
use crate::terminal::Terminal;
use lango_testkit::model::say;
use std::fs;
use std::process::Stdio;

#[test]
fn a_removed_provider_leaves_no_key_and_no_settings_and_other_lines_stay() {
    let provider = Provider::new(vec![say("ok"), say("ok")]);
    let lango = Lango::new();
    let before = "# mine\n[session]\nuser = \"ann\"\n";
    lango.home_file("lango.toml", before);
    let url = provider.server.url();
    let own = ["--provider", "mine", "--base-url", url, "--model", "any"];
    with_key(&lango, KEY, &own).ok();
    let other = ["--provider", "other", "--base-url", url, "--model", "any"];
    with_key(&lango, KEY, &other).ok();
    let ran = lango.run(&["setup", "--remove", "mine"]).ok();
    for part in [
        "removed the key of mine from ",
        "removed providers.mine.baseUrl = ",
        "removed providers.mine.kind = \"openai\" in ",
    ] {
        assert!(ran.stdout.contains(part), "no `{part}` in {ran:#?}");
    }
    assert!(!ran.stdout.contains("agent.model"), "{ran:#?}");
    assert!(!config(&lango).contains("mine]"), "{}", config(&lango));
    let keys = fs::read_to_string(keys_file(&lango)).unwrap();
    assert!(keys.contains("[\"other\"]") || keys.contains("[other]"));
    assert!(!keys.contains("mine"), "the other key stays");
    assert_eq!(mode(&keys_file(&lango)), 0o600);
    let ran = lango.run(&["setup", "--remove", "other"]).ok();
    let model = "removed agent.model = \"other/any\" in ";
    assert!(ran.stdout.contains(model), "{ran:#?}");
    let left = config(&lango);
    assert!(
        left.starts_with(before) && !left.contains("providers"),
        "{left}"
    );
    let ran = lango.run(&["setup", "--remove", "mine"]);
    ran.refused(2, &["`lango setup` has stored nothing for `mine`"]);
    let ran = lango.run(&["setup", "--remove", "mine", "--yes"]).exits(2);
    assert!(ran.stderr.contains("cannot be used with"), "{ran:#?}");
}

#[test]
fn a_removed_provider_loses_the_secret_that_setup_stored_in_the_vault() {
    let provider = Provider::new(vec![say("ok")]);
    let lango = Lango::new();
    crate::secrets::set(&lango, "OTHER", "other-value").ok();
    let url = provider.server.url();
    let with_vault = |arguments: &[&str]| {
        let mut command = lango.command(arguments);
        command
            .env("LANGO_VAULT_PASSPHRASE", PASSPHRASE)
            .stdin(Stdio::piped());
        finish(&mut command, KEY.as_bytes())
    };
    let own = ["setup", "--key-stdin", "--provider", "mine", "--base-url"];
    with_vault(&[&own[..], &[url, "--model", "any"]].concat()).ok();
    let ran = with_vault(&["setup", "--remove", "mine"]).ok();
    let removed = "removed the secret MINE_API_KEY from the vault";
    assert!(ran.stdout.contains(removed), "{ran:#?}");
    assert!(!config(&lango).contains("mine"), "{}", config(&lango));
    let names: Vec<String> = crate::secrets::listed(&lango)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["OTHER"]);
}

#[test]
fn the_demo_can_be_chosen_and_is_never_written_as_the_model() {
    let lango = Lango::new();
    lango.home_file(
        "lango.toml",
        "[agent]\nmodel = \"mine/any\"\nmaxToolCalls = 7\n",
    );
    let mut terminal = Terminal::start(&lango, 120, &["setup"], &[]);
    let list = terminal.wait_for("number, name or URL (");
    let number = list
        .lines()
        .find_map(|line| line.trim().strip_suffix("use the demo (no model)"))
        .unwrap_or_else(|| panic!("the demo is not offered: {list}"));
    terminal.press(&format!("{}\r", number.trim()));
    let (code, last) = terminal.end();
    assert_eq!(code, Some(0), "{last}");
    let removed = "removed agent.model = \"mine/any\" in ";
    assert!(last.contains(removed), "{last}");
    assert_eq!(config(&lango), "[agent]\nmaxToolCalls = 7\n");
    assert_eq!(lango.ask("hello")["offline"], true);
}
