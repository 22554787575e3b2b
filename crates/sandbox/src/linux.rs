//! Starting a command on Linux: bubblewrap outside, the inner helper inside of it, and pipes to both.
//!
//! lango starts bubblewrap, bubblewrap starts the helper, the helper starts the command and stays as its guard. Three
//! things pass between them besides the command's own input and output: the plan, the helper's reports, and a lifeline,
//! a pipe whose breaking tells the helper that the command is to end, even if lango was killed.

mod bubblewrap;
mod carve;
mod cgroup;
pub(crate) mod fixed;
mod keeper;
mod self_test;
mod start;
mod view;

use crate::inner::{LEAST_ABI_ALONE, SCOPES_ABI, kernel_abi};
use crate::kept::Snapshot;
use crate::launcher::Launcher;
use crate::layers::Layer;
use crate::plan::{Plan, Work};
use crate::scratch::Scratch;
use crate::{Child, Command, LaunchError, Network, Policy, SelfTest, Strength};
use cgroup::Group;
use keeper::Aftermath;
use start::{Program, Start};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use view::{Show, View};

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
    let found = Snapshot::take(policy)?;
    let view = View::of(policy, &found);
    check_command(&view, &command)?;

    let is_root = rustix::process::geteuid().is_root();
    let bubblewrap = launcher.bubblewrap_for(mode)?;
    if mode == Mode::LandlockOnly && is_root {
        return Err(LaunchError::NoSandbox {
            why: "without bubblewrap a command of root is not held; `apt install bubblewrap`, or run lango as another user"
                .to_string(),
        });
    }
    let owner = match is_root {
        true => other_owner(&policy.workspace),
        false => None,
    };
    let group = match launcher.layers.cgroup {
        Layer::Used => Group::make(&command.limits),
        Layer::LeftOut | Layer::Failing => None,
    };
    let scratch = match bubblewrap {
        Some(_) => None,
        None => Some(Scratch::make()?),
    };
    let tmp = scratch
        .as_ref()
        .map_or(Path::new("/tmp"), |scratch| scratch.path());
    let (read, write) = match bubblewrap {
        Some(_) => rules(&view),
        None => carve::rules(&view, tmp),
    };
    let landlock = match mode {
        Mode::BubblewrapOnly => Layer::LeftOut,
        Mode::Both | Mode::LandlockOnly => launcher.layers.landlock,
    };
    let limits = command.limits;
    let plan = Plan {
        work,
        argv: command.argv,
        env: bubblewrap::environment(command.env, tmp),
        cwd: command.cwd,
        read,
        write,
        in_memory: match bubblewrap {
            Some(_) => bubblewrap::in_memory(&view).map(PathBuf::from).collect(),
            None => Vec::new(),
        },
        network: policy.network == Network::Host,
        fixed: match bubblewrap {
            Some(_) => fixed::note(&view)?,
            None => Vec::new(),
        },
        unix_sockets: may_have_unix_sockets(mode, policy.network),
        limits,
        landlock,
        seccomp: launcher.layers.seccomp,
        watchdog: launcher.layers.watchdog,
        namespaces: bubblewrap.is_some(),
        memory_group: group.as_ref().is_some_and(|group| group.bounds_memory),
        stdio: [0; 3],
        lifeline: 0,
    };
    let program = match bubblewrap {
        Some(bubblewrap) => {
            let build = bubblewrap::Build {
                view: &view,
                network: policy.network,
                limits: &limits,
                helper: &launcher.helper.program,
                is_root: is_root && owner.is_none(),
            };
            Program::Bubblewrap {
                program: bubblewrap,
                arguments: build.arguments(),
            }
        }
        None => Program::Helper,
    };
    let started = Start {
        owner,
        program,
        helper: &launcher.helper,
        plan,
        stdin: command.stdin,
        group: group.as_ref(),
    }
    .run()?;
    let aftermath = Aftermath {
        policy: policy.clone(),
        found,
        trash: launcher.trash.clone(),
        group,
        scratch,
        limits,
    };
    Ok(keeper::keep(&runtime, started, aftermath))
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

/// Whether sockets of this machine's own kind lead to nothing outside. Those with a path do not if the view hides it;
/// those without one belong to a network, and are the kernel's to guard if that is lango's own.
fn may_have_unix_sockets(mode: Mode, network: Network) -> bool {
    match (mode, network) {
        (Mode::LandlockOnly, _) | (Mode::BubblewrapOnly, Network::Host) => false,
        (Mode::Both, Network::Host) => kernel_abi() >= SCOPES_ABI,
        (Mode::Both | Mode::BubblewrapOnly, Network::None) => true,
    }
}

/// Whose folder it is, if not root's. Without capabilities root could not work in it; so its owner does.
fn other_owner(workspace: &Path) -> Option<(u32, u32)> {
    let metadata = std::fs::metadata(workspace).ok()?;
    (metadata.uid() != 0).then(|| (metadata.uid(), metadata.gid()))
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

/// The rules about files inside of bubblewrap's view.
fn rules(view: &View) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let reads = view
        .paths(Show::Read)
        .chain(view.paths(Show::Keep))
        .cloned();
    let writes = view.paths(Show::Write).cloned();
    let own = bubblewrap::in_memory(view).map(PathBuf::from);
    (reads.collect(), writes.chain(own).collect())
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
