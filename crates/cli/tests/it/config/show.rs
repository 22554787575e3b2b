//! What `lango config show` prints.

use lango_cli::config::{self, KEYS, Layout};

use super::Place;

#[test]
fn what_is_shown_is_toml_that_means_the_same() {
    let place = Place::new()
        .flag("agent.model=a \"quoted\" \\ model")
        .flag("agent.turnTimeout=90s")
        .flag("agent.topology=./mine.toml")
        .flag("agent.agentsDir=agents");
    let loaded = place.load();
    let text = config::show(&loaded, Layout::Toml);
    assert!(
        text.contains("\nagent.turnTimeout = \"90s\"\n")
            && text.contains("\n# agent.orchestratorTools is not set\n")
    );
    let again = Place::new().user_file(&text).load();
    assert_eq!(again.settings, loaded.settings);
}

#[test]
fn origins_are_shown_in_a_column() {
    let place = Place::new()
        .user_file("agent.strictTools = true\n")
        .flag("agent.model=x");
    let text = config::show(&place.load(), Layout::Origins)
        .replace(place.root.path().to_str().unwrap(), "");
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

/// Keys without a part that the person chooses.
fn plain_keys() -> usize {
    KEYS.iter().filter(|key| !key.name.contains('<')).count()
}

#[test]
fn json_holds_value_and_origin_of_every_key() {
    let text = config::show(
        &Place::new().flag("agent.maxToolCalls=9").load(),
        Layout::Json,
    );
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json.as_object().unwrap().len(), plain_keys());
    assert_eq!(json["agent.maxToolCalls"]["value"], 9);
    assert_eq!(json["agent.maxToolCalls"]["origin"], "-c");
    assert!(json["agent.model"]["value"].is_null());
}
