//! Looks up programs by name in `PATH`.
//!
//! lango does this itself, so that the program it checks is the one that runs.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The `PATH` of commands in the sandbox that do not set it.
pub(super) const SANDBOX_PATH: &str =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Returns the program with this name that a server without a `PATH` of its own would run.
pub fn find_program(name: &str) -> Option<String> {
    find(name, SANDBOX_PATH)
}

/// Returns the program with this name from the first directory of `PATH` that has it; `None` for a name with a slash,
/// which is already a path.
pub(super) fn find(name: &str, path: &str) -> Option<String> {
    if name.contains('/') {
        return None;
    }
    let directories = path.split(':').map(PathBuf::from);
    let candidates = directories.filter(|directory| directory.is_absolute());
    let mut candidates = candidates.map(|directory| directory.join(name));
    let found = candidates.find(|path| is_program(path))?;
    found.to_str().map(str::to_owned)
}

fn is_program(path: &Path) -> bool {
    let metadata = path.metadata();
    metadata.is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_directory_with_an_executable_file_decides() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
        for directory in [&one, &two] {
            std::fs::create_dir(directory).unwrap();
            std::fs::write(directory.join("tool"), "").unwrap();
        }
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(two.join("tool"), executable).unwrap();
        let [one, two] = [one, two].map(|path| path.display().to_string());
        let found = find("tool", &format!("{one}:{two}"));
        assert_eq!(found, Some(format!("{two}/tool")));
        assert_eq!(find("./tool", &two), None);
        assert_eq!(find("tool", &one), None);
    }
}
