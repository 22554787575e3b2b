//! `lango mcp add` and `remove`: servers in the user's configuration file.

use crate::lango::{Lango, finish};
use crate::mcp::install_server;
use std::fs;

fn user_file(lango: &Lango) -> String {
    fs::read_to_string(lango.home().join("lango.toml")).unwrap_or_default()
}

#[test]
fn an_added_program_is_configured_and_can_be_tested() {
    let lango = Lango::new();
    lango.home_file("lango.toml", "# mine\nagent.maxCost = 1\n");
    let shown = lango.run(&["mcp", "list"]).ok().stdout;
    assert!(shown.contains("`lango mcp add`"), "{shown}");
    let keys = install_server(&lango);
    let table: toml::Table = keys.parse().unwrap();
    let words = table["command"].as_array().unwrap().iter();
    let words: Vec<&str> = words.map(|word| word.as_str().unwrap()).collect();
    let folder = table["read"][0].as_str().unwrap();
    let flags = [
        "mcp",
        "add",
        "toy",
        "--env",
        "LEVEL=debug",
        "--agent",
        "navigator",
    ];
    let added = [&flags, &["--read", folder, "--"][..], &words[..]].concat();
    let ran = lango.run(&added).ok();
    assert!(
        ran.stdout.contains("next: `lango mcp test toy`"),
        "{ran:#?}"
    );
    assert!(ran.stderr.contains("no network access"), "{ran:#?}");
    assert!(user_file(&lango).starts_with("# mine\nagent.maxCost = 1\n\n[mcp.servers.toy]\n"));
    let tested = lango.run(&["mcp", "test", "toy", "--json"]).ok().json();
    assert_eq!(
        (&tested[0]["id"], &tested[0]["ok"]),
        (&"toy".into(), &true.into())
    );
    let listed = lango.run(&["mcp", "list"]).ok().stdout;
    assert!(listed.contains("toy_echo  navigator  "), "{listed}");
    let refused = lango.run(&added);
    refused.refused(2, &["already an MCP server `toy`", "--force"]);
    let replaced = [
        "mcp",
        "add",
        "toy",
        "--force",
        "--network",
        "*",
        "--",
        "/bin/other",
    ];
    lango.run(&replaced).ok();
    let file = user_file(&lango);
    assert!(
        file.contains("command = [\"/bin/other\"]\nnetwork = true"),
        "{file}"
    );
    assert!(!file.contains("LEVEL"), "{file}");
    lango.run(&["mcp", "remove", "toy"]).ok();
    assert_eq!(user_file(&lango).trim_end(), "# mine\nagent.maxCost = 1");
    lango
        .run(&["mcp", "remove", "toy"])
        .refused(2, &["there is no MCP server `toy`"]);
}

#[test]
fn a_program_whose_file_the_sandbox_hides_is_explained() {
    let lango = Lango::new();
    let table: toml::Table = install_server(&lango).parse().unwrap();
    let words = table["command"].as_array().unwrap().iter();
    let words: Vec<&str> = words.map(|word| word.as_str().unwrap()).collect();
    lango
        .run(&[&["mcp", "add", "toy", "--"], &words[..]].concat())
        .ok();
    let tested = lango.run(&["mcp", "test", "toy"]).exits(3);
    assert!(
        tested
            .stdout
            .contains("add the server again with --force and --read FOLDER"),
        "{tested:#?}"
    );
    let listed = lango.run(&["mcp", "list"]).ok().stdout;
    assert!(listed.contains("no successful connection yet"), "{listed}");
}

#[test]
fn the_operator_gets_the_tools_of_a_server_and_a_test_warns_if_no_agent_owns_them() {
    let lango = Lango::new();
    let table: toml::Table = install_server(&lango).parse().unwrap();
    let words = table["command"].as_array().unwrap().iter();
    let words: Vec<&str> = words.map(|word| word.as_str().unwrap()).collect();
    let folder = table["read"][0].as_str().unwrap();
    let add = [&["mcp", "add", "toy", "--read", folder, "--"], &words[..]].concat();
    let added = lango.run(&add).ok();
    assert!(
        added.stderr.contains("belong to the agent `operator`"),
        "{added:#?}"
    );
    let tested = lango.run(&["mcp", "test", "toy"]).ok();
    assert!(!tested.stderr.contains("no agent owns"), "{tested:#?}");
    let listed = lango.run(&["mcp", "list"]).ok().stdout;
    assert!(listed.contains("toy_echo  operator  "), "{listed}");
    lango
        .run(&["config", "unset", "mcp.servers.toy.agent"])
        .ok();
    for command in [&["mcp", "test", "toy"][..], &["mcp", "list"]] {
        let ran = lango.run(command).ok();
        for part in [
            "no agent owns these tools",
            "`lango config set mcp.servers.toy.agent operator`",
        ] {
            assert!(ran.stderr.contains(part), "{ran:#?}");
        }
    }
}

#[test]
fn without_an_operator_adding_a_server_names_the_agents_to_choose_from() {
    let lango = Lango::new();
    let topology = ["-c", "agent.topology=classic"];
    let added = [&topology[..], &["mcp", "add", "toy", "--", "toy"]].concat();
    let added = lango.run(&added).ok();
    let hint = "no agent owns its tools yet; run `lango config set mcp.servers.toy.agent NAME` with one of ";
    assert!(added.stderr.contains(hint), "{added:#?}");
    assert!(!user_file(&lango).contains("agent"), "{added:#?}");
}

#[test]
fn a_remote_server_gets_the_name_of_its_token_and_never_the_token() {
    let lango = Lango::new();
    let url = "https://tracker.example/mcp";
    let add = |more: &[&str]| lango.run(&[&["mcp", "add", "t", "--url", url], more].concat());
    add(&["--header", "Authorization: Bearer abc123"])
        .refused(2, &["plain text", "lango secrets set"]);
    add(&["--header", "X-Key: $KEY"]).refused(2, &["`X-Key`", "lango mcp login"]);
    add(&["--header", "Authorization: Bearer $TRACKER_TOKEN"]).ok();
    let file = user_file(&lango);
    let expected = format!(
        "[mcp.servers.t]\nurl = \"{url}\"\ntokenEnv = \"TRACKER_TOKEN\"\nagent = \"operator\"\n"
    );
    assert_eq!(file, expected);
    add(&["--force", "--token-env", "secret:TRACKER"]).ok();
    assert!(user_file(&lango).contains("tokenEnv = \"secret:TRACKER\""));
    // What belongs to programs does not belong to addresses.
    add(&["--force", "--env", "A=b"]).exits(2);
    lango.run(&["mcp", "add", "nothing"]).exits(2);
}

#[test]
fn secrets_and_wrong_servers_are_refused_and_the_file_stays_as_it_was() {
    let lango = Lango::new();
    let add = |arguments: &[&str]| lango.run(&[&["mcp", "add"], arguments].concat());
    add(&["db", "--env", "DB_PASSWORD=hunter2", "--", "db"]).refused(
        2,
        &[
            "`DB_PASSWORD`",
            "lango secrets set DB_PASSWORD",
            "secret:DB_PASSWORD",
        ],
    );
    add(&["a.b", "--", "x"]).refused(2, &["`a.b`", "32 letters"]);
    add(&["web", "--url", "ftp://x"]).refused(3, &["nothing was added", "http"]);
    add(&["env", "--env", "1X=2", "--", "x"]).refused(2, &["mcp.servers.env.env"]);
    assert!(!lango.home().join("lango.toml").exists());
    lango.home_file("lango.toml", "agent.maxCost = 1\n");
    add(&["web", "--url", "ftp://x"]).exits(3);
    assert_eq!(user_file(&lango), "agent.maxCost = 1\n");
    let secret = ["db", "--env", "DB_PASSWORD", "--env", "K=secret:K"];
    let refused = add(&[&secret, &["--", "db"][..]].concat());
    refused.refused(3, &["nothing was added", "network"]);
    add(&[&secret, &["--network", "db.example", "--", "db"][..]].concat()).ok();
    let file = user_file(&lango);
    assert!(
        file.contains("env = [\"DB_PASSWORD\", \"K=secret:K\"]"),
        "{file}"
    );
    let ran = add(&[
        "pg",
        "--",
        "postgres-mcp",
        "postgres://me:hunter2@db.example/x",
    ])
    .ok();
    assert!(
        ran.stderr.contains("contains what looks like a secret"),
        "{ran:#?}"
    );
    assert!(!format!("{ran:?}").contains("hunter2"), "{ran:#?}");
    let ran = add(&["js", "--", "node", "notes.md"]).ok();
    assert!(ran.stderr.contains("will not find `notes.md`"), "{ran:#?}");
}

#[test]
fn a_program_that_does_not_exist_is_named_when_it_is_added_and_when_it_is_tested() {
    let lango = Lango::new();
    let added = lango
        .run(&["mcp", "add", "ghost", "--", "no-such-cmd"])
        .ok();
    let warning = "warning: there is no program `no-such-cmd`; install it";
    assert!(added.stderr.contains(warning), "{added:#?}");
    let tested = lango.run(&["mcp", "test", "ghost"]).exits(3);
    let problem = "there is no program `no-such-cmd` in /usr/local/sbin:";
    assert!(tested.stdout.contains(problem), "{tested:#?}");
    // One that only the user's own PATH has.
    let own = lango.workspace().join("own-cmd");
    fs::write(&own, "").unwrap();
    let mut command = lango.command(&["mcp", "add", "own", "--", "own-cmd"]);
    let path = format!("{}:/usr/bin:/bin", lango.workspace().display());
    let added = finish(command.env("PATH", path), b"").ok();
    assert!(
        added
            .stderr
            .contains(&format!("name it as {}", own.display())),
        "{added:#?}"
    );
}
