//! Changes to configuration files.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use lango_config::edit::{self, EditError};

use crate::Fixture;

fn file(fixture: &Fixture) -> std::path::PathBuf {
    fixture.path("home/.config/lango/lango.toml")
}

fn set(fixture: &Fixture, key: &str, text: &str) -> Result<(), EditError> {
    let path = file(fixture);
    let value = edit::parse_value(&fixture.process_env, &path, key, text)?;
    edit::set(&path, key, &value).map(|_| ())
}

#[test]
fn a_value_is_read_like_that_of_a_flag_and_takes_effect() {
    let fixture = Fixture::new();
    for (key, text) in [
        ("agent.model", "openai/gpt"),
        ("agent.fallback", "a/b,c/d"),
        ("agent.multiAgent", "false"),
        ("agent.turnTimeout", "90s"),
        ("egress.allow", "[\"10.0.0.5:80\"]"),
        ("providers.mine.kind", "openai"),
    ] {
        set(&fixture, key, text).unwrap();
    }
    let from_file = fixture.load().settings;
    let flags = [
        "agent.model=openai/gpt",
        "agent.fallback=a/b,c/d",
        "agent.multiAgent=false",
        "agent.turnTimeout=90s",
        "egress.allow=[\"10.0.0.5:80\"]",
        "providers.mine.kind=openai",
    ];
    let from_flags = flags.into_iter().fold(Fixture::new(), Fixture::flag);
    assert_eq!(from_file.agent, from_flags.load().settings.agent);
    assert_eq!(from_file.egress, from_flags.load().settings.egress);
    assert_eq!(from_file.providers, from_flags.load().settings.providers);
}

#[test]
fn unknown_keys_and_wrong_values_are_refused_with_what_was_meant() {
    let fixture = Fixture::new();
    let refusal = |key, text| set(&fixture, key, text).unwrap_err().to_string();
    assert_eq!(
        refusal("agent.modle", "x"),
        "there is no key `agent.modle`; did you mean `agent.model`?"
    );
    assert_eq!(
        refusal("agent.multiAgent", "perhaps"),
        "`agent.multiAgent` must be `true` or `false`, found `perhaps`"
    );
    assert!(!file(&fixture).exists());
}

#[test]
fn a_relative_path_means_the_working_folder_and_not_that_of_the_file() {
    let fixture = Fixture::new();
    let own = file(&fixture);
    let parse = |file: &std::path::Path, text| {
        edit::parse_value(&fixture.process_env, file, "tools.exec.read", text).unwrap()
    };
    let absolute = fixture.path("home/project/data");
    assert_eq!(
        parse(&own, "data"),
        vec![absolute.to_str().unwrap().to_owned()].into()
    );
    assert_eq!(parse(&own, "~/data"), "~/data".into());
    let of_project = fixture.path("home/project/lango.toml");
    assert_eq!(parse(&of_project, "data"), "data".into());
}

#[test]
fn the_mode_of_a_file_stays_and_nothing_else_is_left_in_its_folder() {
    let fixture = Fixture::new().user_file("# mine\n[agent]\nmaxCost = 1\n");
    let path = file(&fixture);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    set(&fixture, "agent.maxCost", "2").unwrap();
    edit::unset(&path, "agent.maxCost").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "# mine\n[agent]\n");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn a_link_and_a_file_that_others_can_change_are_refused() {
    let fixture = Fixture::new().file("home/elsewhere.toml", "");
    let path = file(&fixture);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    symlink(fixture.path("home/elsewhere.toml"), &path).unwrap();
    let refused = set(&fixture, "agent.maxCost", "1").unwrap_err();
    assert!(matches!(refused, EditError::Link { .. }), "{refused}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "");
    fs::remove_file(&path).unwrap();
    fs::write(&path, "").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    let refused = set(&fixture, "agent.maxCost", "1").unwrap_err();
    assert!(matches!(refused, EditError::Foreign { .. }), "{refused}");
}

#[test]
fn a_file_that_was_changed_meanwhile_is_not_overwritten() {
    let fixture = Fixture::new().user_file("agent.maxCost = 1\n");
    let path = file(&fixture);
    let refused = edit::replace(&path, Some("agent.maxCost = 0\n"), "").unwrap_err();
    assert!(matches!(refused, EditError::Changed { .. }), "{refused}");
    edit::replace(&path, Some("agent.maxCost = 1\n"), "agent.maxCost = 2\n").unwrap();
    assert_eq!(fixture.load().settings.agent.max_cost, Some(2.0));
}

#[test]
fn changes_at_the_same_time_are_all_stored() {
    let fixture = Fixture::new();
    let path = file(&fixture);
    std::thread::scope(|scope| {
        for number in 0..8 {
            let path = &path;
            scope.spawn(move || {
                let key = format!("providers.p{number}.stream");
                edit::set(path, &key, &false.into()).unwrap();
            });
        }
    });
    assert_eq!(fixture.load().settings.providers.len(), 8);
}

#[test]
fn a_text_is_checked_before_it_is_stored() {
    let fixture = Fixture::new();
    let check = |text| edit::check_text(&fixture.process_env, &file(&fixture), text);
    check("agent.maxCost = 1\n").unwrap();
    let problems = check("agent.maxCost = 1\nagent.modle = 2\n").unwrap_err();
    assert!(problems.to_string().contains("lango.toml:2: unknown key"));
    assert!(check("agent = [").is_err());
}
