//! Starting a command on Linux: bubblewrap outside, the inner helper inside of it, and pipes to both.
//!
//! lango starts bubblewrap, bubblewrap starts the helper, the helper starts the command and stays as its guard. Three
//! things pass between them besides the command's own input and output: the plan, the helper's reports, and a lifeline,
//! a pipe whose breaking tells the helper that the command is to end, even if lango was killed.

mod bubblewrap;
mod carve;
pub(crate) mod cgroup;
mod clean_up;
pub(crate) mod fixed;
pub(crate) mod proc;
mod self_test;
mod start;
mod supervise;
mod surroundings;
mod user;
mod view;
mod watch;

use crate::clean_up::scan::Scan;
use crate::inner::{LEAST_ABI_ALONE, kernel_abi};
use crate::launcher::Launcher;
use crate::layers::Layer;
use crate::plan::Work;
use crate::running::Running;
use crate::scratch::Scratch;
use crate::{Child, Command, LaunchError, Network, Policy, Profile, SelfTest, Strength};
use cgroup::Group;
use clean_up::CleanUpStart;
pub(crate) use clean_up::recover;
use start::{Program, Start};
use std::path::{Path, PathBuf};
use supervise::Supervised;
use surroundings::Surroundings;
use user::User;
use view::View;
pub(crate) use watch::Watch;

/// How many mounts a command's view may have: bubblewrap reads 9,000 arguments at most.
const MOST_MOUNTS: usize = 2_500;

/// The number of the network namespace that this process is in.
pub(crate) fn network_namespace() -> std::io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    Ok(std::fs::metadata("/proc/self/ns/net")?.ino())
}

/// Which layers a command gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Both,
    BubblewrapOnly,
    LandlockOnly,
}

/// Where bubblewrap is.
pub(crate) fn find() -> Option<PathBuf> {
    bubblewrap::find()
}

/// Starts a command with the layers that the strength known calls for.
pub(crate) fn spawn(
    launcher: &Launcher,
    policy: &Policy,
    command: Command,
) -> Result<Child, LaunchError> {
    let mode = mode_for(launcher)?;
    spawn_in(launcher, mode, policy, command, Work::Command)
}

/// Tries what works here.
pub(crate) async fn self_test(launcher: &Launcher) -> SelfTest {
    self_test::run(launcher).await
}

/// Tries whether a browser can make namespaces of its own.
pub(crate) async fn check_nesting(launcher: &Launcher) -> Result<(), LaunchError> {
    self_test::check_nesting(launcher).await
}

/// Starts a command, or the helper's own attempts to get out.
fn spawn_in(
    launcher: &Launcher,
    mode: Mode,
    policy: &Policy,
    command: Command,
    work: Work,
) -> Result<Child, LaunchError> {
    let runtime = tokio::runtime::Handle::try_current().map_err(|_| LaunchError::Command {
        problem: "it was started outside of a tokio runtime".to_string(),
    })?;
    crate::check::policy(policy)?;
    let scan = Scan::take(policy, command.new_files, launcher.records.as_deref())?;
    let view = View::of(policy, command.profile, &scan.protected, &scan.dotfiles);
    check_protected(&scan.protected)?;
    if view.items.len() > MOST_MOUNTS {
        return Err(LaunchError::Policy {
            path: policy.workspace.clone(),
            problem: format!(
                "its protected files (such as `.git` and `.vscode`) need more than {MOST_MOUNTS} mounts; choose a smaller folder"
            ),
        });
    }
    check_command(&view, &command)?;
    let user = User::of(mode, &policy.workspace)?;
    let bubblewrap = launcher.bubblewrap_for(mode)?;
    if bubblewrap.is_none() {
        check_without_namespaces(policy, &command)?;
    }
    let exposed = match command.profile {
        Profile::Command => Vec::new(),
        Profile::Browser => proc::exposed().map_err(LaunchError::system("look at `/proc`"))?,
    };
    let group = match launcher.layers.cgroup {
        Layer::Used => Group::make(&command.limits),
        Layer::LeftOut | Layer::Failing => None,
    };
    let scratch = match bubblewrap {
        Some(_) => None,
        None => Some(Scratch::make()?),
    };
    let (stdin, limits) = (command.stdin, command.limits);
    let surroundings = Surroundings {
        launcher,
        mode,
        policy,
        view: &view,
        scratch: scratch.as_ref(),
        memory_group: group.as_ref().is_some_and(|group| group.bounds_memory),
    };
    let mut plan = surroundings.plan(command, work)?;
    let clean_up = CleanUpStart::new(launcher, user, &scan.checklist)?;
    plan.clean_up = clean_up.descriptors();
    let build = bubblewrap::Build {
        view: &view,
        network: policy.network,
        exposed,
        limits: &limits,
        helper: &launcher.helper.program,
        is_root: user == User::Root,
    };
    let program = Program::new(bubblewrap, &build);
    let started = Start {
        program,
        helper: &launcher.helper,
        plan,
        stdin,
        group: group.as_ref(),
        user,
    }
    .run()?;
    let supervised = Supervised {
        launcher: launcher.clone(),
        running: Running::new(),
        clean_up,
        group,
        scratch,
        limits,
    };
    Ok(supervise::supervise(&runtime, started, supervised))
}

/// The layers to use for a strength.
fn mode_for(launcher: &Launcher) -> Result<Mode, LaunchError> {
    match &launcher.strength {
        Strength::Full => Ok(Mode::Both),
        // One layer works and one does not; if the kernel has rules about files, the other one is missing.
        Strength::Degraded { .. } if launcher.has_landlock() => Ok(Mode::LandlockOnly),
        Strength::Degraded { .. } => Ok(Mode::BubblewrapOnly),
        Strength::None { why } => Err(LaunchError::NoSandbox { why: why.clone() }),
    }
}

/// What vanished since the scan would not be covered, and could be back a moment later.
fn check_protected(protected: &[PathBuf]) -> Result<(), LaunchError> {
    let vanished = protected
        .iter()
        .find(|path| path.symlink_metadata().is_err());
    match vanished {
        None => Ok(()),
        Some(path) => Err(LaunchError::Policy {
            path: path.clone(),
            problem: "it changed while a command was started; try again".to_string(),
        }),
    }
}

/// What needs namespaces is refused where there are none.
fn check_without_namespaces(policy: &Policy, command: &Command) -> Result<(), LaunchError> {
    let what = match (policy.network, command.profile) {
        (Network::Proxied, _) => "a network through a proxy",
        (_, Profile::Browser) => "a browser",
        (Network::None | Network::Host, Profile::Command) => return Ok(()),
    };
    let why = "and it is missing or does not work here; see `lango doctor`";
    Err(LaunchError::NeedsBubblewrap { what, why })
}

fn check_command(view: &View, command: &Command) -> Result<(), LaunchError> {
    let refuse = |problem: String| Err(LaunchError::Command { problem });
    let holds_zero = |text: &std::ffi::OsString| text.as_encoded_bytes().contains(&0);
    if command.argv.is_empty() {
        return refuse("it names no program".to_string());
    }
    let variables = command.env.iter().flat_map(|(name, value)| [name, value]);
    if command.argv.iter().chain(variables).any(holds_zero) {
        return refuse("an argument or a variable holds a zero byte".to_string());
    }
    let bad_name =
        |name: &std::ffi::OsString| name.is_empty() || name.as_encoded_bytes().contains(&b'=');
    if command.env.iter().any(|(name, _)| bad_name(name)) {
        return refuse("a variable has no name, or `=` in it".to_string());
    }
    let cwd = &command.cwd;
    if !cwd.is_absolute() || !(view.shows(cwd) || cwd == Path::new("/tmp")) {
        let shown = cwd.display();
        return refuse(format!(
            "it cannot start in `{shown}`, which it may not see"
        ));
    }
    Ok(())
}

impl Launcher {
    /// Whether the kernel's rules about files hold by themselves.
    fn has_landlock(&self) -> bool {
        self.layers.landlock != Layer::Failing && kernel_abi() >= LEAST_ABI_ALONE
    }

    /// Bubblewrap, if it is to be used.
    fn bubblewrap_for(&self, mode: Mode) -> Result<Option<PathBuf>, LaunchError> {
        match (mode, self.layers.bubblewrap) {
            (Mode::LandlockOnly, _) | (_, Layer::LeftOut) => Ok(None),
            (_, Layer::Failing) => Err(LaunchError::NoBubblewrap),
            (_, Layer::Used) => {
                let program = self.outer_program.clone();
                program.map(Some).ok_or(LaunchError::NoBubblewrap)
            }
        }
    }
}
