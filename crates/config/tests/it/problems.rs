//! Problems of a configuration, and how they are reported.

use lango_config::ConfigProblem;

use crate::Fixture;

#[test]
fn without_a_home_the_error_names_lango_home() {
    let fixture = Fixture::new().variable("HOME", "");
    assert!(matches!(
        fixture.problems().iter().next(),
        Some(ConfigProblem::NoHome)
    ));
    assert!(fixture.problem_text().contains("set `LANGO_HOME`"));
    fixture.variable("LANGO_HOME", "/somewhere").load();
}

#[test]
fn two_spellings_of_one_variable_are_refused() {
    let fixture = Fixture::new()
        .variable("LANGO_AGENT_MODEL", "a")
        .variable("LANGO_AGENT__MODEL", "b");
    let expected =
        "LANGO_AGENT__MODEL: sets the same key as `LANGO_AGENT_MODEL`; unset one of them";
    assert_eq!(fixture.problem_text(), expected);
}

#[test]
fn an_unknown_key_is_reported_with_its_location_and_the_nearest_key() {
    let fixture = Fixture::new()
        .user_file("[agent]\nmodle = 'x'\n[colour]\nsky = 'blue'\n[agnet]\nmodel = 'x'\n\"agent.model\" = 'x'\n")
        .variable("LANGO_MODEL", "x")
        .flag("agent.max_tool_calls=3");
    let file = "/home/.config/lango/lango.toml";
    let mut lines: Vec<String> = fixture.problem_text().lines().map(Into::into).collect();
    lines.sort();
    let mut expected = vec![
        format!("{file}:2: unknown key `agent.modle`; did you mean `agent.model`?"),
        format!("{file}:4: unknown key `colour.sky`"),
        format!("{file}:6: unknown key `agnet.model`; did you mean `agent.model`?"),
        format!("{file}:7: unknown key `agnet.\"agent.model\"`; did you mean `agent.model`?"),
        "LANGO_MODEL: no key has this environment variable; did you mean `LANGO_AGENT_MODEL`?"
            .into(),
        "-c: unknown key `agent.max_tool_calls`; did you mean `agent.maxToolCalls`?".into(),
    ];
    expected.sort();
    assert_eq!(lines, expected);
}

#[test]
fn a_wrong_value_is_reported_with_expected_value_actual_value_and_location() {
    let cases = [
        (
            "agent.multiAgent = 'yes'",
            "`agent.multiAgent` must be `true` or `false`, found `\"yes\"`",
        ),
        (
            "tools.exec.network = ['http://example.com']",
            "`tools.exec.network` must be `true`, `false` or a list of hosts; `http://example.com` is not a host: leave out the scheme; \
             write `example.com`, `*.example.com`, `host:8080`, `10.0.0.5`, `[::1]:80` or `10.0.0.0/8`, found `[…]`",
        ),
        (
            "agent.maxModelCalls = -1",
            "`agent.maxModelCalls` must be a whole number from 0 to 4294967295, found `-1`",
        ),
        (
            "agent.turnTimeout = 900",
            "`agent.turnTimeout` must be a duration with its unit, such as `900s` or `900ms`, found `900`",
        ),
        (
            "agent.toolTimeout = '5 minutes'",
            "`agent.toolTimeout` must be a duration such as `500ms`, `30s`, `15m`, `2h` or `30d`, found `\"5 minutes\"`",
        ),
        (
            "agent.model = ''",
            "`agent.model` must be text that is not empty, found `\"\"`",
        ),
        (
            "agent.orchestratorTools = 'some'",
            "`agent.orchestratorTools` must be `none` or `all`, found `\"some\"`",
        ),
        (
            "agent.agentsDir = ['a']",
            "`agent.agentsDir` must be a path, found `[…]`",
        ),
        (
            "session.store = 'mysql:x'",
            "`session.store` must be `sqlite:` and the path of a file, or `postgres://user@host/database`, found `\"mysql:x\"`",
        ),
        (
            "session = 5",
            "`session` must be a section: write `[session]` and its keys below, found `5`",
        ),
        (
            "agent.model = {}",
            "`agent.model` must be text that is not empty, found `{…}`",
        ),
    ];
    for (text, expected) in cases {
        let problem_text = Fixture::new().user_file(text).problem_text();
        assert_eq!(
            problem_text,
            format!("/home/.config/lango/lango.toml:1: {expected}"),
            "{text}"
        );
    }
}

#[test]
fn all_problems_of_all_layers_are_reported_together() {
    let fixture = Fixture::new()
        .user_file("agent.multiAgent = 1\nagent.colour = 1\n")
        .project_file("x = = 1\n\ny = \"\n")
        .variable("LANGO_AGENT_MAX_TOOL_CALLS", "many")
        .flag("agent.model");
    let problem_text = fixture.problem_text();
    let lines: Vec<&str> = problem_text.lines().collect();
    assert_eq!(lines.len(), 6, "{problem_text}");
    assert!(lines.contains(
        &"/home/.config/lango/lango.toml:1: `agent.multiAgent` must be `true` or `false`, found `1`"
    ));
    assert!(
        lines.contains(&"/home/.config/lango/lango.toml:2: unknown key `agent.colour`"),
        "{problem_text}"
    );
    assert!(
        lines[2].starts_with("/home/project/lango.toml:1:5: not valid TOML: "),
        "{problem_text}"
    );
    assert!(
        lines[3].starts_with("/home/project/lango.toml:3:"),
        "{problem_text}"
    );
    assert!(
        lines[4]
            .starts_with("LANGO_AGENT_MAX_TOOL_CALLS: `agent.maxToolCalls` must be a whole number")
    );
    assert!(lines[4].ends_with("found `many`"));
    assert!(lines[5].starts_with("-c: `agent.model` is not of the form `key=value`"));
}

#[test]
fn a_long_list_of_problems_is_truncated_with_a_count() {
    let text: String = (0..30).map(|index| format!("x{index} = 1\n")).collect();
    let problem_text = Fixture::new().user_file(&text).problem_text();
    assert_eq!(problem_text.lines().count(), 21);
    assert!(problem_text.ends_with("… and 10 more"));
}

#[test]
fn it_is_a_usage_error_only_if_all_problems_are_in_flags() {
    for flag in [
        "agent.model",
        "=1",
        "agent.modle=x",
        "agent.multiAgent=perhaps",
    ] {
        let fixture = Fixture::new().flag(flag);
        assert!(fixture.problems().is_usage(), "{flag}");
        assert!(
            !fixture.variable("LANGO_X", "1").problems().is_usage(),
            "{flag}"
        );
    }
    assert!(!Fixture::new().user_file("x").problems().is_usage());
}

#[test]
fn an_unreadable_file_is_reported_with_the_cause() {
    let fixture = Fixture::new().file("home/project/lango.toml/inside", "");
    assert_eq!(
        fixture.problem_text(),
        "cannot read `/home/project/lango.toml`: it is not a file"
    );
    let fixture = Fixture::new().user_file(&"#".repeat(70_000));
    assert!(
        fixture
            .problem_text()
            .ends_with("the file is larger than 64 KiB")
    );
}

#[test]
fn no_control_character_of_a_file_reaches_the_terminal() {
    let fixture = Fixture::new()
        .project_file("\"\\u001B[2J\" = 1\nagent.turnTimeout = \"\\u001B]0;x\\u0007\"\n");
    assert!(
        !fixture
            .problem_text()
            .replace('\n', "")
            .contains(char::is_control)
    );
}
