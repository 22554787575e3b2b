//! Starts commands on Linux, with bubblewrap and the inner helper.
//!
//! lango starts bubblewrap, bubblewrap starts the helper, and the helper starts the command and stays as its guard.
//! Besides the command's own input and output, three things pass between them: the plan, the helper's reports, and the
//! lifeline. The lifeline is a pipe; when it breaks, even because lango was killed, the helper ends the command.

mod bubblewrap;
pub(crate) mod cgroup;
mod clean_up;
pub(crate) mod expected_paths;
mod plan_builder;
pub(crate) mod proc;
mod self_test;
mod standalone_rules;
mod start;
mod supervise;
mod user;
mod view;
mod watch;

use crate::clean_up::scan::Scan;
use crate::inner::{MIN_ABI_STANDALONE, kernel_abi};
use crate::launcher::Launcher;
use crate::layers::Layer;
use crate::plan::HelperTask;
use crate::running::RunningToken;
use crate::scratch::Scratch;
use crate::{
    Child, Command, LaunchError, Network, Policy, SandboxProfile, SandboxStrength, SelfTest,
};
use cgroup::ControlGroup;
use clean_up::CleanUpSetup;
pub(crate) use clean_up::recover;
use plan_builder::PlanBuilder;
use start::{Program, StartRequest};
use std::path::{Path, PathBuf};
use supervise::CommandResources;
use user::User;
use view::View;
pub(crate) use watch::CleanUpWatch;

/// Maximum number of mounts of a command: bubblewrap reads at most 9,000 arguments.
const MAX_MOUNTS: usize = 2_500;

/// Returns the inode number of this process's network namespace.
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

/// Finds bubblewrap.
pub(crate) fn find() -> Option<PathBuf> {
    bubblewrap::find()
}

/// Starts a command with the layers that work according to the launcher's strength.
pub(crate) fn spawn(
    launcher: &Launcher,
    policy: &Policy,
    command: Command,
) -> Result<Child, LaunchError> {
    let mode = mode_for(launcher)?;
    spawn_in(launcher, mode, policy, command, HelperTask::Command)
}

pub(crate) async fn self_test(launcher: &Launcher) -> SelfTest {
    self_test::run(launcher).await
}

/// Checks whether a browser can create the namespaces for its own sandbox.
pub(crate) async fn check_nesting(launcher: &Launcher) -> Result<(), LaunchError> {
    self_test::check_nesting(launcher).await
}

/// Starts a command, or one of the helper's own tests.
fn spawn_in(
    launcher: &Launcher,
    mode: Mode,
    policy: &Policy,
    command: Command,
    task: HelperTask,
) -> Result<Child, LaunchError> {
    let runtime = tokio::runtime::Handle::try_current().map_err(|_| LaunchError::Command {
        problem: "it was started outside a tokio runtime".to_string(),
    })?;
    crate::validate::policy(policy)?;
    let scan = Scan::run(policy, command.new_files, launcher.records.as_deref())?;
    let view = View::of(policy, command.profile, &scan.protected, &scan.dotfiles);
    check_protected(&scan.protected)?;
    if view.items.len() > MAX_MOUNTS {
        return Err(LaunchError::Policy {
            path: policy.workspace.clone(),
            problem: format!(
                "its protected files (such as `.git` and `.vscode`) need more than {MAX_MOUNTS} mounts; choose a smaller folder"
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
        SandboxProfile::Command => Vec::new(),
        SandboxProfile::Browser => {
            proc::exposed_entries().map_err(LaunchError::system("read `/proc`"))?
        }
    };
    let group = match launcher.layers.cgroup {
        Layer::Used => ControlGroup::create(&command.limits),
        Layer::LeftOut | Layer::Failing => None,
    };
    let scratch = match bubblewrap {
        Some(_) => None,
        None => Some(Scratch::create()?),
    };
    let (stdin, limits) = (command.stdin, command.limits);
    let builder = PlanBuilder {
        launcher,
        mode,
        policy,
        view: &view,
        scratch: scratch.as_ref(),
        memory_group: group.as_ref().is_some_and(|group| group.bounds_memory),
    };
    let mut plan = builder.plan(command, task)?;
    let clean_up = CleanUpSetup::new(launcher, user, &scan.checklist)?;
    plan.clean_up = clean_up.descriptors();
    let build = bubblewrap::BubblewrapSetup {
        view: &view,
        network: policy.network,
        exposed,
        limits: &limits,
        helper: &launcher.helper.program,
        is_root: user == User::Root,
    };
    let program = Program::new(bubblewrap, &build);
    let started = StartRequest {
        program,
        helper: &launcher.helper,
        plan,
        stdin,
        group: group.as_ref(),
        user,
    }
    .run()?;
    let resources = CommandResources {
        launcher: launcher.clone(),
        running: RunningToken::new(),
        clean_up,
        group,
        scratch,
        limits,
    };
    Ok(supervise::supervise(&runtime, started, resources))
}

/// Returns the layers to use for the launcher's strength.
fn mode_for(launcher: &Launcher) -> Result<Mode, LaunchError> {
    match &launcher.strength {
        SandboxStrength::Full => Ok(Mode::Both),
        // One of the two layers works; if Landlock is available, bubblewrap is the missing one.
        SandboxStrength::Degraded { .. } if launcher.has_landlock() => Ok(Mode::LandlockOnly),
        SandboxStrength::Degraded { .. } => Ok(Mode::BubblewrapOnly),
        SandboxStrength::None { why } => Err(LaunchError::NoSandbox { why: why.clone() }),
    }
}

/// Fails if a protected file vanished since the scan: it would not be covered, and could reappear at any moment.
fn check_protected(protected: &[PathBuf]) -> Result<(), LaunchError> {
    let vanished = protected
        .iter()
        .find(|path| path.symlink_metadata().is_err());
    match vanished {
        None => Ok(()),
        Some(path) => Err(LaunchError::Policy {
            path: path.clone(),
            problem: "it changed while a command was starting; try again".to_string(),
        }),
    }
}

/// Fails if the policy or the command needs namespaces, which are not available.
fn check_without_namespaces(policy: &Policy, command: &Command) -> Result<(), LaunchError> {
    let what = match (policy.network, command.profile) {
        (Network::Proxied, _) => "a network through a proxy",
        (_, SandboxProfile::Browser) => "a browser",
        (Network::None | Network::Host, SandboxProfile::Command) => return Ok(()),
    };
    let why = "and it is missing or does not work here; see `lango doctor`";
    Err(LaunchError::NeedsBubblewrap { what, why })
}

fn check_command(view: &View, command: &Command) -> Result<(), LaunchError> {
    let refuse = |problem: String| Err(LaunchError::Command { problem });
    let has_nul = |text: &std::ffi::OsString| text.as_encoded_bytes().contains(&0);
    if command.argv.is_empty() {
        return refuse("it names no program".to_string());
    }
    let variables = command.env.iter().flat_map(|(name, value)| [name, value]);
    if command.argv.iter().chain(variables).any(has_nul) {
        return refuse("an argument or a variable contains a NUL byte".to_string());
    }
    let bad_name =
        |name: &std::ffi::OsString| name.is_empty() || name.as_encoded_bytes().contains(&b'=');
    if command.env.iter().any(|(name, _)| bad_name(name)) {
        return refuse("the name of a variable is empty or contains `=`".to_string());
    }
    let cwd = &command.cwd;
    if !cwd.is_absolute() || !(view.shows(cwd) || cwd == Path::new("/tmp")) {
        let shown = cwd.display();
        return refuse(format!(
            "it cannot start in `{shown}`, which the policy does not open"
        ));
    }
    Ok(())
}

impl Launcher {
    /// Whether the kernel's Landlock is sufficient without bubblewrap.
    fn has_landlock(&self) -> bool {
        self.layers.landlock != Layer::Failing && kernel_abi() >= MIN_ABI_STANDALONE
    }

    /// Returns the path of bubblewrap, or `None` if the mode does not use it. Fails if it is needed and missing.
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
