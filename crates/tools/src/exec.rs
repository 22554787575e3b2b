//! The tools that run commands: `exec`, `exec_bg`, `exec_status`, `exec_stop`.
//!
//! Every command runs in the sandbox, under the same policy as the file tools. Its output goes to a private file of
//! lango; the model sees the start and the end and can page through the rest with `exec_status`. A command of `exec`
//! lives as long as the call. A command of `exec_bg` lives until it ends, is stopped, or lango exits.

mod arguments;
mod hints;
mod jobs;
mod network;
mod output;
mod outputs;
pub(crate) mod page;
mod preview;
mod program;
mod report;
pub(crate) mod request;
mod run;
mod secrets;
mod terminal_text;
mod tools;

use jobs::Jobs;
use lango_core::Tool;
use lango_net::{HostPattern, SecretAccess};
use lango_sandbox::{Launcher, Network, Policy, ResourceLimits};
pub use network::CommandProxy;
use outputs::{OutputQuota, Outputs};
pub(crate) use preview::preview;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Creates the tools that run commands.
pub fn command_tools(commands: &Commands) -> Vec<Arc<dyn Tool>> {
    vec![
        tools::exec(commands),
        tools::exec_bg(commands),
        tools::exec_status(commands),
        tools::exec_stop(commands),
    ]
}

/// Everything needed to run commands.
#[derive(Debug, Clone)]
pub struct CommandSetup {
    pub launcher: Launcher,
    /// What commands may touch.
    pub policy: Policy,
    /// The folder for the output of commands. It is private to lango, and the policy must hide it.
    pub outputs: PathBuf,
    pub limits: CommandLimits,
    /// The hosts that commands may contact through a proxy. If this is set, the policy's network becomes
    /// [`Network::Proxied`](lango_sandbox::Network::Proxied); otherwise it is never `Proxied`.
    pub proxy: Option<CommandProxy>,
    /// Access to the secrets that the user bound to commands.
    pub secrets: Option<SecretAccess>,
}

/// Resource limits of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandLimits {
    /// Time limit of a command of `exec` or a skill's script. Should be shorter than the time limit of a tool call.
    pub time: Duration,
    /// Time limit of a background job.
    pub job_time: Duration,
    /// Maximum number of background jobs that run at the same time.
    pub jobs: usize,
    /// Maximum stored output of one command.
    pub output_bytes: u64,
    /// Maximum number of stored outputs.
    pub stored_outputs: usize,
    /// Maximum size of all stored outputs together.
    pub stored_bytes: u64,
    /// The limits that the sandbox enforces. Their `time` is ignored.
    pub command: ResourceLimits,
}

impl Default for CommandLimits {
    fn default() -> Self {
        const MIB: u64 = 1 << 20;
        Self {
            time: Duration::from_secs(110),
            job_time: Duration::from_secs(12 * 60 * 60),
            jobs: 8,
            output_bytes: 64 * MIB,
            stored_outputs: 200,
            stored_bytes: 256 * MIB,
            command: ResourceLimits::default(),
        }
    }
}

/// A runner of commands, which tracks the commands it started. Clones share them. Background jobs are stopped when the
/// last clone is dropped.
#[derive(Debug, Clone)]
pub struct Commands {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    launcher: Launcher,
    policy: Policy,
    proxy: Option<CommandProxy>,
    secrets: Option<SecretAccess>,
    limits: CommandLimits,
    outputs: Outputs,
    jobs: Jobs,
}

impl Commands {
    /// Creates the runner. Touches nothing on disk before the first command.
    pub fn new(setup: CommandSetup) -> Self {
        let limits = setup.limits;
        let quota = OutputQuota {
            output_bytes: limits.output_bytes,
            files: limits.stored_outputs,
            bytes: limits.stored_bytes,
        };
        let mut policy = setup.policy;
        policy.network = match (&setup.proxy, policy.network) {
            (Some(_), _) => Network::Proxied,
            (None, Network::Proxied) => Network::None,
            (None, network) => network,
        };
        Self {
            inner: Arc::new(Inner {
                launcher: setup.launcher,
                policy,
                proxy: setup.proxy,
                secrets: setup.secrets,
                limits,
                outputs: Outputs::at(setup.outputs, quota),
                jobs: Jobs::new(limits.jobs, limits.stored_outputs),
            }),
        }
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.inner.policy
    }

    /// Returns the hosts that commands may contact through a proxy.
    pub(crate) fn hosts(&self) -> Vec<HostPattern> {
        let proxy = self.inner.proxy.as_ref();
        proxy.map(|proxy| proxy.hosts.clone()).unwrap_or_default()
    }

    /// Returns the time limit of a foreground command.
    pub(crate) fn time_limit(&self) -> Duration {
        self.inner.limits.time
    }
}
