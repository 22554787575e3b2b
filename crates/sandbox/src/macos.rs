//! Starts commands on macOS: `sandbox-exec` with a profile built from the policy.
//!
//! This is a single layer without namespaces. The command's processes are found by their process group, which a process
//! can leave. Only the run time and the size of files are limited. So the strength is never full here.

use crate::child::WaitResult;
use crate::launcher::Launcher;
use crate::scratch::Scratch;
use crate::{
    Child, CleanUpReport, Command, CommandOutcome, ExitKind, LaunchError, LimitEnforcement,
    Network, Policy, ResourceLimits, SandboxProfile, SelfTestCheck,
};
use crate::{ExceededLimit, SandboxStrength, SelfTest, Stdin, seatbelt, validate};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::sync::oneshot;

const PROGRAM: &str = "/usr/bin/sandbox-exec";

/// Finds the system's launcher.
pub(crate) fn find() -> Option<PathBuf> {
    Some(PathBuf::from(PROGRAM)).filter(|program| program.is_file())
}

/// Does nothing: the profile refuses protected names, so there are no clean-ups.
pub(crate) async fn recover(_launcher: &Launcher) -> Vec<CleanUpReport> {
    Vec::new()
}

/// Always fails: browsers need namespaces.
pub(crate) async fn check_nesting(_launcher: &Launcher) -> Result<(), LaunchError> {
    let why = "macOS has no namespaces".to_string();
    Err(LaunchError::NoNesting { why })
}

/// Starts a command.
pub(crate) fn spawn(
    launcher: &Launcher,
    policy: &Policy,
    command: Command,
) -> Result<Child, LaunchError> {
    if let SandboxStrength::None { why } = &launcher.strength {
        return Err(LaunchError::NoSandbox { why: why.clone() });
    }
    let program = launcher
        .outer_program
        .as_ref()
        .ok_or_else(|| LaunchError::NoSandbox {
            why: format!("`{PROGRAM}` is missing"),
        })?;
    let runtime = tokio::runtime::Handle::try_current().map_err(|_| LaunchError::Command {
        problem: "it was started outside a tokio runtime".to_string(),
    })?;
    if command.argv.is_empty() {
        let problem = "it names no program".to_string();
        return Err(LaunchError::Command { problem });
    }
    validate::policy(policy)?;
    let what = match (policy.network, command.profile) {
        (Network::Proxied, _) => Some("a network through a proxy"),
        (_, SandboxProfile::Browser) => Some("a browser"),
        (Network::None | Network::Host, SandboxProfile::Command) => None,
    };
    if let Some(what) = what {
        let why = "and this is macOS";
        return Err(LaunchError::NeedsBubblewrap { what, why });
    }
    let scratch = Scratch::create()?;
    let limits = command.limits;
    let mut process = tokio::process::Command::new(program);
    process
        .arg("-p")
        .arg(seatbelt::profile(policy, scratch.path()))
        .arg("--")
        .args(&command.argv)
        .env_clear()
        .envs(environment(scratch.path()))
        .envs(command.env)
        .current_dir(&command.cwd)
        .stdin(match command.stdin {
            Stdin::Null => Stdio::null(),
            Stdin::Piped => Stdio::piped(),
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    // SAFETY: the closure makes system calls only; it neither allocates nor takes locks.
    unsafe { process.pre_exec(move || limit(&limits)) };
    let mut process = process
        .spawn()
        .map_err(LaunchError::system("start `sandbox-exec`"))?;
    let stdin = process.stdin.take();
    let (Some(stdout), Some(stderr)) = (process.stdout.take(), process.stderr.take()) else {
        return Err(LaunchError::Layer {
            what: "there are no pipes".to_string(),
        });
    };
    let (sender, ended) = oneshot::channel();
    let (lifeline, cancelled) = oneshot::channel::<()>();
    let running = crate::running::RunningToken::new();
    runtime.spawn(async move {
        let result = supervise(process, limits, cancelled).await;
        drop(scratch);
        let _ = sender.send(result);
        drop(running);
    });
    Ok(Child::new(
        (stdin, stdout, stderr),
        None,
        ((), lifeline),
        ended,
    ))
}

/// Supervises the command until it has ended.
async fn supervise(
    mut process: tokio::process::Child,
    limits: ResourceLimits,
    cancelled: oneshot::Receiver<()>,
) -> WaitResult {
    let group = process.id().and_then(|id| i32::try_from(id).ok());
    let time_is_up = async {
        match limits.time {
            Some(time) => tokio::time::sleep(time).await,
            None => std::future::pending().await,
        }
    };
    let (status, stopped) = tokio::select! {
        status = process.wait() => (Some(status), None),
        _ = cancelled => (None, None),
        () = time_is_up => (None, Some(ExceededLimit::Time)),
    };
    if let Some(group) = group {
        // SAFETY: signals only the command's own process group; its first process still has the id or had it a moment
        // ago.
        unsafe { libc::killpg(group, libc::SIGKILL) };
    }
    let status = match status {
        Some(status) => status,
        None => process.wait().await,
    };
    let status = status.map_err(|error| error.to_string())?;
    let signal = status.signal().map(ExitKind::Signal);
    Ok(CommandOutcome {
        exit: signal.unwrap_or(ExitKind::Code(status.code().unwrap_or(-1))),
        stopped_by: stopped,
        clean_up: CleanUpReport::default(),
    })
}

fn environment(scratch: &Path) -> [(&'static str, String); 5] {
    let scratch = scratch.to_string_lossy().into_owned();
    [
        (
            "PATH",
            "/opt/homebrew/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin".to_string(),
        ),
        ("HOME", scratch.clone()),
        ("TMPDIR", scratch),
        ("LANG", "C.UTF-8".to_string()),
        ("TERM", "dumb".to_string()),
    ]
}

fn limit(limits: &ResourceLimits) -> io::Result<()> {
    for (resource, maximum) in [
        (libc::RLIMIT_CORE, 0),
        (libc::RLIMIT_FSIZE, limits.file_bytes),
    ] {
        let both = libc::rlimit {
            rlim_cur: maximum,
            rlim_max: maximum,
        };
        // SAFETY: reads a value on the stack.
        if unsafe { libc::setrlimit(resource, &raw const both) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Runs real commands that try to violate the profile.
pub(crate) async fn self_test(launcher: &Launcher) -> SelfTest {
    let limits = LimitEnforcement {
        processes: "nothing; macOS cannot limit the processes of a command".to_string(),
        memory: "nothing; macOS cannot limit the memory of a command".to_string(),
        disk: "a limit per file".to_string(),
    };
    crate::scratch::remove_stale();
    let (strength, checks) = match probe(launcher).await {
        Err(error) => (
            SandboxStrength::None {
                why: error.to_string(),
            },
            Vec::new(),
        ),
        Ok(checks) => match checks.iter().find(|check| !check.passed) {
            Some(check) => (
                SandboxStrength::None {
                    why: format!("the check \"{}\" failed", check.name),
                },
                checks,
            ),
            None => {
                let missing =
                    "macOS has only one layer, and limits only for the time and the size of files";
                (
                    SandboxStrength::Degraded {
                        missing: missing.to_string(),
                    },
                    checks,
                )
            }
        },
    };
    SelfTest {
        strength,
        checks,
        limits,
    }
}

async fn probe(launcher: &Launcher) -> io::Result<Vec<SelfTestCheck>> {
    let scratch = Scratch::create()?;
    let workspace = scratch.path().join("workspace");
    let outside = scratch.path().join("secret");
    std::fs::create_dir(&workspace)?;
    std::fs::write(&outside, "secret")?;
    std::fs::write(workspace.join(".env"), "kept")?;
    let policy = Policy::of(workspace.clone());
    let secret = outside.display();
    let attempts = [
        (
            "a file in the workspace can be written",
            "echo x > new".to_string(),
            true,
        ),
        (
            "a file outside cannot be read",
            format!("cat '{secret}'"),
            false,
        ),
        (
            "a file outside cannot be written",
            format!("echo x > '{secret}'"),
            false,
        ),
        (
            "a protected file cannot be changed",
            "echo x > .env".to_string(),
            false,
        ),
    ];
    let mut checks = Vec::new();
    for (name, script, must_work) in attempts {
        let command = Command::new(["/bin/sh", "-c", &script], workspace.clone());
        let ended = spawn(launcher, &policy, command)?.wait().await?;
        checks.push(SelfTestCheck {
            name: name.to_string(),
            passed: (ended.exit == ExitKind::Code(0)) == must_work,
            detail: format!("{:?}", ended.exit),
        });
    }
    Ok(checks)
}
