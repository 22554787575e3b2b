//! Whether agents can decide what is found at a path.
//!
//! The real path alone does not tell: a link in the workspace can be turned elsewhere, and so can a folder on the way. So
//! every entry on the way counts, links included.

use lango_sandbox::{Access, Policy};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// How many links one path may lead over, as in the kernel.
const MOST_LINKS: usize = 40;

/// Whether agents can change the file at this path, or put another in its place. The path is absolute; it need not exist.
pub(super) fn can_agents_replace(agents: &Policy, path: &Path) -> bool {
    let mut links = 0;
    let mut rest = parts(path);
    let mut at = PathBuf::from("/");
    while let Some(part) = rest.pop_front() {
        if part == ".." {
            at.pop();
            continue;
        }
        let entry = at.join(&part);
        let can_write = |path: &Path| agents.access(path) == Access::Write;
        // A writable folder's own entry lies in a folder that agents cannot write, and stays where it is.
        if can_write(&entry) && (can_write(&at) || rest.is_empty()) {
            return true;
        }
        match std::fs::read_link(&entry) {
            Ok(target) if links < MOST_LINKS => {
                links += 1;
                if target.is_absolute() {
                    at = PathBuf::from("/");
                }
                let mut target = parts(&target);
                target.append(&mut rest);
                rest = target;
            }
            _ => at = entry,
        }
    }
    false
}

/// Whether agents can put files into this folder.
pub(super) fn can_agents_write_in(agents: &Policy, folder: &Path) -> bool {
    can_agents_replace(agents, &folder.join("entry"))
}

fn parts(path: &Path) -> VecDeque<OsString> {
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn every_entry_on_the_way_to_a_file_counts() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["work/.git", "work/sub", "out", "safe"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        std::fs::write(root.join("safe/tool"), "").unwrap();
        symlink(root.join("safe/tool"), root.join("work/link")).unwrap();
        symlink("../work/sub", root.join("safe/into")).unwrap();
        symlink("loop", root.join("safe/loop")).unwrap();
        let mut agents = Policy::of(root.join("work"));
        agents.write = vec![root.join("out")];
        let can = |path: &str| can_agents_replace(&agents, &root.join(path));
        for path in [
            "work/server.py",
            "work/sub/x",
            "work/link",
            "work/../work/x",
            "safe/into/x",
            "safe/../out/x",
            "out/x",
        ] {
            assert!(can(path), "{path}");
        }
        for path in [
            "safe/tool",
            "work/.git/hooks/x",
            "safe/loop",
            "work/../safe/tool",
        ] {
            assert!(!can(path), "{path}");
        }
        assert!(can_agents_write_in(&agents, &root.join("work")));
        assert!(!can_agents_write_in(&agents, &root.join("safe")));
    }
}
