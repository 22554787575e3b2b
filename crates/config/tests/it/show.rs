//! The output of `lango config show`.

use lango_config::{KEYS, Layout};

use crate::Fixture;

#[test]
fn the_shown_configuration_is_equivalent_toml() {
    let fixture = Fixture::new()
        .flag("agent.model=a \"quoted\" \\ model")
        .flag("agent.turnTimeout=90s")
        .flag("agent.topology=./mine.toml")
        .flag("agent.agentsDir=agents");
    let loaded = fixture.load();
    let text = lango_config::show(&loaded, Layout::Toml);
    assert!(
        text.contains("\nagent.turnTimeout = \"90s\"\n")
            && text.contains("\n# agent.orchestratorTools is not set\n")
    );
    let again = Fixture::new().user_file(&text).load();
    assert_eq!(again.settings, loaded.settings);
}

#[test]
fn origins_are_shown_in_a_column() {
    let fixture = Fixture::new()
        .user_file("agent.strictTools = true\n")
        .flag("agent.model=x");
    let text = lango_config::show(&fixture.load(), Layout::Origins)
        .replace(fixture.root.path().to_str().unwrap(), "");
    let column = text.lines().next().unwrap().find("default").unwrap();
    let origin = |name: &str| &text.lines().find(|line| line.contains(name)).unwrap()[column..];
    assert_eq!(origin("agent.multiAgent = true "), "default");
    assert_eq!(
        origin("agent.strictTools = true "),
        "/home/.config/lango/lango.toml:1"
    );
    assert_eq!(origin("agent.model = \"x\" "), "-c");
    assert_eq!(origin("# agent.agentsDir is not set "), "default");
}

/// Counts the keys without a part that the user chooses.
fn plain_keys() -> usize {
    KEYS.iter().filter(|key| !key.name.contains('<')).count()
}

#[test]
fn json_contains_value_and_origin_of_every_key() {
    let text = lango_config::show(
        &Fixture::new().flag("agent.maxToolCalls=9").load(),
        Layout::Json,
    );
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json.as_object().unwrap().len(), plain_keys());
    assert_eq!(json["agent.maxToolCalls"]["value"], 9);
    assert_eq!(json["agent.maxToolCalls"]["origin"], "-c");
    assert!(json["agent.model"]["value"].is_null());
}
