//! A question without `run`, unknown commands, and flags that stand for configuration keys.

use crate::lango::Lango;

#[test]
fn a_first_argument_with_white_space_runs_one_turn() {
    let lango = Lango::new();
    let asked = lango.run(&["what files are here?"]).ok();
    assert!(asked.stdout.contains("notes.md"), "{asked:#?}");
    let asked = lango.run(&["--json", "--ephemeral", "what files are here?"]);
    assert_eq!(asked.ok().json()["outcome"], "answered");
    let asked = lango.run(&["-c", "agent.maxToolCalls=5", "-q", "hello there", "you"]);
    assert_eq!(asked.ok().stderr, "");
    let listed = lango.run(&["sessions", "list", "--json"]).ok().json();
    assert_eq!(listed[0]["title"], "hello there you");
    assert_eq!(listed.as_array().unwrap().len(), 2);
}

#[test]
fn an_unknown_command_is_an_error_that_names_the_nearest_one() {
    let lango = Lango::new();
    let refused = lango.run(&["sesions"]);
    refused.refused(
        2,
        &[
            "`sesions`",
            "did you mean `sessions`?",
            "`lango run sesions`",
        ],
    );
    let refused = lango.run(&["tell", "me", "more"]);
    refused.refused(
        2,
        &["there is no command `tell`", "`lango \"tell me more\"`"],
    );
    lango.run(&["sessions", "lst"]).exits(2);
    assert!(!lango.home().exists());
}

#[test]
fn the_flag_for_the_model_is_accepted_everywhere_and_wins() {
    let lango = Lango::new();
    lango.home_file("lango.toml", "agent.model = 'openai/gpt-6.1-sol'\n");
    for arguments in [
        &["-m", "offline/rules", "config", "get", "agent.model"][..],
        &["config", "get", "agent.model", "--model", "offline/rules"],
        &[
            "-c",
            "agent.model=x/y",
            "config",
            "get",
            "agent.model",
            "-m",
            "offline/rules",
        ],
    ] {
        assert_eq!(lango.run(arguments).ok().stdout, "offline/rules\n");
    }
    let ran = lango.run(&["run", "--json", "-m", "offline/rules", "hello"]);
    assert_eq!(ran.ok().json()["model"], "offline/rules");
}

#[test]
fn the_flag_for_plain_output_sets_its_key() {
    let lango = Lango::new();
    let plain = |arguments: &[&str]| {
        let arguments = [&["config", "get", "ui.plain"], arguments].concat();
        lango.run(&arguments).ok().stdout
    };
    assert_eq!(plain(&[]), "false\n");
    assert_eq!(plain(&["--plain"]), "true\n");
    lango.run(&["--plain", "run", "hello"]).ok();
}
