//! What the launcher tells the inner helper. It travels through a file in memory, not through arguments: those are shown
//! to everyone on the machine, and a variable such as `LD_PRELOAD` must not reach any program before the command itself.

use crate::codec::{Reader, Writer};
use crate::layers::Layer;
use crate::{Limits, Network, Profile};
use std::ffi::OsString;
use std::os::fd::RawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

/// What the inner helper is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) work: Work,
    pub(crate) argv: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cwd: PathBuf,
    pub(crate) read: Vec<PathBuf>,
    pub(crate) write: Vec<PathBuf>,
    /// Folders of its own that lie in memory.
    pub(crate) in_memory: Vec<PathBuf>,
    /// What must be in its place before the command is started.
    pub(crate) fixed: Vec<Fixed>,
    pub(crate) network: Network,
    pub(crate) profile: Profile,
    /// Whether sockets of this machine's own kind can be made; without a view of its own they reach other programs.
    pub(crate) unix_sockets: bool,
    pub(crate) limits: Limits,
    pub(crate) landlock: Layer,
    pub(crate) seccomp: Layer,
    pub(crate) watchdog: Layer,
    /// Whether bubblewrap made the surroundings: namespaces, and bounded places for short-lived files.
    pub(crate) namespaces: bool,
    /// Whether the kernel bounds the memory of all processes together.
    pub(crate) memory_group: bool,
    /// The OOM-kill counter of that group, open for reading.
    pub(crate) memory_events: Option<RawFd>,
    /// What becomes the command's input, output and complaints, and the pipe that breaks when lango is gone.
    pub(crate) stdio: [RawFd; 3],
    pub(crate) lifeline: RawFd,
    /// For a network of its own: where the listeners go.
    pub(crate) handover: Option<Handover>,
    pub(crate) clean_up: CleanUpDescriptors,
}

/// Where the guard sends the listeners of the command's own network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Handover {
    pub(crate) socket: RawFd,
    /// The number of the launcher's network namespace, in which the guard must not be.
    pub(crate) outer_network: u64,
}

/// The open handles with which the guard cleans up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CleanUpDescriptors {
    /// The record of what has to be checked.
    pub(crate) record: RawFd,
    /// One for each writable directory in the record, in its order; those that cannot be opened are missing.
    pub(crate) roots: Vec<Option<RawFd>>,
    pub(crate) trash: Option<RawFd>,
    /// Files that were born later are not the command's, in nanoseconds since 1970; zero if there is no such time.
    pub(crate) until_ns: u64,
}

/// Something that must be in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fixed {
    pub(crate) path: PathBuf,
    /// Which one it is: the number of its disk and its own.
    pub(crate) numbers: Option<(u64, u64)>,
    /// Whether nothing may be written there.
    pub(crate) is_closed: bool,
}

/// What is done once all layers hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// The command is run.
    Command,
    /// The helper itself tries to get out, and prints what came of it.
    Probe,
    /// The helper itself tries whether namespaces can be nested, and prints what failed.
    Nesting,
    /// Nothing is run; the guard cleans up after a command whose own guard was killed.
    CleanUp,
}

impl Plan {
    /// The plan as bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.number(self.work as u64);
        out.list(self.argv.iter().map(|text| text.as_bytes()));
        out.list(self.env.iter().map(|(name, _)| name.as_bytes()));
        out.list(self.env.iter().map(|(_, value)| value.as_bytes()));
        out.path(&self.cwd);
        out.paths(self.read.iter());
        out.paths(self.write.iter());
        out.paths(self.in_memory.iter());
        out.number(self.fixed.len() as u64);
        for place in &self.fixed {
            out.path(&place.path);
            out.number(place.numbers.is_some().into());
            let (disk, own) = place.numbers.unwrap_or_default();
            out.number(disk);
            out.number(own);
            out.number(place.is_closed.into());
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

    /// The plan that these bytes are, if they are one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = Reader(bytes);
        let work = match input.number()? {
            0 => Work::Command,
            1 => Work::Probe,
            2 => Work::Nesting,
            _ => Work::CleanUp,
        };
        let argv = input.list(Reader::text)?;
        let names = input.list(Reader::text)?;
        let values = input.list(Reader::text)?;
        let env = names.into_iter().zip(values).collect();
        let cwd = input.path()?;
        let (read, write, in_memory) = (input.paths()?, input.paths()?, input.paths()?);
        let fixed = input.list(Reader::fixed)?;
        let network = match input.number()? {
            0 => Network::None,
            1 => Network::Proxied,
            _ => Network::Host,
        };
        let profile = match input.number()? {
            0 => Profile::Command,
            _ => Profile::Browser,
        };
        let unix_sockets = input.flag()?;
        let limits = Limits {
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
            work,
            argv,
            env,
            cwd,
            read,
            write,
            in_memory,
            fixed,
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

/// What plans need besides the plain numbers and bytes.
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

    fn fixed(&mut self) -> Option<Fixed> {
        let path = self.path()?;
        let is_known = self.flag()?;
        let numbers = (self.number()?, self.number()?);
        Some(Fixed {
            path,
            numbers: is_known.then_some(numbers),
            is_closed: self.flag()?,
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
    fn a_plan_arrives_as_it_was_sent() {
        let plan = Plan {
            work: Work::Command,
            argv: vec!["a".into(), "".into(), OsString::from_vec(vec![0xff, b'\n'])],
            env: vec![("A".into(), "1=2".into())],
            cwd: "/w".into(),
            read: vec!["/usr".into(), "/bin".into()],
            write: vec![],
            in_memory: vec!["/tmp".into()],
            fixed: vec![Fixed {
                path: "/w/.git".into(),
                numbers: Some((1, 2)),
                is_closed: true,
            }],
            network: Network::Proxied,
            profile: Profile::Browser,
            unix_sockets: false,
            limits: Limits {
                time: None,
                ..Limits::default()
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
