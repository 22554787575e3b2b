//! Where lango's files are, how large they are, and how to uninstall lango.

use crate::app::failure::Failure;
use crate::app::roster::agents_dir;
use lango_config::{LoadedConfig, Paths, ProcessEnv, StoreLocation};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The command that removes the binary.
const UNINSTALL: &str = "cargo uninstall lango-cli";

/// How many files and folders are counted for one size.
const MAX_ENTRIES: usize = 100_000;

/// The files and folders of lango.
pub struct Listing {
    pub entries: Vec<PathEntry>,
    /// The database, if it is not a file.
    pub server: Option<String>,
    /// Why the configuration could not be read, so that these are the default locations.
    pub problem: Option<String>,
    /// The folders and files to delete after uninstalling.
    remove: Vec<PathBuf>,
}

/// A file or folder.
pub struct PathEntry {
    pub name: &'static str,
    pub path: PathBuf,
    /// `None` if it does not exist.
    pub size: Option<DiskSize>,
}

/// The size of a file, or of everything in a folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskSize {
    pub bytes: u64,
    /// Whether there are more files than lango counts.
    pub is_minimum: bool,
}

impl DiskSize {
    /// Measures a path without following links; `None` if it does not exist.
    pub fn of(path: &Path) -> Option<Self> {
        let found = path.symlink_metadata().ok()?;
        let mut size = Self {
            bytes: if found.is_dir() { 0 } else { found.len() },
            is_minimum: false,
        };
        let mut folders: Vec<PathBuf> = found
            .is_dir()
            .then(|| path.to_owned())
            .into_iter()
            .collect();
        let mut counted = 0;
        while let Some(folder) = folders.pop() {
            for entry in folder.read_dir().into_iter().flatten().flatten() {
                counted += 1;
                if counted > MAX_ENTRIES {
                    size.is_minimum = true;
                    return Some(size);
                }
                match entry.metadata() {
                    Ok(found) if found.is_dir() => folders.push(entry.path()),
                    Ok(found) => size.bytes = size.bytes.saturating_add(found.len()),
                    Err(_) => size.is_minimum = true,
                }
            }
        }
        Some(size)
    }

    /// Formats the size: `1.5 MiB`.
    pub fn describe(self) -> String {
        const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        let unit = UNITS.into_iter().find(|(unit, _)| self.bytes >= *unit);
        let size = match unit {
            Some((unit, name)) => format!("{:.1} {name}", self.bytes as f64 / unit as f64),
            None => format!("{} bytes", self.bytes),
        };
        if self.is_minimum {
            format!("more than {size}")
        } else {
            size
        }
    }
}

impl Listing {
    /// Lists everything, even if the configuration cannot be read.
    pub fn read(flags: Vec<String>) -> Result<Self, Failure> {
        let process_env = ProcessEnv::from_process(flags)?;
        let paths = Paths::locate(&process_env)?;
        let (loaded, problem) = match lango_config::load(&process_env) {
            Ok(loaded) => (Some(loaded), None),
            Err(problems) => (None, Some(problems.to_string())),
        };
        Ok(Self::new(
            &paths,
            loaded.as_ref(),
            problem,
            &process_env.cwd,
        ))
    }

    fn new(
        paths: &Paths,
        loaded: Option<&LoadedConfig>,
        problem: Option<String>,
        workspace: &Path,
    ) -> Self {
        let config = paths.user_file.parent().unwrap_or(Path::new("."));
        let (database, server) = match loaded.map(|loaded| &loaded.settings.session.store) {
            Some(StoreLocation::Sqlite(path)) => (Some(path.clone()), None),
            Some(place @ StoreLocation::Postgres(_)) => (None, Some(place.to_string())),
            None => (Some(paths.database()), None),
        };
        let agents = loaded.map_or_else(|| config.join("agents"), agents_dir);
        let skills = paths.skills(workspace).into_iter().next();
        let entries = [
            ("configuration", Some(paths.user_file.clone())),
            ("project configuration", paths.project_file.clone()),
            ("credentials", Some(paths.credentials())),
            ("data", Some(paths.data.clone())),
            ("database", database.clone()),
            ("trash", Some(paths.trash())),
            ("state", Some(paths.state.clone())),
            ("chat history", Some(paths.chat_history())),
            ("cache", Some(paths.model_lists())),
            ("MCP servers", Some(paths.mcp_servers())),
            ("agents", Some(agents)),
            ("skills", skills.map(|folder| folder.path)),
        ];
        let entries = entries.into_iter().filter_map(|(name, path)| {
            let path = path?;
            let size = DiskSize::of(&path);
            Some(PathEntry { name, path, size })
        });
        let mut remove: Vec<PathBuf> = Vec::new();
        let folders = [config.to_owned(), paths.data.clone(), paths.state.clone()];
        let others = std::iter::once(paths.mcp_servers()).chain(database);
        for path in folders.into_iter().chain(others) {
            if !remove.iter().any(|folder| path.starts_with(folder)) {
                remove.push(path);
            }
        }
        remove.retain(|path| path.symlink_metadata().is_ok());
        Self {
            entries: entries.collect(),
            server,
            problem,
            remove,
        }
    }

    /// Returns the listing as JSON.
    pub fn json(&self) -> Value {
        let rows = self.entries.iter().map(|entry| {
            json!({
                "name": entry.name,
                "path": entry.path,
                "exists": entry.size.is_some(),
                "bytes": entry.size.map(|size| size.bytes),
            })
        });
        json!({
            "paths": rows.collect::<Vec<_>>(),
            "database_server": self.server,
            "problem": self.problem,
            "uninstall": { "command": UNINSTALL, "remove": self.remove },
        })
    }

    /// Describes how to uninstall lango.
    pub fn uninstall_note(&self) -> String {
        let paths = self.remove.iter().map(|path| path.display().to_string());
        let paths: Vec<String> = paths.collect();
        match paths.as_slice() {
            [] => format!("to uninstall: {UNINSTALL}; there is nothing else to delete"),
            paths => format!(
                "to uninstall: {UNINSTALL}, then delete {} (sessions, keys and settings are lost)",
                paths.join(" and ")
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_as_large_as_its_files_and_links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/one"), "12345").unwrap();
        std::fs::write(root.join("a/b/two"), "123").unwrap();
        std::fs::write(root.join("large"), "x".repeat(5000)).unwrap();
        std::os::unix::fs::symlink(root, root.join("a/b/loop")).unwrap();
        let link = root.join("a/b/loop").symlink_metadata().unwrap().len();
        let size = DiskSize::of(&root.join("a")).unwrap();
        assert_eq!((size.bytes, size.is_minimum), (8 + link, false));
        assert_eq!(DiskSize::of(&root.join("absent")), None);
    }
}
