//! The plan: the launcher's instructions to the inner helper. It is passed in a memory file, not in arguments or
//! variables: every user of the machine can see arguments, and a variable such as `LD_PRELOAD` must not affect any
//! program but the command itself.

use crate::codec::{Reader, Writer};
use crate::layers::Layer;
use crate::{Network, ResourceLimits, SandboxProfile};
use std::ffi::OsString;
use std::os::fd::RawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

/// Instructions to the inner helper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) task: HelperTask,
    pub(crate) argv: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cwd: PathBuf,
    pub(crate) read: Vec<PathBuf>,
    pub(crate) write: Vec<PathBuf>,
    /// Private folders of the command that are in memory.
    pub(crate) in_memory: Vec<PathBuf>,
    /// Paths that the guard verifies before it starts the command.
    pub(crate) expected_paths: Vec<ExpectedPath>,
    pub(crate) network: Network,
    pub(crate) profile: SandboxProfile,
    /// Whether Unix sockets may be created. Without a separate view of the file system they could reach other programs.
    pub(crate) unix_sockets: bool,
    pub(crate) limits: ResourceLimits,
    pub(crate) landlock: Layer,
    pub(crate) seccomp: Layer,
    pub(crate) watchdog: Layer,
    /// Whether the helper runs in bubblewrap, with namespaces and size-limited folders for temporary files.
    pub(crate) namespaces: bool,
    /// Whether a control group limits the memory of all processes together.
    pub(crate) memory_group: bool,
    /// The OOM-kill counter of that group, open for reading.
    pub(crate) memory_events: Option<RawFd>,
    /// The command's standard input, output and error.
    pub(crate) stdio: [RawFd; 3],
    /// A pipe that breaks when lango ends.
    pub(crate) lifeline: RawFd,
    /// Where to send the listeners of a command with [`Network::Proxied`].
    pub(crate) handover: Option<Handover>,
    pub(crate) clean_up: CleanUpDescriptors,
}

/// Where the guard sends the listeners of the command's network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Handover {
    pub(crate) socket: RawFd,
    /// The inode number of the launcher's network namespace; the guard must be in a different one.
    pub(crate) outer_network: u64,
}

/// The open handles that the guard cleans up with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CleanUpDescriptors {
    /// The record with the checklist.
    pub(crate) record: RawFd,
    /// A handle for each writable directory of the checklist, in the same order; `None` if it could not be opened.
    pub(crate) roots: Vec<Option<RawFd>>,
    pub(crate) trash: Option<RawFd>,
    /// Files created after this time are not the command's. In nanoseconds since 1970; zero for no limit.
    pub(crate) until_ns: u64,
}

/// A path that the guard verifies before it starts the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExpectedPath {
    pub(crate) path: PathBuf,
    /// The expected device and inode numbers.
    pub(crate) identity: Option<(u64, u64)>,
    /// Whether the path must be on a read-only mount.
    pub(crate) is_read_only: bool,
}

/// What the helper does when all layers are set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HelperTask {
    /// Runs the command.
    Command,
    /// Tries to escape and prints the results.
    Probe,
    /// Tries to nest namespaces and prints what failed.
    Nesting,
    /// Runs nothing; the guard cleans up after a command whose own guard was killed.
    CleanUp,
}

impl Plan {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.number(self.task as u64);
        out.list(self.argv.iter().map(|text| text.as_bytes()));
        out.list(self.env.iter().map(|(name, _)| name.as_bytes()));
        out.list(self.env.iter().map(|(_, value)| value.as_bytes()));
        out.path(&self.cwd);
        out.paths(self.read.iter());
        out.paths(self.write.iter());
        out.paths(self.in_memory.iter());
        out.number(self.expected_paths.len() as u64);
        for entry in &self.expected_paths {
            out.path(&entry.path);
            out.number(entry.identity.is_some().into());
            let (device, inode) = entry.identity.unwrap_or_default();
            out.number(device);
            out.number(inode);
            out.number(entry.is_read_only.into());
        }
        out.number(self.network as u64);
        out.number(self.profile as u64);
        out.number(self.unix_sockets.into());
        let limits = &self.limits;
        out.number(limits.time.map_or(u64::MAX, |time| {
            u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
        }));
        out.number(limits.processes.into());
        out.number(limits.memory_bytes);
        out.number(limits.file_bytes);
        out.number(limits.written_bytes);
        for layer in [self.landlock, self.seccomp, self.watchdog] {
            out.number(layer as u64);
        }
        out.number(self.namespaces.into());
        out.number(self.memory_group.into());
        for fd in self.stdio.iter().chain([&self.lifeline]) {
            out.number(u64::from(fd.unsigned_abs()));
        }
        let optional = |fd: &Option<RawFd>| fd.map_or(u64::MAX, |fd| u64::from(fd.unsigned_abs()));
        out.number(optional(&self.memory_events));
        out.number(optional(&self.handover.map(|handover| handover.socket)));
        out.number(self.handover.map_or(0, |handover| handover.outer_network));
        let clean_up = &self.clean_up;
        out.number(u64::from(clean_up.record.unsigned_abs()));
        out.number(clean_up.roots.len() as u64);
        clean_up
            .roots
            .iter()
            .for_each(|root| out.number(optional(root)));
        out.number(optional(&clean_up.trash));
        out.number(clean_up.until_ns);
        out.0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = Reader(bytes);
        let task = match input.number()? {
            0 => HelperTask::Command,
            1 => HelperTask::Probe,
            2 => HelperTask::Nesting,
            _ => HelperTask::CleanUp,
        };
        let argv = input.list(Reader::text)?;
        let names = input.list(Reader::text)?;
        let values = input.list(Reader::text)?;
        let env = names.into_iter().zip(values).collect();
        let cwd = input.path()?;
        let (read, write, in_memory) = (input.paths()?, input.paths()?, input.paths()?);
        let expected_paths = input.list(Reader::expected_path)?;
        let network = match input.number()? {
            0 => Network::None,
            1 => Network::Proxied,
            _ => Network::Host,
        };
        let profile = match input.number()? {
            0 => SandboxProfile::Command,
            _ => SandboxProfile::Browser,
        };
        let unix_sockets = input.flag()?;
        let limits = ResourceLimits {
            time: match input.number()? {
                u64::MAX => None,
                milliseconds => Some(Duration::from_millis(milliseconds)),
            },
            processes: input.number()?.try_into().ok()?,
            memory_bytes: input.number()?,
            file_bytes: input.number()?,
            written_bytes: input.number()?,
        };
        Some(Self {
            task,
            argv,
            env,
            cwd,
            read,
            write,
            in_memory,
            expected_paths,
            network,
            profile,
            unix_sockets,
            limits,
            landlock: input.layer()?,
            seccomp: input.layer()?,
            watchdog: input.layer()?,
            namespaces: input.flag()?,
            memory_group: input.flag()?,
            stdio: [
                input.descriptor()?,
                input.descriptor()?,
                input.descriptor()?,
            ],
            lifeline: input.descriptor()?,
            memory_events: input.optional_descriptor()?,
            handover: input.handover()?,
            clean_up: CleanUpDescriptors {
                record: input.descriptor()?,
                roots: input.list(Reader::optional_descriptor)?,
                trash: input.optional_descriptor()?,
                until_ns: input.number()?,
            },
        })
    }
}

/// Decoding of the types that only plans use.
impl Reader<'_> {
    fn text(&mut self) -> Option<OsString> {
        self.bytes().map(OsString::from_vec)
    }

    fn layer(&mut self) -> Option<Layer> {
        Some(match self.number()? {
            0 => Layer::Used,
            1 => Layer::LeftOut,
            _ => Layer::Failing,
        })
    }

    fn expected_path(&mut self) -> Option<ExpectedPath> {
        let path = self.path()?;
        let is_known = self.flag()?;
        let identity = (self.number()?, self.number()?);
        Some(ExpectedPath {
            path,
            identity: is_known.then_some(identity),
            is_read_only: self.flag()?,
        })
    }

    fn handover(&mut self) -> Option<Option<Handover>> {
        let socket = self.optional_descriptor()?;
        let outer_network = self.number()?;
        Some(socket.map(|socket| Handover {
            socket,
            outer_network,
        }))
    }

    fn descriptor(&mut self) -> Option<RawFd> {
        self.number()?.try_into().ok()
    }

    fn optional_descriptor(&mut self) -> Option<Option<RawFd>> {
        match self.number()? {
            u64::MAX => Some(None),
            number => Some(Some(number.try_into().ok()?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoded_plan_decodes_to_the_same_plan() {
        let plan = Plan {
            task: HelperTask::Command,
            argv: vec!["a".into(), "".into(), OsString::from_vec(vec![0xff, b'\n'])],
            env: vec![("A".into(), "1=2".into())],
            cwd: "/w".into(),
            read: vec!["/usr".into(), "/bin".into()],
            write: vec![],
            in_memory: vec!["/tmp".into()],
            expected_paths: vec![ExpectedPath {
                path: "/w/.git".into(),
                identity: Some((1, 2)),
                is_read_only: true,
            }],
            network: Network::Proxied,
            profile: SandboxProfile::Browser,
            unix_sockets: false,
            limits: ResourceLimits {
                time: None,
                ..ResourceLimits::default()
            },
            landlock: Layer::Failing,
            seccomp: Layer::Used,
            watchdog: Layer::LeftOut,
            namespaces: true,
            memory_group: true,
            memory_events: Some(16),
            stdio: [7, 8, 9],
            lifeline: 10,
            handover: Some(Handover {
                socket: 14,
                outer_network: 15,
            }),
            clean_up: CleanUpDescriptors {
                record: 11,
                roots: vec![Some(12), None],
                trash: None,
                until_ns: 13,
            },
        };
        let bytes = plan.encode();
        assert_eq!(Plan::decode(&bytes), Some(plan));
        for length in 0..bytes.len() {
            assert_eq!(Plan::decode(&bytes[..length]), None);
        }
    }
}
