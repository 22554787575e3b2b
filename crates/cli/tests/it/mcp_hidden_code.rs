//! Commands of MCP servers that hide agent-written code or a package without a version, through the real binary.

use crate::lango::Lango;
use crate::mcp_starts::{is_stolen, planted_code};

/// Configures a server with this command and these variables. Asserts that `lango mcp test` refuses it, and returns its
/// output.
fn assert_refused(lango: &Lango, command: &str, env: &str) -> String {
    lango.home_file(
        "lango.toml",
        format!("[mcp.servers.toy]\ncommand = [{command}]\nenv = [{env}]\nagent = 'vault'\n"),
    );
    let ran = lango.run(&["mcp", "test"]);
    assert!(!is_stolen(lango), "{command}: {ran:#?}");
    ran.exits(3).stdout
}

#[test]
fn agent_written_code_hidden_inside_an_argument_does_not_run() {
    for command in [
        "'sh', '-c', 'exec python3 {workspace}/server.py'",
        "'python3', '-c', 'import sys; sys.path.insert(0, \"{workspace}\"); import server'",
        "'python3', '-c', 'import sys; exec(open(sys.argv[1][4:]).read())', '--a=b={workspace}/server.py'",
        "'perl', '-I{workspace}/lib', '-MServer', '-e', '1'",
    ] {
        let lango = Lango::new();
        lango.file("server.py", planted_code(&lango));
        let shown = assert_refused(&lango, command, "");
        assert!(
            shown.contains("at a place where lango cannot pin it"),
            "{command}: {shown}"
        );
        assert!(
            shown.contains("list the whole argument in mcp.servers.toy.data"),
            "{shown}"
        );
    }
}

#[test]
fn agent_written_code_is_not_loaded_through_a_variable() {
    let run = "'bash', '-c', 'true'";
    for (command, env, name) in [
        (run, "'BASH_ENV={workspace}/run.sh'", "BASH_ENV"),
        (
            "'env', 'BASH_ENV={workspace}/run.sh', 'bash', '-c', 'true'",
            "",
            "BASH_ENV",
        ),
        (
            run,
            "'NODE_OPTIONS=--require={workspace}/x.js'",
            "NODE_OPTIONS",
        ),
        (run, "'LD_PRELOAD={workspace}/x.so'", "LD_PRELOAD"),
        (
            run,
            "'GIT_CONFIG_GLOBAL={workspace}/config'",
            "GIT_CONFIG_GLOBAL",
        ),
    ] {
        let lango = Lango::new();
        let mark = lango.workspace().canonicalize().unwrap().join("stolen");
        lango.file("run.sh", format!("echo x > '{}'\n", mark.display()));
        let shown = assert_refused(&lango, command, env);
        let expected = format!("remove that path from {name}");
        assert!(shown.contains(&expected), "{command}: {shown}");
    }
}

#[test]
fn a_package_runner_in_an_unusual_form_downloads_nothing_without_a_version() {
    for (command, expected) in [
        (
            "'npm', '--prefix', '/opt', 'exec', 'pkg'",
            "`pkg` has no exact version",
        ),
        (
            "'env', '-u', 'X', 'npx', 'pkg'",
            "`pkg` has no exact version",
        ),
        ("'env', '-S', 'npx pkg'", "`pkg` has no exact version"),
        ("'nice', 'npx', 'pkg'", "`pkg` has no exact version"),
        ("'npm', 'init', 'pkg'", "`pkg` has no exact version"),
        (
            "'pnpm', '--dir', '/opt', 'dlx', 'pkg'",
            "`pkg` has no exact version",
        ),
        (
            "'uv', '--directory', '/opt', 'tool', 'run', 'pkg'",
            "`pkg` has no exact version",
        ),
        (
            "'uv', 'run', '--with', 'pkg', 'cmd'",
            "`pkg` has no exact version",
        ),
        ("'deno', 'run', 'npm:pkg'", "`pkg` has no exact version"),
        (
            "'uvx', '-wevil', 'pkg==1.2.3'",
            "`evil` has no exact version",
        ),
        (
            "'npx', '--pack', 'evil', 'pkg@1.2.3'",
            "write `npx NAME@1.2.3`",
        ),
        (
            "'yarn', 'workspace', 'a', 'dlx', 'pkg'",
            "write `yarn dlx NAME@1.2.3`",
        ),
    ] {
        let shown = assert_refused(&Lango::new(), command, "");
        assert!(shown.contains(expected), "{command}: {shown}");
    }
}
