//! Stands in for lango in the tests of this crate: as the inner helper, and as a launcher that can be killed.

use lango_sandbox::{Command, Helper, Launcher, Policy};
use std::path::PathBuf;
use tokio::io::AsyncReadExt;

const MARK: &str = "__sandbox";

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next() {
        Some(mark) if mark == MARK => lango_sandbox::enter(arguments),
        Some(word) if word == "launch" => {
            let workspace = PathBuf::from(arguments.next().expect("a workspace"));
            let script = arguments.next().expect("a script");
            let home = arguments.next().map(PathBuf::from);
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime
                .expect("a runtime")
                .block_on(launch(workspace, script, home));
        }
        _ => std::process::exit(2),
    }
}

/// Runs a shell script in the sandbox and passes on what it prints. Trash and records go to the home, if there is one.
async fn launch(workspace: PathBuf, script: std::ffi::OsString, home: Option<PathBuf>) {
    let program = std::env::current_exe().expect("a path");
    let arguments = vec![MARK.into()];
    let mut launcher = Launcher::new(Helper { program, arguments });
    if let Some(home) = home {
        launcher = launcher
            .with_trash(home.join("trash"))
            .with_records(home.join("clean-up"));
    }
    let policy = Policy::of(workspace.clone());
    let mut command = Command::new(["sh", "-c"], workspace);
    command.argv.push(script);
    let mut child = launcher.spawn(&policy, command).expect("a child");
    let mut stdout = child.stdout.take().expect("an output");
    let mut part = [0; 1024];
    while let Ok(length @ 1..) = stdout.read(&mut part).await {
        print!("{}", String::from_utf8_lossy(&part[..length]));
    }
    lango_sandbox::wait_for_clean_up(std::time::Duration::from_secs(10)).await;
}
