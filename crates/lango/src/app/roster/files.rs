//! Finds and reads agent files: which ones a directory has, whether they are trusted, and what is wrong with them.

use crate::app::failure::Failure;
use lango_config::TrustedFiles;
use lango_engine::AgentFile;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The most agent files to read from one directory.
const MAX_FILES: usize = 64;

/// The most entries to list of one directory.
const MAX_ENTRIES: usize = 4096;

/// How many problems are shown; the others are only counted.
const MAX_SHOWN: usize = 20;

/// Who controls a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileOwner {
    User,
    /// The project; its files are used only if the user trusts them.
    Project,
}

impl FileOwner {
    /// Returns the trust label for the text of a file. Trusting a project's file lets its agents work, but its text
    /// stays untrusted data.
    pub(super) fn trust_label(self) -> lango_core::Trust {
        match self {
            Self::User => lango_core::Trust::Trusted,
            Self::Project => lango_core::Trust::Untrusted,
        }
    }
}

/// A directory with agent files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFolder {
    pub path: PathBuf,
    pub owner: FileOwner,
}

/// A problem with an agent file.
#[derive(Debug)]
pub(super) struct AgentFileProblem {
    pub path: PathBuf,
    pub line: Option<usize>,
    pub detail: String,
}

impl fmt::Display for AgentFileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.line {
            Some(line) => write!(f, "{path}:{line}: {}", self.detail),
            None => write!(f, "{path}: {}", self.detail),
        }
    }
}

/// The problems of all agent files.
#[derive(Debug, Default)]
pub(super) struct AgentFileProblems(Vec<AgentFileProblem>);

impl AgentFileProblems {
    pub(super) fn push(&mut self, problem: AgentFileProblem) {
        self.0.push(problem);
    }

    pub(super) fn refuse_if_any(mut self) -> Result<(), Failure> {
        if self.0.is_empty() {
            return Ok(());
        }
        // Groups the problems of each file, also those found later.
        self.0
            .sort_by(|one, other| (&one.path, one.line).cmp(&(&other.path, other.line)));
        let mut lines: Vec<String> = self
            .0
            .iter()
            .take(MAX_SHOWN)
            .map(AgentFileProblem::to_string)
            .collect();
        match self.0.len().saturating_sub(MAX_SHOWN) {
            0 => {}
            more => lines.push(format!("… and {more} more")),
        }
        let next = "fix the problems above; `lango config check` checks the configuration again";
        Err(Failure::config(lines.join("\n")).next(next))
    }
}

impl AgentFolder {
    /// Returns the paths of the agent files, without reading them; empty if the directory cannot be listed.
    pub fn names(&self) -> Vec<PathBuf> {
        self.list().unwrap_or_default()
    }

    /// Reads the agents in this directory, sorted by file name. Untrusted files are added to `untrusted_files`, and
    /// their problems are not reported.
    pub(super) fn read(
        &self,
        trust: &TrustedFiles,
        untrusted_files: &mut Vec<PathBuf>,
        problems: &mut AgentFileProblems,
    ) -> Vec<(PathBuf, AgentFile)> {
        let paths = match (self.list(), self.owner) {
            (Ok(paths), _) => paths,
            (Err(_), FileOwner::Project) => {
                untrusted_files.push(self.path.clone());
                return Vec::new();
            }
            (Err(error), FileOwner::User) => {
                problems.push(self.problem(format!("cannot read the folder of agents: {error}")));
                return Vec::new();
            }
        };
        let number = paths.len();
        let mut found = Vec::new();
        for path in paths.into_iter().take(MAX_FILES) {
            let bytes = self.bytes_of(&path);
            let is_accepted = match (self.owner, &bytes) {
                (FileOwner::User, _) => true,
                (FileOwner::Project, Ok(bytes)) => trust.is_trusted(&path, bytes),
                (FileOwner::Project, Err(_)) => false,
            };
            if !is_accepted {
                untrusted_files.push(path);
                continue;
            }
            let parsed = match &bytes {
                Ok(bytes) => AgentFile::parse(&stem(&path), bytes),
                Err(error) => {
                    let detail = format!("the file cannot be read: {error}");
                    let line = None;
                    problems.push(AgentFileProblem { path, line, detail });
                    continue;
                }
            };
            match parsed {
                Ok(mut file) => {
                    file.spec.trust = self.owner.trust_label();
                    found.push((path, file));
                }
                Err(wrong) => wrong.into_iter().for_each(|problem| {
                    problems.push(AgentFileProblem {
                        path: path.clone(),
                        line: Some(problem.line),
                        detail: problem.detail,
                    });
                }),
            }
        }
        // Too many untrusted files are no problem, because they are not used.
        let is_used = self.owner == FileOwner::User || !found.is_empty();
        if number > MAX_FILES && is_used {
            let detail =
                format!("it has {number} agent files; the limit is {MAX_FILES}, so remove some");
            problems.push(self.problem(detail));
        }
        found
    }

    fn problem(&self, detail: String) -> AgentFileProblem {
        AgentFileProblem {
            path: self.path.clone(),
            line: None,
            detail,
        }
    }

    /// Lists the agent files, sorted; empty if the directory does not exist.
    fn list(&self) -> io::Result<Vec<PathBuf>> {
        let entries = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        // Anyone may have created the content of a workspace, including a link to one of the user's directories.
        if self.owner == FileOwner::Project && self.path.canonicalize()? != self.path {
            return Err(io::Error::other("its path contains a link"));
        }
        let mut paths = Vec::new();
        for entry in entries.take(MAX_ENTRIES) {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_agent = name.ends_with(".md")
                && !name.starts_with('.')
                && !name.eq_ignore_ascii_case("README.md");
            if is_agent {
                paths.push(entry.path());
            }
        }
        paths.sort();
        Ok(paths)
    }

    /// Reads a file up to one byte more than an agent file may have. Only a regular file is opened, because a pipe
    /// would block.
    pub(super) fn bytes_of(&self, path: &Path) -> io::Result<Vec<u8>> {
        read_bytes(path, self.owner, AgentFile::MAX_KIB)
    }
}

/// Reads a file up to a limit plus one byte; a project's file must not be a link. The file is opened once and checked
/// through its handle, so that it cannot be swapped in between.
pub(super) fn read_bytes(path: &Path, owner: FileOwner, max_kib: usize) -> io::Result<Vec<u8>> {
    let flags = match owner {
        FileOwner::User => OFlags::NONBLOCK,
        FileOwner::Project => OFlags::NONBLOCK | OFlags::NOFOLLOW,
    };
    let file = File::options()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .map_err(|error| match error.raw_os_error() {
            Some(code) if code == Errno::LOOP.raw_os_error() && owner == FileOwner::Project => {
                io::Error::other("it is a link; a project's file must be a regular file")
            }
            _ => error,
        })?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    file.take(max_kib as u64 * 1024 + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}
