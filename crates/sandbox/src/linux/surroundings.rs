//! What surrounds a command, as far as the inner helper has to know it: the plan's other half, beside the command.

use super::view::{Show, View};
use super::{Mode, bubblewrap, carve, fixed};
use crate::inner::{SCOPES_ABI, kernel_abi};
use crate::launcher::Launcher;
use crate::layers::Layer;
use crate::plan::{CleanUpDescriptors, Plan, Work};
use crate::scratch::Scratch;
use crate::{Command, LaunchError, Network, Policy};
use std::path::{Path, PathBuf};

/// What surrounds one command.
pub(super) struct Surroundings<'a> {
    pub(super) launcher: &'a Launcher,
    pub(super) mode: Mode,
    pub(super) policy: &'a Policy,
    pub(super) view: &'a View,
    /// A folder for short-lived files, where there is no bubblewrap to make one in memory.
    pub(super) scratch: Option<&'a Scratch>,
    pub(super) memory_group: bool,
}

impl Surroundings<'_> {
    /// The plan for a command. The descriptors in it are filled in when they are made.
    pub(super) fn plan(&self, command: Command, work: Work) -> Result<Plan, LaunchError> {
        let layers = &self.launcher.layers;
        let temporary = self.scratch.map_or(Path::new("/tmp"), Scratch::path);
        let (read, write) = match self.scratch {
            None => rules(self.view),
            Some(scratch) => carve::rules(self.view, scratch.path()),
        };
        let (in_memory, fixed) = match self.scratch {
            None => (in_memory(self.view), fixed::note(self.view)?),
            Some(_) => (Vec::new(), Vec::new()),
        };
        Ok(Plan {
            work,
            argv: command.argv,
            env: bubblewrap::environment(command.env, temporary),
            cwd: command.cwd,
            read,
            write,
            in_memory,
            fixed,
            network: self.policy.network,
            profile: command.profile,
            unix_sockets: may_have_unix_sockets(self.mode, self.policy.network),
            limits: command.limits,
            landlock: match self.mode {
                Mode::BubblewrapOnly => Layer::LeftOut,
                Mode::Both | Mode::LandlockOnly => layers.landlock,
            },
            seccomp: layers.seccomp,
            watchdog: layers.watchdog,
            namespaces: self.scratch.is_none(),
            memory_group: self.memory_group,
            memory_events: None,
            stdio: [0; 3],
            lifeline: 0,
            handover: None,
            clean_up: CleanUpDescriptors::default(),
        })
    }
}

fn in_memory(view: &View) -> Vec<PathBuf> {
    bubblewrap::in_memory(view).map(PathBuf::from).collect()
}

/// Whether sockets of this machine's own kind lead to nothing outside. Those with a path do not if the view hides it;
/// those without one belong to a network, and are the kernel's to guard if that is lango's own.
fn may_have_unix_sockets(mode: Mode, network: Network) -> bool {
    match (mode, network) {
        (Mode::LandlockOnly, _) | (Mode::BubblewrapOnly, Network::Host) => false,
        (Mode::Both, Network::Host) => kernel_abi() >= SCOPES_ABI,
        (Mode::Both | Mode::BubblewrapOnly, Network::None | Network::Proxied) => true,
    }
}

/// The rules about files inside of bubblewrap's view.
fn rules(view: &View) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let reads = view
        .paths(Show::Read)
        .chain(view.paths(Show::Keep))
        .cloned();
    let writes = view.paths(Show::Write).cloned();
    (reads.collect(), writes.chain(in_memory(view)).collect())
}
