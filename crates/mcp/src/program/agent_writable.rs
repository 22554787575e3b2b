//! Decides whether agents can control what is at a path.
//!
//! Checking the real path is not enough: agents can redirect a link in the workspace, and replace a folder along the
//! path. So every entry along the path counts, including links.

use lango_sandbox::{Access, Policy};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// Maximum number of links per path, the same as in the kernel.
const MAX_LINKS: usize = 40;

/// Returns whether agents can change or replace the file at this absolute path, which need not exist.
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
        // The entry of a writable folder itself is in a parent that agents cannot write, so they cannot replace it.
        if can_write(&entry) && (can_write(&at) || rest.is_empty()) {
            return true;
        }
        match std::fs::read_link(&entry) {
            Ok(target) if links < MAX_LINKS => {
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

/// Returns whether agents can create files in this folder.
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
    fn every_entry_along_a_path_counts() {
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
