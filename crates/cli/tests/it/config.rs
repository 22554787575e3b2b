//! The configuration, read from real files in a folder of its own, with everything else made up.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lango_cli::config::{
    self, KEYS, Layout, Loaded, OrchestratorTools, Origin, Problem, Problems, StoreLocation,
    Surroundings, Topology,
};
use lango_core::Limits;
use tempfile::TempDir;

/// A home with a project in it.
struct Place {
    root: TempDir,
    surroundings: Surroundings,
}

impl Place {
    fn new() -> Self {
        let root = TempDir::new().unwrap();
        let cwd = root.path().join("home/project");
        fs::create_dir_all(&cwd).unwrap();
        let home = root.path().join("home").into_os_string();
        let env = BTreeMap::from([("HOME".into(), home), ("PATH".into(), "/bin".into())]);
        Self {
            root,
            surroundings: Surroundings {
                env,
                cwd,
                flags: Vec::new(),
            },
        }
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.root.path().join(relative)
    }

    fn file(self, relative: &str, text: &str) -> Self {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn user_file(self, text: &str) -> Self {
        self.file("home/.config/lango/lango.toml", text)
    }

    fn project_file(self, text: &str) -> Self {
        self.file("home/project/lango.toml", text)
    }

    fn variable(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.surroundings.env.insert(name.into(), value.into());
        self
    }

    fn flag(mut self, flag: &str) -> Self {
        self.surroundings.flags.push(flag.into());
        self
    }

    fn load(&self) -> Loaded {
        config::load(&self.surroundings).unwrap_or_else(|problems| panic!("{problems}"))
    }

    fn problems(&self) -> Problems {
        config::load(&self.surroundings).unwrap_err()
    }

    /// The problems as text, with the temporary folder cut out.
    fn complaint(&self) -> String {
        self.problems()
            .to_string()
            .replace(self.root.path().to_str().unwrap(), "")
    }
}

fn origin_of(loaded: &Loaded, name: &str) -> String {
    loaded
        .values
        .iter()
        .find(|value| value.key.name == name)
        .unwrap()
        .origin
        .to_string()
}

#[test]
fn without_files_variables_or_flags_the_defaults_hold_and_nothing_is_created() {
    let place = Place::new();
    let loaded = place.load();
    let agent = &loaded.settings.agent;
    assert!(agent.multi_agent && !agent.strict_tools);
    assert_eq!(agent.topology, Topology::Named("specialists".into()));
    assert_eq!(
        (agent.orchestrator_tools, &agent.model, &agent.agents_dir),
        (None, &None, &None)
    );
    assert_eq!(agent.limits(), Limits::default());
    let database = place.path("home/.local/share/lango/lango.db");
    assert_eq!(
        loaded.settings.session.store,
        StoreLocation::Sqlite(database)
    );
    assert!(
        loaded
            .values
            .iter()
            .all(|value| value.origin == Origin::Default)
    );
    assert_eq!(fs::read_dir(place.path("home")).unwrap().count(), 1);
}

#[test]
fn every_key_can_be_set_and_reaches_its_own_field() {
    let place = Place::new().project_file(
        r#"
        [agent]
        multiAgent = false
        topology = "classic"
        orchestratorTools = "all"
        model = "openai/gpt"
        maxDelegationRounds = 1
        maxModelCalls = 2
        maxToolCalls = 3
        turnTimeout = "4m"
        toolTimeout = "500ms"
        strictTools = true
        agentsDir = "/agents"
        [session]
        store = "sqlite:/other.db"
        "#,
    );
    let loaded = place.load();
    let agent = &loaded.settings.agent;
    assert!(!agent.multi_agent && agent.strict_tools);
    assert_eq!(agent.topology, Topology::Named("classic".into()));
    assert_eq!(agent.orchestrator_tools, Some(OrchestratorTools::All));
    assert_eq!(agent.model.as_deref(), Some("openai/gpt"));
    assert_eq!(agent.agents_dir.as_deref(), Some(Path::new("/agents")));
    assert_eq!(
        agent.limits(),
        Limits {
            rounds: 1,
            model_calls: 2,
            tool_calls: 3,
            turn_ms: 240_000,
            tool_ms: 500
        }
    );
    assert_eq!(
        loaded.settings.session.store,
        StoreLocation::Sqlite("/other.db".into())
    );
    assert_eq!(loaded.values.len(), KEYS.len());
    assert!(
        loaded
            .values
            .iter()
            .all(|value| value.origin != Origin::Default)
    );
}

#[test]
fn zero_delegation_rounds_mean_three() {
    let loaded = Place::new().flag("agent.maxDelegationRounds=0").load();
    assert_eq!(loaded.settings.agent.limits().rounds, 3);
}

#[test]
fn each_layer_overrides_the_weaker_ones_and_is_named_as_the_origin() {
    let mut place = Place::new();
    let mut expect = |change: fn(Place) -> Place, calls: u32, origin: &str| {
        place = change(std::mem::replace(&mut place, Place::new()));
        let loaded = place.load();
        assert_eq!(loaded.settings.agent.max_tool_calls, calls);
        let found = origin_of(&loaded, "agent.maxToolCalls");
        assert_eq!(
            found.replace(place.root.path().to_str().unwrap(), ""),
            origin
        );
    };
    expect(|place| place, 50, "default");
    expect(
        |place| place.user_file("\nagent.maxToolCalls = 1\n"),
        1,
        "/home/.config/lango/lango.toml:2",
    );
    expect(
        |place| place.project_file("[agent]\n\nmaxToolCalls = 2\n"),
        2,
        "/home/project/lango.toml:3",
    );
    expect(
        |place| place.variable("LANGO_AGENT_MAX_TOOL_CALLS", "3"),
        3,
        "LANGO_AGENT_MAX_TOOL_CALLS",
    );
    expect(|place| place.flag("agent.maxToolCalls=4"), 4, "-c");
    expect(|place| place.flag("agent.maxToolCalls=5"), 5, "-c");
}

#[test]
fn the_project_file_is_the_nearest_one_upward() {
    let mut place = Place::new()
        .project_file("agent.model = 'near'")
        .file("home/lango.toml", "agent.model = 'far'");
    place.surroundings.cwd = place.path("home/project/a/b");
    let loaded = place.load();
    assert_eq!(loaded.settings.agent.model.as_deref(), Some("near"));
    assert_eq!(
        loaded.paths.project_file,
        Some(place.path("home/project/lango.toml"))
    );
}

#[test]
fn the_search_for_a_project_file_ends_at_a_repository_and_at_home() {
    let at_home = Place::new().file("home/lango.toml", "agent.model = 'home'");
    assert_eq!(at_home.load().settings.agent.model.as_deref(), Some("home"));
    let in_repository = at_home.file("home/project/.git/HEAD", "");
    assert_eq!(in_repository.load().paths.project_file, None);
    let above_home = Place::new().file("lango.toml", "agent.model = 'above'");
    assert_eq!(above_home.load().paths.project_file, None);
}

#[test]
fn lango_home_moves_everything_into_one_folder() {
    let place = Place::new()
        .user_file("agent.model = 'not read'")
        .file("elsewhere/lango.toml", "agent.model = 'moved'")
        .variable("LANGO_HOME", "../../elsewhere");
    let place = Place {
        surroundings: Surroundings {
            cwd: place.path("home/project"),
            ..place.surroundings
        },
        ..place
    };
    let loaded = place.load();
    assert_eq!(loaded.settings.agent.model.as_deref(), Some("moved"));
    let folder = place.path("home/project/../../elsewhere");
    assert_eq!(loaded.paths.user_file, folder.join("lango.toml"));
    assert_eq!(loaded.paths.database(), folder.join("lango.db"));
    assert_eq!(loaded.paths.chat_history().parent(), Some(&*folder));
}

#[test]
fn xdg_folders_are_used_when_absolute() {
    let place = Place::new()
        .variable("XDG_CONFIG_HOME", "/xdg/config")
        .variable("XDG_DATA_HOME", "/xdg/data")
        .variable("XDG_STATE_HOME", "relative");
    let paths = place.load().paths;
    assert_eq!(paths.user_file, Path::new("/xdg/config/lango/lango.toml"));
    assert_eq!(paths.data, Path::new("/xdg/data/lango"));
    assert_eq!(paths.state, place.path("home/.local/state/lango"));
}

#[test]
fn without_a_home_the_error_names_lango_home() {
    let place = Place::new().variable("HOME", "");
    assert!(matches!(
        place.problems().iter().next(),
        Some(Problem::NoHome)
    ));
    assert!(place.complaint().contains("set `LANGO_HOME`"));
    place.variable("LANGO_HOME", "/somewhere").load();
}

#[test]
fn a_variable_may_be_spelled_with_any_underscores_and_case_and_an_empty_one_says_nothing() {
    let place = Place::new()
        .variable("LANGO_AGENT__MAXTOOLCALLS", "7")
        .variable("LANGO_agent_model", "a/b")
        .variable("LANGO_SESSION_STORE", "")
        .variable("LANGO_LOG", "debug");
    let loaded = place.load();
    assert_eq!(loaded.settings.agent.max_tool_calls, 7);
    assert_eq!(loaded.settings.agent.model.as_deref(), Some("a/b"));
    assert_eq!(
        origin_of(&loaded, "agent.maxToolCalls"),
        "LANGO_AGENT__MAXTOOLCALLS"
    );
    assert_eq!(origin_of(&loaded, "session.store"), "default");
}

#[test]
fn two_spellings_of_one_variable_are_refused() {
    let place = Place::new()
        .variable("LANGO_AGENT_MODEL", "a")
        .variable("LANGO_AGENT__MODEL", "b");
    let expected =
        "LANGO_AGENT__MODEL: sets the same key as `LANGO_AGENT_MODEL`; unset one of them";
    assert_eq!(place.complaint(), expected);
}

#[test]
fn a_flag_needs_no_quotes_but_may_have_them() {
    let place = Place::new()
        .flag("agent.model=offline/rules")
        .flag("agent.turnTimeout=30s")
        .flag("agent.toolTimeout = \"1h\"")
        .flag("agent.multiAgent=false")
        .flag("agent.maxModelCalls=0x10")
        .flag("agent.topology=true");
    let agent = place.load().settings.agent;
    assert_eq!(agent.model.as_deref(), Some("offline/rules"));
    assert_eq!(
        (agent.turn_timeout, agent.tool_timeout),
        (Duration::from_secs(30), Duration::from_secs(3600))
    );
    assert_eq!((agent.multi_agent, agent.max_model_calls), (false, 16));
    assert_eq!(agent.topology, Topology::Named("true".into()));
}

#[test]
fn a_flag_may_hold_an_equals_sign_in_its_value() {
    let loaded = Place::new().flag("agent.model=a=b").load();
    assert_eq!(loaded.settings.agent.model.as_deref(), Some("a=b"));
}

#[test]
fn relative_paths_start_at_the_file_they_stand_in_or_at_the_working_folder() {
    let place = Place::new()
        .user_file("agent.agentsDir = './mine'\nagent.topology = 'team.toml'\n")
        .flag("session.store=sqlite:data/x.db");
    let settings = place.load().settings;
    assert_eq!(
        settings.agent.agents_dir,
        Some(place.path("home/.config/lango/mine"))
    );
    assert_eq!(
        settings.agent.topology,
        Topology::File(place.path("home/.config/lango/team.toml"))
    );
    assert_eq!(
        settings.session.store,
        StoreLocation::Sqlite(place.path("home/project/data/x.db"))
    );
    let settings = place.flag("agent.agentsDir=~/agents").load().settings;
    assert!(settings.agent.agents_dir.unwrap().ends_with("home/agents"));
}

#[test]
fn an_unknown_key_is_named_with_its_place_and_the_nearest_key() {
    let place = Place::new()
        .user_file("[agent]\nmodle = 'x'\n[colour]\nsky = 'blue'\n[agnet]\nmodel = 'x'\n\"agent.model\" = 'x'\n")
        .variable("LANGO_MODEL", "x")
        .flag("agent.max_tool_calls=3");
    let file = "/home/.config/lango/lango.toml";
    let mut lines: Vec<String> = place.complaint().lines().map(Into::into).collect();
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
fn a_wrong_value_says_what_was_expected_what_was_found_and_where() {
    let cases = [
        (
            "agent.multiAgent = 'yes'",
            "`agent.multiAgent` must be `true` or `false`, found `\"yes\"`",
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
            "`agent.toolTimeout` must be a duration such as `500ms`, `30s`, `15m` or `2h`, found `\"5 minutes\"`",
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
            "`session.store` must be `sqlite:` and the path of a file, found `\"mysql:x\"`",
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
        let complaint = Place::new().project_file(text).complaint();
        assert_eq!(
            complaint,
            format!("/home/project/lango.toml:1: {expected}"),
            "{text}"
        );
    }
}

#[test]
fn all_problems_of_all_layers_are_reported_at_once() {
    let place = Place::new()
        .user_file("agent.multiAgent = 1\nagent.colour = 1\n")
        .project_file("x = = 1\n\ny = \"\n")
        .variable("LANGO_AGENT_MAX_TOOL_CALLS", "many")
        .flag("agent.model");
    let complaint = place.complaint();
    let lines: Vec<&str> = complaint.lines().collect();
    assert_eq!(lines.len(), 6, "{complaint}");
    assert!(lines.contains(
        &"/home/.config/lango/lango.toml:1: `agent.multiAgent` must be `true` or `false`, found `1`"
    ));
    assert!(
        lines.contains(&"/home/.config/lango/lango.toml:2: unknown key `agent.colour`"),
        "{complaint}"
    );
    assert!(
        lines[2].starts_with("/home/project/lango.toml:1:5: not valid TOML: "),
        "{complaint}"
    );
    assert!(
        lines[3].starts_with("/home/project/lango.toml:3:"),
        "{complaint}"
    );
    assert!(
        lines[4]
            .starts_with("LANGO_AGENT_MAX_TOOL_CALLS: `agent.maxToolCalls` must be a whole number")
    );
    assert!(lines[4].ends_with("found `many`"));
    assert!(lines[5].starts_with("-c: `agent.model` is not of the form `key=value`"));
}

#[test]
fn a_flood_of_problems_is_cut_short_and_says_so() {
    let text: String = (0..30).map(|index| format!("x{index} = 1\n")).collect();
    let complaint = Place::new().user_file(&text).complaint();
    assert_eq!(complaint.lines().count(), 21);
    assert!(complaint.ends_with("… and 10 more"));
}

#[test]
fn the_command_line_is_to_blame_only_when_nothing_else_is() {
    for flag in [
        "agent.model",
        "=1",
        "agent.modle=x",
        "agent.multiAgent=perhaps",
    ] {
        let place = Place::new().flag(flag);
        assert!(place.problems().is_usage(), "{flag}");
        assert!(
            !place.variable("LANGO_X", "1").problems().is_usage(),
            "{flag}"
        );
    }
    assert!(!Place::new().user_file("x").problems().is_usage());
}

#[test]
fn a_file_that_cannot_be_read_is_named_with_the_cause() {
    let place = Place::new().file("home/project/lango.toml/inside", "");
    assert_eq!(
        place.complaint(),
        "cannot read `/home/project/lango.toml`: Is a directory (os error 21)"
    );
    let place = Place::new().user_file(&"#".repeat(70_000));
    assert!(
        place
            .complaint()
            .ends_with("the file is larger than 64 KiB")
    );
}

#[test]
fn nothing_in_a_file_reaches_the_terminal_as_a_control_character() {
    let place = Place::new()
        .project_file("\"\\u001B[2J\" = 1\nagent.turnTimeout = \"\\u001B]0;x\\u0007\"\n");
    assert!(
        !place
            .complaint()
            .replace('\n', "")
            .contains(char::is_control)
    );
}

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

#[test]
fn json_holds_value_and_origin_of_every_key() {
    let text = config::show(
        &Place::new().flag("agent.maxToolCalls=9").load(),
        Layout::Json,
    );
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json.as_object().unwrap().len(), KEYS.len());
    assert_eq!(json["agent.maxToolCalls"]["value"], 9);
    assert_eq!(json["agent.maxToolCalls"]["origin"], "-c");
    assert!(json["agent.model"]["value"].is_null());
}

#[test]
fn the_process_itself_can_be_looked_at() {
    let surroundings = Surroundings::from_process(vec!["a=b".into()]).unwrap();
    assert!(surroundings.cwd.is_absolute());
    assert_eq!(surroundings.flags, ["a=b"]);
}
