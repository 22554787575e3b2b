//! The outer layer: builds bubblewrap's arguments from a view. Bubblewrap gives the command separate namespaces and a
//! file system that contains only what the view shows.

use super::proc::ExposedEntry;
use super::view::{View, Visibility};
use crate::{Network, ResourceLimits};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Path of the helper inside the sandbox. No command can run it from there once Landlock is active.
pub(crate) const HELPER: &str = "/.lango";
/// User id inside the sandbox if lango runs as root. It is not 0, although the user owns what root owns.
const USER: &str = "1000";

/// Paths where bubblewrap is looked for before `PATH`.
const STANDARD_PATHS: &[&str] = &["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"];

/// Finds bubblewrap.
pub(crate) fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let fixed = STANDARD_PATHS.iter().map(PathBuf::from);
    let named = std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join("bwrap"));
    fixed.chain(named).find(|program| program.is_file())
}

/// Returns the private in-memory folders of each command, except those that the policy opens on the machine.
pub(crate) fn in_memory(view: &View) -> impl Iterator<Item = &'static str> {
    ["/tmp", "/dev/shm"]
        .into_iter()
        .filter(|path| !view.items.contains_key(Path::new(path)))
}

/// The inputs for bubblewrap's arguments.
pub(crate) struct BubblewrapSetup<'a> {
    pub(crate) view: &'a View,
    pub(crate) network: Network,
    /// Entries of `/proc` that are covered one by one; if empty, all of `/proc` is read-only.
    pub(crate) exposed: Vec<ExposedEntry>,
    pub(crate) limits: &'a ResourceLimits,
    pub(crate) helper: &'a Path,
    pub(crate) is_root: bool,
}

impl BubblewrapSetup<'_> {
    /// Builds the arguments, each terminated by a NUL byte, as bubblewrap reads them from a file.
    pub(crate) fn arguments(&self) -> Vec<u8> {
        let mut arguments = Arguments(Vec::new());
        self.namespaces(&mut arguments);
        for (path, mount) in &self.mounts() {
            self.add_mount(&mut arguments, path, *mount);
        }
        // After the other mounts: paths opened inside of a hidden folder need a mount point there.
        for path in self.view.paths(Visibility::HiddenFolder) {
            arguments.add(["--remount-ro".as_ref(), path.as_path()]);
        }
        arguments.add(["--ro-bind".as_ref(), self.helper, HELPER.as_ref()]);
        self.close_proc(&mut arguments);
        arguments.add(["--remount-ro", "/dev"]);
        arguments.add(["--remount-ro", "/"]);
        arguments.add(["--chdir", "/"]);
        arguments.0
    }

    /// Makes the entries of `/proc` that belong to no process read-only.
    fn close_proc(&self, arguments: &mut Arguments) {
        if self.exposed.is_empty() {
            arguments.add(["--remount-ro", "/proc"]);
        }
        for exposed in &self.exposed {
            match exposed {
                ExposedEntry::Directory(path) => {
                    arguments.hide_folder(path);
                    arguments.add(["--remount-ro".as_ref(), path.as_path()]);
                }
                ExposedEntry::File(path) => arguments.hide_file(path),
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
        // The helper is the first process inside and ends all others. It must not end with the lango thread that
        // started it, so instead of `--die-with-parent` it watches a pipe to lango.
        arguments.add(["--as-pid-1", "--new-session", "--cap-drop", "ALL"]);
    }

    /// Returns all mounts, parents first.
    fn mounts(&self) -> Vec<(PathBuf, Mount)> {
        let mut mounts: Vec<(PathBuf, Mount)> = self
            .view
            .items
            .iter()
            .map(|(path, visibility)| (path.clone(), Mount::Shown(*visibility)))
            .collect();
        mounts.push(("/dev".into(), Mount::Devices));
        mounts.push(("/proc".into(), Mount::Processes));
        let bytes = self.limits.memory_bytes / 4;
        mounts.extend(in_memory(self.view).map(|path| (path.into(), Mount::Memory(bytes))));
        mounts.sort_by(|one, other| one.0.cmp(&other.0));
        mounts
    }

    fn add_mount(&self, arguments: &mut Arguments, path: &Path, mount: Mount) {
        match mount {
            Mount::Shown(Visibility::Write | Visibility::Pinned) => arguments.bind("--bind", path),
            Mount::Shown(Visibility::Protected) => arguments.bind("--ro-bind", path),
            Mount::Shown(Visibility::Read) => match std::fs::read_link(path) {
                // On most systems the folders of programs are links into `/usr`.
                Ok(target) if path.parent() == Some(Path::new("/")) => {
                    arguments.add(["--symlink".as_ref(), target.as_path(), path]);
                }
                _ => arguments.bind("--ro-bind", path),
            },
            Mount::Shown(Visibility::HiddenFolder) => arguments.hide_folder(path),
            Mount::Shown(Visibility::HiddenFile) => arguments.hide_file(path),
            Mount::Devices => arguments.add(["--dev".as_ref(), path]),
            Mount::Processes => arguments.add(["--proc".as_ref(), path]),
            Mount::Memory(bytes) => {
                arguments.add(["--perms", "1777", "--size", &bytes.max(1 << 16).to_string()]);
                arguments.add(["--tmpfs".as_ref(), path]);
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Mount {
    Shown(Visibility),
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

    /// Mounts `/dev/null` over a file. Devices cannot be opened through bubblewrap's bind mounts, so the file becomes
    /// unreadable.
    fn hide_file(&mut self, path: &Path) {
        self.add(["--ro-bind".as_ref(), Path::new("/dev/null"), path]);
    }

    fn bind(&mut self, how: &str, path: &Path) {
        self.add([how.as_ref(), path, path]);
    }
}

/// Returns the environment of a command: its own variables, and defaults for a few others.
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
