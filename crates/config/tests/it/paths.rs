//! Where files and folders are: the search for the project file, the user's folders, and relative paths.

use std::path::Path;

use lango_config::{ProcessEnv, StoreLocation, TopologyChoice};

use crate::Fixture;

#[test]
fn the_project_file_is_the_nearest_one_upward() {
    let mut fixture = Fixture::new()
        .project_file("agent.maxToolCalls = 1")
        .file("home/lango.toml", "agent.maxToolCalls = 2");
    fixture.process_env.cwd = fixture.path("home/project/a/b");
    let loaded = fixture.load();
    assert_eq!(loaded.settings.agent.max_tool_calls, 1);
    assert_eq!(
        loaded.paths.project_file,
        Some(fixture.path("home/project/lango.toml"))
    );
}

#[test]
fn the_search_for_a_project_file_ends_at_a_repository_and_at_home() {
    let at_home = Fixture::new().file("home/lango.toml", "agent.maxToolCalls = 1");
    assert_eq!(at_home.load().settings.agent.max_tool_calls, 1);
    let in_repository = at_home.file("home/project/.git/HEAD", "");
    assert_eq!(in_repository.load().paths.project_file, None);
    let above_home = Fixture::new().file("lango.toml", "agent.model = 'above'");
    assert_eq!(above_home.load().paths.project_file, None);
    // The home through a symlink.
    let link = above_home.path("link");
    std::os::unix::fs::symlink(above_home.path("home"), &link).unwrap();
    let by_link = above_home.variable("HOME", link);
    assert_eq!(by_link.load().paths.project_file, None);
}

#[test]
fn lango_home_puts_everything_into_one_folder() {
    let fixture = Fixture::new()
        .user_file("agent.model = 'not read'")
        .file("elsewhere/lango.toml", "agent.model = 'moved'")
        .variable("LANGO_HOME", "../../elsewhere");
    let fixture = Fixture {
        process_env: ProcessEnv {
            cwd: fixture.path("home/project"),
            ..fixture.process_env
        },
        ..fixture
    };
    let loaded = fixture.load();
    assert_eq!(loaded.settings.agent.model.as_deref(), Some("moved"));
    let folder = fixture.path("home/project/../../elsewhere");
    assert_eq!(loaded.paths.user_file, folder.join("lango.toml"));
    assert_eq!(loaded.paths.database(), folder.join("lango.db"));
    assert_eq!(loaded.paths.chat_history().parent(), Some(&*folder));
}

#[test]
fn in_lango_home_the_users_file_is_not_a_project_file() {
    let fixture = Fixture::new().project_file("agent.model = 'x'");
    let folder = fixture.process_env.cwd.clone();
    let paths = fixture.variable("LANGO_HOME", folder.clone()).load().paths;
    assert_eq!(
        (paths.user_file, paths.project_file),
        (folder.join("lango.toml"), None)
    );
}

#[test]
fn xdg_folders_are_used_when_absolute() {
    let fixture = Fixture::new()
        .variable("XDG_CONFIG_HOME", "/xdg/config")
        .variable("XDG_DATA_HOME", "/xdg/data")
        .variable("XDG_STATE_HOME", "relative");
    let paths = fixture.load().paths;
    assert_eq!(paths.user_file, Path::new("/xdg/config/lango/lango.toml"));
    assert_eq!(paths.data, Path::new("/xdg/data/lango"));
    assert_eq!(paths.state, fixture.path("home/.local/state/lango"));
}

#[test]
fn relative_paths_are_relative_to_their_file_or_to_the_working_folder() {
    let fixture = Fixture::new()
        .user_file("agent.agentsDir = './mine'\nagent.topology = 'team.toml'\n")
        .flag("session.store=sqlite:data/x.db");
    let settings = fixture.load().settings;
    assert_eq!(
        settings.agent.agents_dir,
        Some(fixture.path("home/.config/lango/mine"))
    );
    assert_eq!(
        settings.agent.topology,
        TopologyChoice::File(fixture.path("home/.config/lango/team.toml"))
    );
    assert_eq!(
        settings.session.store,
        StoreLocation::Sqlite(fixture.path("home/project/data/x.db"))
    );
    assert!(!format!("{settings:?}").contains("/./"));
    let settings = fixture.flag("agent.agentsDir=~/agents").load().settings;
    assert!(settings.agent.agents_dir.unwrap().ends_with("home/agents"));
}
