//! Things that must not leave the process: keys in memory, secrets in URLs, control characters on a terminal, and
//! unnecessary warnings.

use crate::lango::{Lango, finish};
use crate::models::{Provider, flags};
use lango_testkit::model::{call, delegate_and_finish, say};
use serde_json::json;
use std::fs;
use std::process::Stdio;

#[test]
fn the_process_leaves_no_core_dump_and_other_users_cannot_read_its_memory() {
    let lango = Lango::new();
    // Run as another user, so that the owner of its files in /proc shows whether it can be dumped.
    let is_root = rustix::process::geteuid().is_root();
    let mut command = std::process::Command::new("setpriv");
    lango.prepare(&mut command);
    if is_root {
        let user = ["--reuid=65534", "--regid=65534", "--clear-groups"];
        command.args(user).current_dir("/usr");
    }
    // It waits for its question on standard input.
    let folder = tempfile::tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(folder.path(), open).unwrap();
    let mut child = command
        .args([crate::lango::BINARY, "run"])
        .env("LANGO_HOME", folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let process = format!("/proc/{}", child.id());
    let is_closed = || {
        use std::os::unix::fs::MetadataExt;
        let limits = fs::read_to_string(format!("{process}/limits")).unwrap_or_default();
        let core = limits.lines().find(|line| line.starts_with("Max core"));
        let has_no_core = core.is_some_and(|line| {
            let arguments: Vec<&str> = line.split_whitespace().collect();
            arguments[4..6] == ["0", "0"]
        });
        let owner = fs::metadata(format!("{process}/mem")).map(|file| file.uid());
        let name = fs::read_to_string(format!("{process}/comm")).unwrap_or_default();
        name.trim() == "lango" && has_no_core && owner.ok() == Some(0)
    };
    let since = std::time::Instant::now();
    while !is_closed() && since.elapsed() < std::time::Duration::from_secs(20) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let was_closed = is_closed();
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(was_closed);
}

#[test]
fn a_command_of_an_ordinary_user_is_the_first_to_be_killed_when_memory_runs_out() {
    let folder = tempfile::tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(folder.path(), open).unwrap();
    let (home, workspace) = (folder.path().join("home"), folder.path().join("work"));
    let mut command = std::process::Command::new("setpriv");
    Lango::new().prepare(&mut command);
    for path in [&home, &workspace] {
        fs::create_dir(path).unwrap();
        // Only root can change the owner, and only root needs to.
        let _ = std::os::unix::fs::chown(path, Some(65534), Some(65534));
    }
    if rustix::process::geteuid().is_root() {
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    }
    let binary = folder.path().join("lango");
    fs::copy(crate::lango::BINARY, &binary).unwrap();
    command
        .arg(&binary)
        .args(["-c", r#"approval.rules=[{action="allow"}]"#, "run", "-q"])
        .arg("run `cat /proc/self/oom_score_adj`")
        .env("LANGO_HOME", &home)
        .current_dir(&workspace);
    let printed = finish(&mut command, b"").ok().stdout;
    assert!(printed.lines().any(|line| line == "500"), "{printed}");
}

#[test]
fn secrets_in_urls_are_never_shown() {
    let lango = Lango::new();
    lango.home_file(
        "lango.toml",
        "agent.model = 'mine/any'\n\
         [providers.mine]\nkind = 'openai'\nbaseUrl = 'http://ada:hunter2@127.0.0.1:9/v1?api_key=hunter2'\n\
         [a2a]\nremoteAgents = [{ name = 'w', agentCardUrl = 'http://ada:hunter2@127.0.0.1:9' }]\n\
         [mcp.servers.one]\nurl = 'http://ada:hunter2@127.0.0.1:9/mcp?token=hunter2'\n\
         [mcp.servers.two]\ncommand = ['prog', '--token', 'hunter2', '--dsn=postgres://u:hunter2@h/d']\n",
    );
    for arguments in [
        &["config", "show"][..],
        &["config", "show", "--origin"],
        &["config", "show", "--json"],
        &["doctor"],
        &["doctor", "--json"],
        &["mcp", "list"],
        &["mcp", "list", "--json"],
        &["models"],
        &["agents"],
        &["run", "hello"],
        &["run", "--json", "hello"],
        &[
            "-c",
            "session.store=postgres://u:hunter2@127.0.0.1:9/d?password=hunter2",
            "config",
            "show",
        ],
        &[
            "-c",
            "session.store=postgres://u:hunter2@127.0.0.1:9/d",
            "sessions",
            "list",
        ],
        &[
            "-c",
            "session.store=mysql://u:hunter2@127.0.0.1:9/d",
            "config",
            "show",
        ],
    ] {
        let ran = lango.run(arguments);
        let printed = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!printed.contains("hunter2"), "{arguments:?}: {printed}");
    }
}

#[test]
fn a_missing_sandbox_is_reported_only_when_a_command_is_called() {
    let lango = Lango::new();
    let script = format!(
        "mount --bind /dev/null /usr/bin/bwrap && PATH=/nowhere exec {} \"$@\"",
        crate::lango::BINARY
    );
    let run = |arguments: &[&str]| {
        let mut command = std::process::Command::new("unshare");
        lango.prepare(&mut command);
        let command = command
            .args(["-m", "sh", "-c", &script, "sh"])
            .args(arguments);
        finish(command, b"")
    };
    let hello = run(&["run", "hello"]).ok();
    assert!(!hello.stderr.contains("warning"), "{hello:#?}");
    assert!(!hello.stderr.contains("bubblewrap"), "{hello:#?}");
    let wanted = run(&["run", "run `ls`"]).ok();
    let printed = format!("{}{}", wanted.stdout, wanted.stderr);
    assert!(printed.contains("commands cannot run here"), "{wanted:#?}");
    assert!(printed.contains("apt install bubblewrap"), "{wanted:#?}");
    assert!(!printed.contains("notes.md"), "{wanted:#?}");
}

#[test]
fn format_characters_of_models_tools_and_files_do_not_reach_a_terminal() {
    use crate::terminal::Terminal;
    let lango = Lango::new();
    let hidden = "a\u{202e}b\u{200b}c\u{2066}d\u{e0041}e\u{feff}f\u{ad}g\u{61c}h";
    lango.file(&format!("x{hidden}.txt"), "x");
    let provider = Provider::new(vec![
        delegate_and_finish("operator", &format!("look {hidden}")),
        call("fs_list", json!({})),
        call(
            "fs_write",
            json!({ "path": format!("n{hidden}"), "content": hidden }),
        ),
        say(&format!(
            "**done** {hidden} 👩\u{200d}👩\u{200d}👧 ❤\u{fe0f}"
        )),
    ]);
    let model = flags("openai", provider.server.url());
    let mut arguments = vec!["run"];
    arguments.extend(model.iter().map(String::as_str));
    arguments.push("look");
    let mut terminal = Terminal::start(&lango, 100, &arguments, &[]);
    let asked = terminal.prompt();
    terminal.press("y");
    let shown = format!("{asked}{}", terminal.wait_for("continue:"));
    for letter in [
        "\u{202e}",
        "\u{200b}",
        "\u{2066}",
        "\u{e0041}",
        "\u{feff}",
        "\u{ad}",
        "\u{61c}",
    ] {
        assert!(
            !shown.contains(letter),
            "{:x} in {shown:?}",
            u32::from(letter.chars().next().unwrap())
        );
    }
    assert!(
        shown.contains("\\u{202e}") && shown.contains("\\u{61c}"),
        "{shown:?}"
    );
    assert!(
        shown.contains("👩\u{200d}👩\u{200d}👧 ❤\u{fe0f}"),
        "{shown:?}"
    );
}
