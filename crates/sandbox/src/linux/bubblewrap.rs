//! The outer layer: bubblewrap's arguments for a view. It gives the command namespaces of its own and a disk that holds
//! nothing but what the view shows.

use super::proc::Exposed;
use super::view::{Show, View};
use crate::{Limits, Network};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where the helper lies inside. Nothing is allowed to run it from there once the rules about files hold.
pub(crate) const HELPER: &str = "/.lango";
/// The user inside, when lango runs as root: not root, though it owns what root owns.
const USER: &str = "1000";

/// Where bubblewrap is looked for before `PATH`.
const PLACES: &[&str] = &["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"];

/// Where bubblewrap is, if it is anywhere.
pub(crate) fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let fixed = PLACES.iter().map(PathBuf::from);
    let named = std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join("bwrap"));
    fixed.chain(named).find(|program| program.is_file())
}

/// The folders that each command gets for itself, in memory, unless the policy opens the machine's own.
pub(crate) fn in_memory(view: &View) -> impl Iterator<Item = &'static str> {
    ["/tmp", "/dev/shm"]
        .into_iter()
        .filter(|path| !view.items.contains_key(Path::new(path)))
}

/// What bubblewrap is to build.
pub(crate) struct Build<'a> {
    pub(crate) view: &'a View,
    pub(crate) network: Network,
    /// What in `/proc` is covered one by one; if nothing, all of it is closed to writing.
    pub(crate) exposed: Vec<Exposed>,
    pub(crate) limits: &'a Limits,
    pub(crate) helper: &'a Path,
    pub(crate) is_root: bool,
}

impl Build<'_> {
    /// The arguments, each ended by a zero byte as bubblewrap reads them from a file.
    pub(crate) fn arguments(&self) -> Vec<u8> {
        let mut arguments = Arguments(Vec::new());
        self.namespaces(&mut arguments);
        for (path, show) in &self.places() {
            self.place(&mut arguments, path, *show);
        }
        // Only now: what is opened inside of a hidden folder needs a place there.
        for path in self.view.paths(Show::HideFolder) {
            arguments.add(["--remount-ro".as_ref(), path.as_path()]);
        }
        arguments.add(["--ro-bind".as_ref(), self.helper, HELPER.as_ref()]);
        self.close_proc(&mut arguments);
        arguments.add(["--remount-ro", "/dev"]);
        arguments.add(["--remount-ro", "/"]);
        arguments.add(["--chdir", "/"]);
        arguments.0
    }

    /// Closes to writing what belongs to no process in `/proc`.
    fn close_proc(&self, arguments: &mut Arguments) {
        if self.exposed.is_empty() {
            arguments.add(["--remount-ro", "/proc"]);
        }
        for exposed in &self.exposed {
            match exposed {
                Exposed::Directory(path) => {
                    arguments.hide_folder(path);
                    arguments.add(["--remount-ro".as_ref(), path.as_path()]);
                }
                Exposed::File(path) => arguments.hide_file(path),
            }
        }
    }

    fn namespaces(&self, arguments: &mut Arguments) {
        arguments.add([
            "--unshare-user",
            "--unshare-ipc",
            "--unshare-pid",
            "--unshare-uts",
        ]);
        arguments.add(["--unshare-cgroup-try", "--hostname", "sandbox"]);
        if self.network != Network::Host {
            arguments.add(["--unshare-net"]);
        }
        if self.is_root {
            arguments.add(["--uid", USER, "--gid", USER]);
        }
        // The helper is the first process inside and sees to the end of all others. It does not go by lango's thread
        // that started it, as `--die-with-parent` does, but by a pipe that lango holds.
        arguments.add(["--as-pid-1", "--new-session", "--cap-drop", "ALL"]);
    }

    /// All that is mounted, parents first.
    fn places(&self) -> Vec<(PathBuf, Place)> {
        let mut places: Vec<(PathBuf, Place)> = self
            .view
            .items
            .iter()
            .map(|(path, show)| (path.clone(), Place::Shown(*show)))
            .collect();
        places.push(("/dev".into(), Place::Devices));
        places.push(("/proc".into(), Place::Processes));
        let bytes = self.limits.memory_bytes / 4;
        places.extend(in_memory(self.view).map(|path| (path.into(), Place::Memory(bytes))));
        places.sort_by(|one, other| one.0.cmp(&other.0));
        places
    }

    fn place(&self, arguments: &mut Arguments, path: &Path, place: Place) {
        match place {
            Place::Shown(Show::Write | Show::Pin) => arguments.bind("--bind", path),
            Place::Shown(Show::Keep) => arguments.bind("--ro-bind", path),
            Place::Shown(Show::Read) => match std::fs::read_link(path) {
                // The folders of programs are links into `/usr` on most systems.
                Ok(target) if path.parent() == Some(Path::new("/")) => {
                    arguments.add(["--symlink".as_ref(), target.as_path(), path]);
                }
                _ => arguments.bind("--ro-bind", path),
            },
            Place::Shown(Show::HideFolder) => arguments.hide_folder(path),
            Place::Shown(Show::HideFile) => arguments.hide_file(path),
            Place::Devices => arguments.add(["--dev".as_ref(), path]),
            Place::Processes => arguments.add(["--proc".as_ref(), path]),
            Place::Memory(bytes) => {
                arguments.add(["--perms", "1777", "--size", &bytes.max(1 << 16).to_string()]);
                arguments.add(["--tmpfs".as_ref(), path]);
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Place {
    Shown(Show),
    Devices,
    Processes,
    Memory(u64),
}

struct Arguments(Vec<u8>);

impl Arguments {
    fn add<const N: usize, A: AsRef<Path>>(&mut self, arguments: [A; N]) {
        for argument in arguments {
            self.0.extend(argument.as_ref().as_os_str().as_bytes());
            self.0.push(0);
        }
    }

    fn hide_folder(&mut self, path: &Path) {
        self.add(["--perms", "0555", "--size", "4096"]);
        self.add(["--tmpfs".as_ref(), path]);
    }

    /// Devices cannot be opened through such a mount.
    fn hide_file(&mut self, path: &Path) {
        self.add(["--ro-bind".as_ref(), Path::new("/dev/null"), path]);
    }

    fn bind(&mut self, how: &str, path: &Path) {
        self.add([how.as_ref(), path, path]);
    }
}

/// What every command finds in its environment unless it brings its own.
pub(crate) fn environment(own: Vec<(OsString, OsString)>, tmp: &Path) -> Vec<(OsString, OsString)> {
    let tmp = tmp.as_os_str();
    let usual: [(&str, OsString); 5] = [
        (
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into(),
        ),
        ("HOME", tmp.into()),
        ("TMPDIR", tmp.into()),
        ("LANG", "C.UTF-8".into()),
        ("TERM", "dumb".into()),
    ];
    let mut environment: Vec<(OsString, OsString)> = usual
        .into_iter()
        .map(|(name, value)| (OsString::from(name), value))
        .filter(|(name, _)| own.iter().all(|(other, _)| other != name))
        .collect();
    environment.extend(own);
    environment
}
