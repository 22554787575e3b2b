//! The tools that run commands: `exec`, `exec_bg`, `exec_status`, `exec_stop`.
//!
//! Every command runs in the sandbox, with the policy that the file tools keep too. What it prints goes to a file of
//! lango's own; the model is shown the start and the end and pages through the rest with `exec_status`. A command that is
//! run by `exec` lives as long as the call; one that is started by `exec_bg` until it ends, is stopped, or lango ends.

mod arguments;
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
mod tools;

use jobs::Jobs;
use lango_core::Tool;
use lango_net::{HostPattern, SecretAccess};
use lango_sandbox::{Launcher, Limits, Network, Policy};
pub use network::CommandProxy;
use outputs::{Outputs, Room};
pub(crate) use preview::preview;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The tools that run commands.
pub fn command_tools(commands: &Commands) -> Vec<Arc<dyn Tool>> {
    vec![
        tools::exec(commands),
        tools::exec_bg(commands),
        tools::exec_status(commands),
        tools::exec_stop(commands),
    ]
}

/// What commands are run with.
#[derive(Debug, Clone)]
pub struct CommandSetup {
    /// What starts them.
    pub launcher: Launcher,
    /// What they may touch.
    pub policy: Policy,
    /// Where what they print is kept: a folder of lango's own that the policy hides.
    pub outputs: PathBuf,
    /// What they may use up.
    pub limits: CommandLimits,
    /// The hosts that they may contact through a proxy. With it the policy's network is
    /// [`Network::Proxied`](lango_sandbox::Network::Proxied), without it never.
    pub proxy: Option<CommandProxy>,
    /// The secrets that they may use, if their user bound some.
    pub secrets: Option<SecretAccess>,
}

/// What commands may use up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandLimits {
    /// How long a command of `exec` or a skill's script may run. Should be less than a tool call may take.
    pub time: Duration,
    /// How long a job in the background may run.
    pub job_time: Duration,
    /// How many jobs may run in the background at a time.
    pub jobs: usize,
    /// How much is kept of what one command prints.
    pub output_bytes: u64,
    /// How many outputs are kept, and how many bytes of all.
    pub kept_outputs: usize,
    /// How many bytes of all outputs are kept.
    pub kept_bytes: u64,
    /// The rest; the time in it is not looked at.
    pub command: Limits,
}

impl Default for CommandLimits {
    fn default() -> Self {
        const MIB: u64 = 1 << 20;
        Self {
            time: Duration::from_secs(110),
            job_time: Duration::from_secs(12 * 60 * 60),
            jobs: 8,
            output_bytes: 64 * MIB,
            kept_outputs: 200,
            kept_bytes: 256 * MIB,
            command: Limits::default(),
        }
    }
}

/// What runs commands, and knows those it started. Cloning it shares them; with the last clone its jobs end.
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
    /// Nothing is run, and nothing touched, before the first command.
    pub fn new(setup: CommandSetup) -> Self {
        let limits = setup.limits;
        let room = Room {
            output_bytes: limits.output_bytes,
            files: limits.kept_outputs,
            bytes: limits.kept_bytes,
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
                outputs: Outputs::at(setup.outputs, room),
                jobs: Jobs::new(limits.jobs, limits.kept_outputs),
            }),
        }
    }

    /// What its commands may touch.
    pub(crate) fn policy(&self) -> &Policy {
        &self.inner.policy
    }

    /// The hosts that its commands may contact through a proxy.
    pub(crate) fn hosts(&self) -> Vec<HostPattern> {
        let proxy = self.inner.proxy.as_ref();
        proxy.map(|proxy| proxy.hosts.clone()).unwrap_or_default()
    }

    /// How long a command in the foreground may run.
    pub(crate) fn time(&self) -> Duration {
        self.inner.limits.time
    }
}
