//! Replaces lango in the tests of this crate: as the inner helper, and as a launcher that can be killed.

use lango_sandbox::{Command, HelperCommand, Launcher, Network, Policy, SandboxProfile, Stdin};
use std::io::Write;
use std::path::PathBuf;
use tokio::io::{AsyncRead, AsyncReadExt};

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
        Some(word) if word == "browse" => {
            let directory = PathBuf::from(arguments.next().expect("a directory"));
            let argv: Vec<_> = arguments.collect();
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime
                .expect("a runtime")
                .block_on(browse(directory, argv));
        }
        Some(word) if word == "check-nesting" => {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            let launcher = launcher();
            match runtime
                .expect("a runtime")
                .block_on(launcher.check_nesting())
            {
                Ok(()) => println!("nested"),
                Err(error) => println!("{error}"),
            }
        }
        _ => std::process::exit(2),
    }
}

fn launcher() -> Launcher {
    let program = std::env::current_exe().expect("a path");
    let arguments = vec![MARK.into()];
    Launcher::new(HelperCommand { program, arguments })
}

/// Runs a browser in the sandbox with a private directory, and forwards its output.
async fn browse(directory: PathBuf, argv: Vec<std::ffi::OsString>) {
    let launcher = launcher();
    let mut policy = Policy::of(directory.clone());
    policy.unprotected = vec![directory.clone()];
    policy.network = Network::Proxied;
    let mut command = Command::new(argv, directory);
    command.profile = SandboxProfile::Browser;
    command.stdin = Stdin::Piped;
    let mut child = launcher.spawn(&policy, command).expect("a child");
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    tokio::join!(
        pass_on(stdout.expect("an output"), std::io::stdout()),
        pass_on(stderr.expect("an error output"), std::io::stderr()),
    );
}

/// Runs a shell script in the sandbox and forwards its output. Trash and records go to `home`, if given.
async fn launch(workspace: PathBuf, script: std::ffi::OsString, home: Option<PathBuf>) {
    let mut launcher = launcher();
    if let Some(home) = home {
        launcher = launcher
            .with_trash(home.join("trash"))
            .with_records(home.join("clean-up"));
    }
    let policy = Policy::of(workspace.clone());
    let mut command = Command::new(["sh", "-c"], workspace);
    command.argv.push(script);
    let mut child = launcher.spawn(&policy, command).expect("a child");
    pass_on(child.stdout.take().expect("an output"), std::io::stdout()).await;
    lango_sandbox::wait_for_clean_up(std::time::Duration::from_secs(10)).await;
}

async fn pass_on(mut from: impl AsyncRead + Unpin, mut to: impl Write) {
    let mut part = [0; 1024];
    while let Ok(length @ 1..) = from.read(&mut part).await {
        let written = to.write_all(&part[..length]);
        written.and_then(|()| to.flush()).expect("a reader");
    }
}
