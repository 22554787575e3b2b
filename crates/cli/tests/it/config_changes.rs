//! `lango config get`, `set`, `unset` and `path`: single keys of configuration files.

use crate::lango::{Lango, finish};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

fn user_file(lango: &Lango) -> String {
    fs::read_to_string(lango.home().join("lango.toml")).unwrap()
}

#[test]
fn a_key_is_set_read_and_removed_and_the_rest_of_the_file_stays() {
    let lango = Lango::new();
    let text =
        "# mine\n\n[agent] # all of them\nmaxCost = 1 # dollars\n\n[session]\nuser = \"ann\"\n";
    lango.home_file("lango.toml", text);
    let file = lango.home().join("lango.toml");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let ran = lango.run(&["config", "set", "agent.maxCost", "2.5"]).ok();
    assert_eq!(
        ran.stdout,
        format!("agent.maxCost = 2.5 in {}\n", file.display())
    );
    assert_eq!(ran.stderr, "");
    lango
        .run(&["config", "set", "agent.model", "offline/rules"])
        .ok();
    let changed = text
        .replace("maxCost = 1", "maxCost = 2.5")
        .replace("# dollars\n", "# dollars\nmodel = \"offline/rules\"\n");
    assert_eq!(user_file(&lango), changed);
    let get = |key| lango.run(&["config", "get", key]);
    assert_eq!(get("agent.model").ok().stdout, "offline/rules\n");
    assert_eq!(get("agent.maxCost").ok().stdout, "2.5\n");
    assert_eq!(get("agent.fallback").ok().stdout, "[]\n");
    let json = lango
        .run(&["config", "get", "agent.maxCost", "--json"])
        .ok()
        .json();
    assert_eq!(json["value"], 2.5);
    assert!(
        json["origin"].as_str().unwrap().ends_with("lango.toml:4"),
        "{json}"
    );
    for key in ["agent.model", "agent.maxCost", "session"] {
        lango.run(&["config", "unset", key]).ok();
    }
    get("agent.model").refused(
        1,
        &["`agent.model` is not set", "lango config set agent.model"],
    );
    assert_eq!(user_file(&lango), "# mine\n\n[agent] # all of them\n\n");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn wrong_keys_and_values_are_refused_with_the_nearest_key() {
    let lango = Lango::new();
    let set = |key, value| lango.run(&["config", "set", key, value]);
    set("agent.modle", "x").refused(2, &["`agent.modle`; did you mean `agent.model`?"]);
    set("agent.maxToolCalls", "-1").refused(2, &["`agent.maxToolCalls` must be a whole number"]);
    set("agent.fallback", "[1]").refused(2, &["`agent.fallback` must be a list"]);
    let unset = |key| lango.run(&["config", "unset", key]);
    unset("agent.model").refused(2, &["does not set `agent.model`", "--origin"]);
    unset("agent.modle").refused(2, &["did you mean `agent.model`?"]);
    lango
        .run(&["config", "get", "modle"])
        .refused(2, &["did you mean `agent.model`?"]);
    assert!(!lango.home().join("lango.toml").exists());
    lango.home_file("lango.toml", "agent = [\n");
    set("agent.model", "x").refused(3, &["not valid TOML", "lango config edit"]);
}

#[test]
fn a_misspelled_key_in_the_file_can_be_removed() {
    let lango = Lango::new();
    lango.home_file("lango.toml", "agent.modle = 1\nagent.maxCost = 1\n");
    lango.run(&["config", "unset", "agent.modle"]).ok();
    assert_eq!(user_file(&lango), "agent.maxCost = 1\n");
}

#[test]
fn the_user_is_told_if_another_layer_wins() {
    let lango = Lango::new();
    let mut command = lango.command(&["config", "set", "agent.maxCost", "3"]);
    let ran = finish(command.env("LANGO_AGENT_MAX_COST", "1"), b"").ok();
    assert_eq!(
        ran.stderr,
        "LANGO_AGENT_MAX_COST sets agent.maxCost here, and wins\n"
    );
}

#[test]
fn a_model_without_a_known_provider_is_refused_and_one_that_cannot_be_used_is_reported() {
    let lango = Lango::new();
    let set = |model| lango.run(&["config", "set", "agent.model", model]);
    set("nope").refused(
        2,
        &["`nope` is not the name of a model; write provider/model"],
    );
    set("mine/x").refused(
        2,
        &[
            "there is no provider `mine`",
            "lango setup --provider mine --base-url URL",
        ],
    );
    assert!(!lango.home().join("lango.toml").exists());
    for model in ["offline/rules", "'offline/rules'", "offline"] {
        assert_eq!(set(model).ok().stderr, "");
    }
    let url = "http://127.0.0.1:9/v1";
    for (key, value) in [("kind", "openai"), ("baseUrl", url)] {
        let key = format!("providers.mine.{key}");
        lango.run(&["config", "set", &key, value]).ok();
    }
    assert_eq!(set("mine/x").ok().stderr, "");
    // Whether the model can be used is another question.
    let ran = set("groq/any").ok();
    assert!(
        ran.stderr.contains("warning: `groq` has no key"),
        "{ran:#?}"
    );
}

#[test]
fn a_link_and_a_file_that_others_can_change_are_left_alone() {
    let lango = Lango::new();
    lango.home_file("elsewhere.toml", "");
    let file = lango.home().join("lango.toml");
    symlink(lango.home().join("elsewhere.toml"), &file).unwrap();
    let set = || lango.run(&["config", "set", "agent.maxCost", "1"]);
    set().refused(2, &["is a link to"]);
    assert!(file.is_symlink());
    fs::remove_file(&file).unwrap();
    fs::write(&file, "").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    set().refused(2, &["other users can change", "chmod"]);
    assert_eq!(user_file(&lango), "");
}

#[test]
fn the_path_of_each_file_is_printed_also_before_it_exists() {
    let lango = Lango::new();
    let ran = lango.run(&["config", "path"]).ok();
    assert_eq!(
        ran.stdout,
        format!("{}/lango.toml\n", lango.home().display())
    );
    assert_eq!(ran.stderr, "it does not exist yet\n");
    lango.file("lango.toml", "");
    let below = lango.workspace().join("src");
    let mut command = lango.command(&["config", "path", "--project"]);
    let ran = finish(command.current_dir(below), b"").ok();
    assert_eq!(
        ran.stdout,
        format!("{}/lango.toml\n", lango.workspace().display())
    );
    assert_eq!(ran.stderr, "");
}

#[test]
fn a_project_file_that_the_user_made_or_trusts_stays_trusted() {
    let lango = Lango::new();
    let set = |key, value| lango.run(&["config", "set", "--project", key, value]);
    let model = || lango.run(&["config", "get", "agent.model"]);
    set("agent.model", "offline/rules").ok();
    assert_eq!(model().ok().stdout, "offline/rules\n");
    set("agent.maxCost", "1").ok();
    assert_eq!(model().ok().stdout, "offline/rules\n");
    lango
        .run(&["config", "unset", "--project", "agent.maxCost"])
        .ok();
    assert_eq!(model().ok().stdout, "offline/rules\n");
    let text = fs::read_to_string(lango.workspace().join("lango.toml")).unwrap();
    assert_eq!(text, "[agent]\nmodel = \"offline/rules\"\n");
}

#[test]
fn an_untrusted_project_file_gets_no_key_that_it_may_not_set() {
    let lango = Lango::new();
    lango.file("lango.toml", "agent.topology = 'classic'\n");
    let set = |key, value| lango.run(&["config", "set", "--project", key, value]);
    let refused = set("agent.model", "offline/rules");
    refused.refused(2, &["would be ignored", "lango config trust"]);
    // Lowering a limit needs no trust, and gives none to the rest of the file.
    let ran = set("agent.maxToolCalls", "7").ok();
    assert!(ran.stderr.contains("the file is not trusted"), "{ran:#?}");
    let shown = lango.run(&["config", "get", "agent.maxToolCalls"]).ok();
    assert_eq!(shown.stdout, "7\n");
    let topology = lango.run(&["config", "get", "agent.topology"]).ok();
    assert_eq!(topology.stdout, "specialists\n");
}

#[test]
fn a_rule_that_matches_nothing_is_named_when_it_is_set() {
    let lango = Lango::new();
    let set = |rules| lango.run(&["config", "set", "approval.rules", rules]).ok();
    let ran = set("[{action=\"deny\",tool=\"fs_wrte\"}]");
    assert!(
        ran.stderr
            .contains("matches no agent or tool; is a name misspelt?"),
        "{ran:#?}"
    );
    let ran = set("[{action=\"deny\",tool=\"fs_write\"}]");
    assert_eq!(ran.stderr, "");
}
