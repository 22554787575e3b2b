//! The self-test: starts the helper like a command and lets it try to escape.
//!
//! It first tests all layers together. If that fails, it tests the layer that may work alone.

use super::cgroup::{self, ControlGroup};
use super::{Mode, mode_for, spawn_in};
use crate::inner::probe::{HIDDEN_FILE, OUTSIDE_FILE, PROTECTED_FILE, Targets};
use crate::launcher::Launcher;
use crate::layers::Layer;
use crate::plan::HelperTask;
use crate::scratch::{self, Scratch};
use crate::{
    Child, Command, ExitKind, LaunchError, LimitEnforcement, Policy, ResourceLimits,
    SandboxProfile, SandboxStrength, SelfTest, SelfTestCheck,
};
use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::time::Duration;
use tokio::io::AsyncReadExt;

/// Time limit of a probe.
const TIME: Duration = Duration::from_secs(10);
/// Maximum size of a probe's output.
const OUTPUT_BYTES: u64 = 64 * 1024;

/// Runs the self-test.
pub(super) async fn run(launcher: &Launcher) -> SelfTest {
    cgroup::remove_stale();
    scratch::remove_stale();
    let limits = limit_enforcement(launcher);
    let (checks, failure) = try_mode(launcher, Mode::Both).await;
    let Some(failure) = failure else {
        let strength = SandboxStrength::Full;
        return SelfTest {
            strength,
            checks,
            limits,
        };
    };
    let (mode, missing) = if launcher.has_landlock() {
        (
            Mode::LandlockOnly,
            "bubblewrap does not work, so commands see the names and sizes of files outside, and cannot create files \
             next to protected ones",
        )
    } else {
        (
            Mode::BubblewrapOnly,
            "Landlock is not available, so a single flaw in bubblewrap's view of the file system is enough to escape",
        )
    };
    let (fewer, none) = try_mode(launcher, mode).await;
    let strength = match &none {
        None => SandboxStrength::Degraded {
            missing: format!("{missing} ({failure})"),
        },
        Some(none) => SandboxStrength::None {
            why: if *none == failure {
                failure
            } else {
                format!("{failure}; and with one layer alone: {none}")
            },
        },
    };
    let checks = if fewer.is_empty() { checks } else { fewer };
    SelfTest {
        strength,
        checks,
        limits,
    }
}

/// Runs the probe in one mode; returns its checks and what is wrong, if anything.
async fn try_mode(launcher: &Launcher, mode: Mode) -> (Vec<SelfTestCheck>, Option<String>) {
    match probe(launcher, mode).await {
        Err(error) => (Vec::new(), Some(with_cause(&error))),
        Ok(checks) => {
            let broken = checks.iter().find(|check| !check.passed);
            let failure = match broken {
                Some(check) => Some(format!(
                    "the check \"{}\" failed: {}",
                    check.name, check.detail
                )),
                None if checks.is_empty() => Some("the probe printed nothing".to_string()),
                None => None,
            };
            (checks, failure)
        }
    }
}

async fn probe(launcher: &Launcher, mode: Mode) -> io::Result<Vec<SelfTestCheck>> {
    let scratch = Scratch::create()?;
    let workspace = scratch.path().join("workspace");
    let outside = scratch.path().join("outside");
    fs::create_dir(&workspace)?;
    fs::create_dir(&outside)?;
    fs::write(workspace.join(PROTECTED_FILE), "kept")?;
    fs::write(workspace.join(HIDDEN_FILE), "hidden")?;
    fs::write(workspace.join("probe"), "")?;
    fs::write(outside.join(OUTSIDE_FILE), "secret")?;
    let socket = outside.join("socket");
    let _socket = UnixListener::bind(&socket)?;
    let port = TcpListener::bind("127.0.0.1:0")?;
    let targets = Targets {
        workspace: workspace.clone().into(),
        outside: outside.into(),
        socket: socket.into(),
        port: port.local_addr()?.port(),
    };
    let mut policy = Policy::of(workspace.clone());
    policy.hidden = vec![workspace.join(HIDDEN_FILE)];
    let mut command = Command::new(targets.to_arguments(), workspace);
    command.limits.time = Some(TIME);
    // A probe must leave no files behind.
    let launcher = &launcher.without_clean_up_folders();
    let mut child = spawn_in(launcher, mode, &policy, command, HelperTask::Probe)?;
    let printed = read_output(&mut child).await?;
    child.wait().await?;
    Ok(printed.lines().filter_map(check).collect())
}

/// Lets the helper try the first steps of a browser's own sandbox.
pub(super) async fn check_nesting(launcher: &Launcher) -> Result<(), LaunchError> {
    let scratch = Scratch::create()?;
    let policy = Policy::of(scratch.path().to_path_buf());
    let mut command = Command::new(["nesting"], scratch.path().to_path_buf());
    command.profile = SandboxProfile::Browser;
    command.limits.time = Some(TIME);
    let launcher = &launcher.without_clean_up_folders();
    let mut child = spawn_in(
        launcher,
        mode_for(launcher)?,
        &policy,
        command,
        HelperTask::Nesting,
    )?;
    let printed = read_output(&mut child).await;
    let ended = child.wait().await;
    let why = match (printed, ended) {
        (Ok(_), Ok(ended)) if ended.exit == ExitKind::Code(0) => return Ok(()),
        (Ok(printed), Ok(_)) if !printed.is_empty() => printed.trim().to_string(),
        (Ok(_), Ok(ended)) => format!("the test ended with {:?}", ended.exit),
        (Err(error), _) | (_, Err(error)) => with_cause(&error),
    };
    Err(LaunchError::NoNesting { why })
}

async fn read_output(child: &mut Child) -> io::Result<String> {
    let mut printed = String::new();
    if let Some(stdout) = child.stdout.take() {
        stdout
            .take(OUTPUT_BYTES)
            .read_to_string(&mut printed)
            .await?;
    }
    Ok(printed)
}

fn check(line: &str) -> Option<SelfTestCheck> {
    let mut fields = line.splitn(3, '\t');
    Some(SelfTestCheck {
        passed: fields.next()? == "held",
        name: fields.next()?.to_string(),
        detail: fields.next()?.to_string(),
    })
}

fn with_cause(error: &io::Error) -> String {
    let launch = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<LaunchError>());
    match launch {
        Some(LaunchError::System { cause, .. }) => format!("{error}: {cause}"),
        _ => error.to_string(),
    }
}

fn limit_enforcement(launcher: &Launcher) -> LimitEnforcement {
    let group = match launcher.layers.cgroup {
        Layer::Used => ControlGroup::create(&ResourceLimits::default()),
        Layer::LeftOut | Layer::Failing => None,
    };
    let is_root = rustix::process::geteuid().is_root();
    let watchdog = "a watchdog that checks every 50 ms";
    let processes = match &group {
        Some(group) if group.bounds_processes => format!("a control group, and {watchdog}"),
        _ if !is_root => format!("the kernel's limit per user namespace, and {watchdog}"),
        _ => format!("{watchdog}; no control group can be created here"),
    };
    let memory = match &group {
        Some(group) if group.bounds_memory => format!("a control group, and {watchdog}"),
        _ => format!(
            "a limit per process, and {watchdog} for all together; no control group can be created here"
        ),
    };
    LimitEnforcement {
        processes,
        memory,
        disk: format!("a limit per file, and {watchdog} for all together"),
    }
}
