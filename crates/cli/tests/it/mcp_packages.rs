//! MCP servers through the real binary: packages that are downloaded when a server first starts, and tools that run
//! only as tasks.

use crate::lango::{Lango, RunResult, of_type, text};
use crate::mcp::install_server;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// A package runner that pretends to download into the cache below `HOME` for three seconds, unless the package is
/// cached; then it starts the scripted server.
const RUNNER: &str = r#"#!/bin/sh
cache="$HOME/.npm/_npx"
[ "$npm_config_prefer_offline" = true ] || exit 9
if [ ! -e "$cache/server.py" ]; then
    sleep 3
    mkdir -p "$cache" && cp "$(dirname "$0")/server.py" "$cache/server.py"
    echo download >> "$HOME/downloads"
fi
exec python3 "$cache/server.py" --log log
"#;

/// Creates a home with the server `toy`, which `npx` starts. A start may take two seconds.
fn with_package() -> Lango {
    let lango = Lango::new();
    install_server(&lango);
    let folder = lango
        .home()
        .with_file_name("installed")
        .canonicalize()
        .unwrap();
    let runner = folder.join("npx");
    fs::write(&runner, RUNNER).unwrap();
    fs::set_permissions(&runner, fs::Permissions::from_mode(0o755)).unwrap();
    let (folder, runner) = (folder.display(), runner.display());
    lango.home_file(
        "lango.toml",
        format!(
            "[mcp]\nstartTimeout = '2s'\n[mcp.servers.toy]\ncommand = ['{runner}', '-y', 'toy@1.0.0']\n\
             read = ['{folder}']\nagent = 'navigator'\n"
        ),
    );
    lango
}

fn private_path(lango: &Lango, name: &str) -> PathBuf {
    lango.home().join("mcp-servers/toy").join(name)
}

fn test(lango: &Lango) -> RunResult {
    lango.run(&["mcp", "test", "toy"])
}

#[test]
fn a_package_is_downloaded_once_into_the_servers_cache_and_the_first_start_may_take_long() {
    let lango = with_package();
    let ran = test(&lango).ok();
    assert!(ran.stdout.contains("toy_echo"), "{}", ran.stdout);
    let progress = "MCP server `toy`: first start; downloading its package may take up to 120 s";
    assert!(ran.stderr.contains(progress), "{}", ran.stderr);
    // The next start finds the package in the cache, and has the usual timeout.
    let ran = test(&lango).ok();
    assert!(!ran.stderr.contains("first start"), "{}", ran.stderr);
    let downloads = fs::read_to_string(private_path(&lango, "downloads")).unwrap();
    assert_eq!(downloads, "download\n");
    fs::remove_dir_all(private_path(&lango, ".npm")).unwrap();
    let ran = test(&lango);
    let printed = format!("{}{}", ran.stdout, ran.stderr);
    assert!(printed.contains("did not answer within 2 s"), "{printed}");
}

#[test]
fn commands_of_agents_can_neither_read_nor_write_the_packages_of_a_server() {
    let lango = with_package();
    test(&lango).ok();
    let file = private_path(&lango, ".npm/_npx/server.py");
    assert!(file.exists());
    let allow = r#"approval.rules=[{action="allow",tool="exec"}]"#;
    let command = format!("cat {0}; echo x > {0}; echo it ran", file.display());
    let before = fs::read(&file).unwrap();
    let question = format!("run `{command}`");
    // Even if the folder around it is open to commands.
    let open = format!("tools.exec.write=[\"{}\"]", lango.home().display());
    let arguments = ["run", "--json", &question, "-c", allow, "-c", &open];
    let ran = lango.run(&arguments).ok();
    let events = lango.events(text(&ran.json()["session"]));
    let returned = format!("{:?}", of_type(&events, "tool.returned"));
    assert!(returned.contains("it ran"), "{returned}");
    assert!(!returned.contains("A scripted MCP server"), "{returned}");
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[test]
fn a_tool_that_runs_only_as_a_task_is_not_offered_and_mcp_test_says_why() {
    let lango = Lango::new();
    let command = install_server(&lango);
    let command = command.trim_end_matches(']');
    lango.home_file(
        "lango.toml",
        format!("[mcp.servers.toy]\n{command}, '--tasks']\nagent = 'navigator'\n"),
    );
    let tested = test(&lango).ok();
    let why = "the tool `long` is left out: it runs only as a task, which lango does not support";
    assert!(tested.stdout.contains(why), "{}", tested.stdout);
    let listed = lango.run(&["mcp", "list"]).ok().stdout;
    assert!(listed.contains("toy_either"), "{listed}");
    assert!(!listed.contains("toy_long"), "{listed}");
}
