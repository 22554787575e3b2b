//! Finds an installed browser of the Chromium family, without starting a process.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// An installed browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrowserProgram {
    path: PathBuf,
}

/// The reason why no browser was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BrowserNotFound {
    #[error("no Chromium, Chrome or Edge found; install one or set `browser.path`")]
    NotInstalled,
    #[error("`browser.path` is `{}`, which is not a program; set it to the path of Chromium, Chrome or Edge", path.display())]
    NotAProgram { path: PathBuf },
}

/// Usual paths of the browser binaries. They are tried before the names in `PATH`, which are often wrapper scripts that
/// read files hidden by the sandbox.
const KNOWN_PATHS: [&str; 8] = [
    "/usr/lib/chromium/chromium",
    "/usr/lib64/chromium-browser/chromium-browser",
    "/usr/lib/chromium-browser/chromium-browser",
    "/opt/google/chrome/chrome",
    "/opt/microsoft/msedge/msedge",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
];

/// Names of browsers in `PATH`.
const PROGRAM_NAMES: [&str; 6] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "microsoft-edge",
    "microsoft-edge-stable",
];

/// Finds the configured browser or, if none is configured, the first installed one. `search_path` is the value of
/// `PATH`.
pub fn find_browser(
    configured: Option<&Path>,
    search_path: Option<&std::ffi::OsStr>,
) -> Result<BrowserProgram, BrowserNotFound> {
    if let Some(path) = configured {
        let program = path.canonicalize().ok().filter(|path| is_program(path));
        let program = program.ok_or_else(|| BrowserNotFound::NotAProgram {
            path: path.to_owned(),
        })?;
        return Ok(BrowserProgram { path: program });
    }
    let places = KNOWN_PATHS.iter().map(PathBuf::from);
    let folders: Vec<PathBuf> = search_path
        .map(|path| std::env::split_paths(path).collect())
        .unwrap_or_default();
    let named = folders
        .iter()
        .filter(|folder| folder.is_absolute() && !folder.starts_with("/snap"))
        .flat_map(|folder| PROGRAM_NAMES.iter().map(|name| folder.join(name)));
    let found = places.chain(named).find(|path| is_program(path));
    let path = found.and_then(|path| path.canonicalize().ok());
    path.map(|path| BrowserProgram { path })
        .ok_or(BrowserNotFound::NotInstalled)
}

fn is_program(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

impl BrowserProgram {
    /// Returns the program's path, with links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the folders that the browser must be able to read besides system folders.
    pub(crate) fn folders(&self) -> Vec<PathBuf> {
        let is_of_system = ["/usr", "/bin", "/lib"]
            .iter()
            .any(|folder| self.path.starts_with(folder));
        let own = self.path.parent().filter(|_| !is_of_system);
        own.map(Path::to_owned).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_configured_path_must_be_a_program() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("browser");
        fs::write(&path, "").unwrap();
        let found = find_browser(Some(&path), None);
        assert!(found.unwrap_err().to_string().contains("not a program"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(find_browser(Some(&path), None).is_ok());
    }
}
