//! The self-test: the helper is started the way commands are, and tries to get out for real.
//!
//! All layers are tried together first. If that fails, the one layer that may do without the other is tried by itself.

use super::cgroup::{self, Group};
use super::{Mode, mode_for, spawn_in};
use crate::inner::probe::{HIDDEN_FILE, KEPT_FILE, OUTSIDE_FILE, Targets};
use crate::launcher::Launcher;
use crate::layers::Layer;
use crate::plan::Work;
use crate::scratch::{self, Scratch};
use crate::{
    Check, Child, Command, ExitKind, LaunchError, Limits, LimitsBy, Policy, Profile, SelfTest,
    Strength,
};
use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::time::Duration;
use tokio::io::AsyncReadExt;

/// A probe that takes longer has failed.
const TIME: Duration = Duration::from_secs(10);
/// More than this a probe does not print.
const OUTPUT_BYTES: u64 = 64 * 1024;

/// Tries what works here.
pub(super) async fn run(launcher: &Launcher) -> SelfTest {
    cgroup::remove_stale();
    scratch::remove_stale();
    let limits = limits_by(launcher);
    let (checks, failure) = try_mode(launcher, Mode::Both).await;
    let Some(failure) = failure else {
        let strength = Strength::Full;
        return SelfTest {
            strength,
            checks,
            limits,
        };
    };
    let (mode, missing) = match launcher.has_landlock() {
        true => (
            Mode::LandlockOnly,
            "bubblewrap does not work, so names and sizes of files outside stay in sight, and nothing new can be made \
             beside what is kept",
        ),
        false => (
            Mode::BubblewrapOnly,
            "Landlock is not there, so one fault in bubblewrap's view of the disk is enough to get out",
        ),
    };
    let (fewer, none) = try_mode(launcher, mode).await;
    let strength = match &none {
        None => Strength::Degraded {
            missing: format!("{missing} ({failure})"),
        },
        Some(none) => Strength::None {
            why: match *none == failure {
                true => failure,
                false => format!("{failure}; and with one layer alone: {none}"),
            },
        },
    };
    let checks = match fewer.is_empty() {
        true => checks,
        false => fewer,
    };
    SelfTest {
        strength,
        checks,
        limits,
    }
}

/// What was checked, and what is wrong.
async fn try_mode(launcher: &Launcher, mode: Mode) -> (Vec<Check>, Option<String>) {
    match probe(launcher, mode).await {
        Err(error) => (Vec::new(), Some(with_cause(&error))),
        Ok(checks) => {
            let broken = checks.iter().find(|check| !check.passed);
            let failure = match broken {
                Some(check) => Some(format!("{} does not hold: {}", check.name, check.detail)),
                None if checks.is_empty() => Some("the probe said nothing".to_string()),
                None => None,
            };
            (checks, failure)
        }
    }
}

async fn probe(launcher: &Launcher, mode: Mode) -> io::Result<Vec<Check>> {
    let scratch = Scratch::make()?;
    let workspace = scratch.path().join("workspace");
    let outside = scratch.path().join("outside");
    fs::create_dir(&workspace)?;
    fs::create_dir(&outside)?;
    fs::write(workspace.join(KEPT_FILE), "kept")?;
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
    // A probe leaves nothing behind, and no trace of itself.
    let launcher = &launcher.without_clean_up_folders();
    let mut child = spawn_in(launcher, mode, &policy, command, Work::Probe)?;
    let printed = read_output(&mut child).await?;
    child.wait().await?;
    Ok(printed.lines().filter_map(check).collect())
}

/// Has the helper try what a browser's own sandbox begins with.
pub(super) async fn check_nesting(launcher: &Launcher) -> Result<(), LaunchError> {
    let scratch = Scratch::make()?;
    let policy = Policy::of(scratch.path().to_path_buf());
    let mut command = Command::new(["nesting"], scratch.path().to_path_buf());
    command.profile = Profile::Browser;
    command.limits.time = Some(TIME);
    let launcher = &launcher.without_clean_up_folders();
    let mut child = spawn_in(
        launcher,
        mode_for(launcher)?,
        &policy,
        command,
        Work::Nesting,
    )?;
    let printed = read_output(&mut child).await;
    let ended = child.wait().await;
    let why = match (printed, ended) {
        (Ok(_), Ok(ended)) if ended.exit == ExitKind::Code(0) => return Ok(()),
        (Ok(printed), Ok(_)) if !printed.is_empty() => printed.trim().to_string(),
        (Ok(_), Ok(ended)) => format!("the attempt ended with {:?}", ended.exit),
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

fn check(line: &str) -> Option<Check> {
    let mut fields = line.splitn(3, '\t');
    Some(Check {
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

fn limits_by(launcher: &Launcher) -> LimitsBy {
    let group = match launcher.layers.cgroup {
        Layer::Used => Group::make(&Limits::default()),
        Layer::LeftOut | Layer::Failing => None,
    };
    let is_root = rustix::process::geteuid().is_root();
    let watchdog = "a watchdog that looks every 50 ms";
    let processes = match &group {
        Some(group) if group.bounds_processes => format!("a control group, and {watchdog}"),
        _ if !is_root => format!("the kernel's limit per user namespace, and {watchdog}"),
        _ => format!("{watchdog}; no control group can be made here"),
    };
    let memory = match &group {
        Some(group) if group.bounds_memory => format!("a control group, and {watchdog}"),
        _ => format!(
            "a limit per process, and for all together {watchdog}; no control group can be made here"
        ),
    };
    LimitsBy {
        processes,
        memory,
        disk: format!("a limit per file, and for all together {watchdog}"),
    }
}
