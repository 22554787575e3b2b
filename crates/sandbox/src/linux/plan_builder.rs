//! Builds the plan for the inner helper from the policy, the view of the file system and the command.

use super::view::{View, Visibility};
use super::{Mode, bubblewrap, expected_paths, standalone_rules};
use crate::inner::{SCOPES_ABI, kernel_abi};
use crate::launcher::Launcher;
use crate::layers::Layer;
use crate::plan::{CleanUpDescriptors, HelperTask, Plan};
use crate::scratch::Scratch;
use crate::{Command, LaunchError, Network, Policy};
use std::path::{Path, PathBuf};

/// The inputs of a plan besides the command.
pub(super) struct PlanBuilder<'a> {
    pub(super) launcher: &'a Launcher,
    pub(super) mode: Mode,
    pub(super) policy: &'a Policy,
    pub(super) view: &'a View,
    /// A folder for temporary files; only without bubblewrap, which creates one in memory.
    pub(super) scratch: Option<&'a Scratch>,
    pub(super) memory_group: bool,
}

impl PlanBuilder<'_> {
    /// Builds the plan for a command. Its descriptors are filled in when they are created.
    pub(super) fn plan(&self, command: Command, task: HelperTask) -> Result<Plan, LaunchError> {
        let layers = &self.launcher.layers;
        let temporary = self.scratch.map_or(Path::new("/tmp"), Scratch::path);
        let (read, write) = match self.scratch {
            None => rules(self.view),
            Some(scratch) => standalone_rules::rules(self.view, scratch.path()),
        };
        let (in_memory, expected_paths) = match self.scratch {
            None => (in_memory(self.view), expected_paths::record(self.view)?),
            Some(_) => (Vec::new(), Vec::new()),
        };
        Ok(Plan {
            task,
            argv: command.argv,
            env: bubblewrap::environment(command.env, temporary),
            cwd: command.cwd,
            read,
            write,
            in_memory,
            expected_paths,
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

/// Whether a command may create Unix sockets, because they cannot reach programs outside. Sockets with a path are safe
/// if the view hides the path. Abstract sockets are safe in a separate network namespace; in lango's own network the
/// kernel must restrict them.
fn may_have_unix_sockets(mode: Mode, network: Network) -> bool {
    match (mode, network) {
        (Mode::LandlockOnly, _) | (Mode::BubblewrapOnly, Network::Host) => false,
        (Mode::Both, Network::Host) => kernel_abi() >= SCOPES_ABI,
        (Mode::Both | Mode::BubblewrapOnly, Network::None | Network::Proxied) => true,
    }
}

/// Returns the readable and the writable paths for Landlock inside bubblewrap's view.
fn rules(view: &View) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let reads = view
        .paths(Visibility::Read)
        .chain(view.paths(Visibility::Protected))
        .cloned();
    let writes = view.paths(Visibility::Write).cloned();
    (reads.collect(), writes.chain(in_memory(view)).collect())
}
