//! What must be in its place inside: told to the guard, which looks before it starts the command.
//!
//! Mounts go by paths. Another command, running meanwhile in the same workspace, could put a link in the place of a
//! folder on such a path just when bubblewrap follows it. So the launcher notes what it means, without following links,
//! and the guard compares.

use super::view::{Show, View};
use crate::LaunchError;
use crate::plan::Fixed;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use std::path::Path;

/// Notes what is in the writable folders by its path.
pub(crate) fn note(view: &View) -> Result<Vec<Fixed>, LaunchError> {
    let roots: Vec<&Path> = view.paths(Show::Write).map(|path| path.as_path()).collect();
    let in_reach = |path: &Path| roots.iter().any(|root| path.starts_with(root));
    let places = view.items.iter().filter(|(path, _)| in_reach(path));
    let note = |(path, show): (&std::path::PathBuf, &Show)| {
        let numbers = numbers(path).map_err(|error| LaunchError::Policy {
            path: path.clone(),
            problem: format!("it changed while a command was started ({error}); try again"),
        })?;
        let is_hidden = matches!(show, Show::HideFolder | Show::HideFile);
        Ok(Fixed {
            path: path.clone(),
            numbers: (!is_hidden).then_some(numbers),
            is_closed: is_hidden || *show == Show::Keep,
        })
    };
    places.map(note).collect()
}

fn numbers(path: &Path) -> rustix::io::Result<(u64, u64)> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let place = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
    let stat = rustix::fs::fstat(&place)?;
    Ok((stat.st_dev, stat.st_ino))
}

/// Whether all is in its place; if not, what is not.
pub(crate) fn verify(fixed: &[Fixed]) -> Result<(), String> {
    for place in fixed {
        let moved = |problem: &str| format!("`{}` {problem}", place.path.display());
        let found = numbers(&place.path).map_err(|error| moved(&error.to_string()))?;
        if place.numbers.is_some_and(|expected| expected != found) {
            return Err(moved("was replaced while the command was started"));
        }
        let is_read_only = rustix::fs::statvfs(&place.path).is_ok_and(|numbers| {
            numbers
                .f_flag
                .contains(rustix::fs::StatVfsMountFlags::RDONLY)
        });
        if place.is_closed && !is_read_only {
            return Err(moved("is not closed to writing"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_replaced_or_lies_open_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let real = std::fs::canonicalize(folder.path()).unwrap();
        let path = real.join("kept");
        std::fs::create_dir(&path).unwrap();
        let place = |is_closed| {
            let numbers = Some(numbers(&path).unwrap());
            vec![Fixed {
                path: path.clone(),
                numbers,
                is_closed,
            }]
        };
        let open = place(false);
        assert_eq!(verify(&open), Ok(()));
        assert!(verify(&place(true)).is_err());
        std::fs::rename(&path, real.join("moved")).unwrap();
        assert!(verify(&open).is_err());
        std::os::unix::fs::symlink(real.join("moved"), &path).unwrap();
        assert!(verify(&open).is_err());
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(verify(&open).is_err());
    }
}
