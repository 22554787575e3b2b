//! What the launcher tells the inner helper. It travels through a file in memory, not through arguments: those are shown
//! to everyone on the machine, and a variable such as `LD_PRELOAD` must not reach any program before the command itself.

use crate::Limits;
use crate::layers::Layer;
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
    pub(crate) network: bool,
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
    /// What becomes the command's input, output and complaints, and the pipe that breaks when lango is gone.
    pub(crate) stdio: [RawFd; 3],
    pub(crate) lifeline: RawFd,
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
}

impl Plan {
    /// The plan as bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer(Vec::new());
        out.number(matches!(self.work, Work::Probe).into());
        out.list(self.argv.iter().map(|text| text.as_bytes()));
        out.list(self.env.iter().map(|(name, _)| name.as_bytes()));
        out.list(self.env.iter().map(|(_, value)| value.as_bytes()));
        out.bytes(self.cwd.as_os_str().as_bytes());
        out.list(self.read.iter().map(|path| path.as_os_str().as_bytes()));
        out.list(self.write.iter().map(|path| path.as_os_str().as_bytes()));
        out.list(
            self.in_memory
                .iter()
                .map(|path| path.as_os_str().as_bytes()),
        );
        out.number(self.fixed.len() as u64);
        for place in &self.fixed {
            out.bytes(place.path.as_os_str().as_bytes());
            out.number(place.numbers.is_some().into());
            let (disk, own) = place.numbers.unwrap_or_default();
            out.number(disk);
            out.number(own);
            out.number(place.is_closed.into());
        }
        out.number(self.network.into());
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
        out.0
    }

    /// The plan that these bytes are, if they are one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = Reader(bytes);
        let path = |bytes: Vec<u8>| PathBuf::from(OsString::from_vec(bytes));
        let work = match input.number()? {
            0 => Work::Command,
            _ => Work::Probe,
        };
        let argv = input.list()?.into_iter().map(OsString::from_vec).collect();
        let names = input.list()?.into_iter().map(OsString::from_vec);
        let values = input.list()?.into_iter().map(OsString::from_vec);
        let env = names.zip(values).collect();
        let cwd = path(input.bytes()?);
        let read = input.list()?.into_iter().map(path).collect();
        let write = input.list()?.into_iter().map(path).collect();
        let in_memory = input.list()?.into_iter().map(path).collect();
        let places = input.number()?;
        let fixed = (0..places).map(|_| input.fixed()).collect::<Option<_>>()?;
        let network = input.number()? != 0;
        let unix_sockets = input.number()? != 0;
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
            unix_sockets,
            limits,
            landlock: input.layer()?,
            seccomp: input.layer()?,
            watchdog: input.layer()?,
            namespaces: input.number()? != 0,
            memory_group: input.number()? != 0,
            stdio: [
                input.descriptor()?,
                input.descriptor()?,
                input.descriptor()?,
            ],
            lifeline: input.descriptor()?,
        })
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn list<'a>(&mut self, items: impl ExactSizeIterator<Item = &'a [u8]>) {
        self.number(items.len() as u64);
        items.for_each(|item| self.bytes(item));
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes.to_vec())
    }

    fn list(&mut self) -> Option<Vec<Vec<u8>>> {
        let length = self.number()?;
        (0..length).map(|_| self.bytes()).collect()
    }

    fn layer(&mut self) -> Option<Layer> {
        Some(match self.number()? {
            0 => Layer::Used,
            1 => Layer::LeftOut,
            _ => Layer::Failing,
        })
    }

    fn fixed(&mut self) -> Option<Fixed> {
        let path = PathBuf::from(OsString::from_vec(self.bytes()?));
        let is_known = self.number()? != 0;
        let numbers = (self.number()?, self.number()?);
        Some(Fixed {
            path,
            numbers: is_known.then_some(numbers),
            is_closed: self.number()? != 0,
        })
    }

    fn descriptor(&mut self) -> Option<RawFd> {
        self.number()?.try_into().ok()
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
            network: true,
            unix_sockets: false,
            limits: Limits {
                time: None,
                ..Limits::default()
            },
            landlock: Layer::Failing,
            seccomp: Layer::Used,
            watchdog: Layer::LeftOut,
            namespaces: true,
            memory_group: false,
            stdio: [7, 8, 9],
            lifeline: 10,
        };
        let bytes = plan.encode();
        assert_eq!(Plan::decode(&bytes), Some(plan));
        for length in 0..bytes.len() {
            assert_eq!(Plan::decode(&bytes[..length]), None);
        }
    }
}
