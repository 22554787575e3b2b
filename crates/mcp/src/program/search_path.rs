//! Where programs and libraries are found by name.
//!
//! lango looks up a program itself, so that what was checked is what runs.

use super::agent_writable::can_agents_write_in;
use lango_sandbox::Policy;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The `PATH` of commands in the sandbox that bring none of their own.
const SANDBOX_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Variables with directories from which programs load code, besides `PATH`.
pub(super) const LIBRARY_PATHS: [&str; 5] = [
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "NODE_PATH",
    "PERL5LIB",
    "RUBYLIB",
];

/// The directories of `PATH`; an error says which of them agents can write, as the programs that the server starts in
/// turn are looked up there too.
pub(super) fn directories(path: Option<&str>, agents: &Policy) -> Result<Vec<PathBuf>, String> {
    let path = path.unwrap_or(SANDBOX_PATH);
    check("PATH", path, agents)?;
    Ok(path.split(':').map(PathBuf::from).collect())
}

/// Refuses a list of directories if agents can write one of them.
pub(super) fn check(variable: &str, directories: &str, agents: &Policy) -> Result<(), String> {
    // A relative one is looked up in the server's private directory.
    let mut absolute = directories.split(':').filter(|path| path.starts_with('/'));
    match absolute.find(|path| can_agents_write_in(agents, Path::new(path))) {
        Some(found) => Err(format!(
            "its {variable} has `{found}`, where agents can write; take that directory out of {variable}"
        )),
        None => Ok(()),
    }
}

/// The program of this name in the first directory that has it; none for a name with a slash, which is a path already.
pub(super) fn find(name: &str, directories: &[PathBuf]) -> Option<String> {
    if name.contains('/') {
        return None;
    }
    let candidates = directories
        .iter()
        .filter(|directory| directory.is_absolute());
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
    fn a_directory_that_agents_can_write_is_no_place_to_look_for_programs() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let agents = Policy::of(root.join("work"));
        assert!(directories(None, &agents).is_ok());
        let path = format!("/usr/bin:{}", root.join("work/bin").display());
        let error = directories(Some(&path), &agents).unwrap_err();
        assert!(
            error.contains("work/bin`, where agents can write"),
            "{error}"
        );
    }

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
        let found = find("tool", &[one.clone(), two.clone()]);
        assert_eq!(found.as_deref(), two.join("tool").to_str());
        assert_eq!(find("./tool", &[two]), None);
        assert_eq!(find("tool", &[one]), None);
    }
}
