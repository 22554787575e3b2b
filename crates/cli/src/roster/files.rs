//! Finding and reading agent files: which there are in a folder, whether they are heard, and what is wrong with them.

use crate::config::Trust;
use crate::exit::{Exit, Failure};
use lango_engine::AgentFile;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// How many agent files of one folder are read.
const MOST_FILES: usize = 64;

/// How many entries of a folder are looked at.
const MOST_ENTRIES: usize = 4096;

/// How many problems are shown before the rest is only counted.
const MOST_SHOWN: usize = 20;

/// Whose word a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The person's.
    Person,
    /// That of whoever made the folder; heard when it is trusted.
    Project,
}

impl Whose {
    /// The label of what a file says. Trusting a project's file lets its agents work; its words stay the project's.
    pub(super) fn label(self) -> lango_core::Trust {
        match self {
            Self::Person => lango_core::Trust::Trusted,
            Self::Project => lango_core::Trust::Untrusted,
        }
    }
}

/// A folder with agent files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFolder {
    /// The folder.
    pub path: PathBuf,
    /// Whose files are in it.
    pub whose: Whose,
}

/// Something that is wrong with a file.
#[derive(Debug)]
pub(super) struct Problem {
    pub path: PathBuf,
    pub line: Option<usize>,
    pub detail: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.line {
            Some(line) => write!(f, "{path}:{line}: {}", self.detail),
            None => write!(f, "{path}: {}", self.detail),
        }
    }
}

/// All that is wrong with all files.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<Problem>);

impl Problems {
    pub fn push(&mut self, problem: Problem) {
        self.0.push(problem);
    }

    pub fn refuse_if_any(mut self) -> Result<(), Failure> {
        if self.0.is_empty() {
            return Ok(());
        }
        // What is found late about a file stands with the rest of it.
        self.0
            .sort_by(|one, other| (&one.path, one.line).cmp(&(&other.path, other.line)));
        let mut lines: Vec<String> = self
            .0
            .iter()
            .take(MOST_SHOWN)
            .map(Problem::to_string)
            .collect();
        match self.0.len().saturating_sub(MOST_SHOWN) {
            0 => {}
            more => lines.push(format!("… and {more} more")),
        }
        let next = "correct what is named above; `lango config check` tells when all is well";
        Err(Failure::new(Exit::Config, lines.join("\n")).next(next))
    }
}

impl AgentFolder {
    /// The agent files in it, by name, read or not; none if it cannot be looked into.
    pub fn names(&self) -> Vec<PathBuf> {
        self.list().unwrap_or_default()
    }

    /// The agents in it, in the order of their files' names. What is not trusted goes to `unheard`, and nothing that is
    /// wrong with it is told: nobody asked for it.
    pub(super) fn read(
        &self,
        trust: &Trust,
        unheard: &mut Vec<PathBuf>,
        problems: &mut Problems,
    ) -> Vec<(PathBuf, AgentFile)> {
        let paths = match (self.list(), self.whose) {
            (Ok(paths), _) => paths,
            (Err(_), Whose::Project) => {
                unheard.push(self.path.clone());
                return Vec::new();
            }
            (Err(error), Whose::Person) => {
                problems
                    .push(self.problem(format!("the folder of agents cannot be read: {error}")));
                return Vec::new();
            }
        };
        let number = paths.len();
        let mut found = Vec::new();
        for path in paths.into_iter().take(MOST_FILES) {
            let bytes = self.bytes_of(&path);
            let is_heard = match (self.whose, &bytes) {
                (Whose::Person, _) => true,
                (Whose::Project, Ok(bytes)) => trust.holds(&path, bytes),
                (Whose::Project, Err(_)) => false,
            };
            if !is_heard {
                unheard.push(path);
                continue;
            }
            let parsed = match &bytes {
                Ok(bytes) => AgentFile::parse(&stem(&path), bytes),
                Err(error) => {
                    let detail = format!("the file cannot be read: {error}");
                    let line = None;
                    problems.push(Problem { path, line, detail });
                    continue;
                }
            };
            match parsed {
                Ok(mut file) => {
                    file.spec.trust = self.whose.label();
                    found.push((path, file));
                }
                Err(wrong) => wrong.into_iter().for_each(|problem| {
                    problems.push(Problem {
                        path: path.clone(),
                        line: Some(problem.line),
                        detail: problem.detail,
                    });
                }),
            }
        }
        // Whoever cloned too many did not ask for them.
        let is_wanted = self.whose == Whose::Person || !found.is_empty();
        if number > MOST_FILES && is_wanted {
            let detail =
                format!("it has {number} agent files, {MOST_FILES} at most are read; remove some");
            problems.push(self.problem(detail));
        }
        found
    }

    fn problem(&self, detail: String) -> Problem {
        Problem {
            path: self.path.clone(),
            line: None,
            detail,
        }
    }

    /// The files of it that are meant as agents, in their order; none if it is not there.
    fn list(&self) -> io::Result<Vec<PathBuf>> {
        let entries = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        // What is in a workspace may have been put there by anyone, a link to a folder of the person's included.
        if self.whose == Whose::Project && self.path.canonicalize()? != self.path {
            return Err(io::Error::other("a link leads to it"));
        }
        let mut paths = Vec::new();
        for entry in entries.take(MOST_ENTRIES) {
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

    /// No more of a file than an agent has, and one byte. Nothing but a file is opened: a pipe would wait for somebody.
    pub(super) fn bytes_of(&self, path: &Path) -> io::Result<Vec<u8>> {
        read_bytes(path, self.whose, AgentFile::LARGEST_KIB)
    }
}

/// The bytes of a file, up to a limit and one more; a project's must not be a link. The file is opened once and judged by its
/// handle, so that nothing can take its place in between.
pub(super) fn read_bytes(path: &Path, whose: Whose, most_kib: usize) -> io::Result<Vec<u8>> {
    let flags = match whose {
        Whose::Person => OFlags::NONBLOCK,
        Whose::Project => OFlags::NONBLOCK | OFlags::NOFOLLOW,
    };
    let file = File::options()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .map_err(|error| match error.raw_os_error() {
            Some(code) if code == Errno::LOOP.raw_os_error() && whose == Whose::Project => {
                io::Error::other("it is a link; a project's file must be a file of its own")
            }
            _ => error,
        })?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    file.take(most_kib as u64 * 1024 + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}
