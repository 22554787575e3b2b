//! Checks and prepares a server's command.
//!
//! Agents can write the workspace and the folders that the user opened to them. Code from there would run with the
//! server's token and network. So if a file of the command is in one of these folders, it runs only if its SHA-256 is
//! the one that the user trusts. What runs is a copy: lango reads the file once, compares the digest of these bytes,
//! and stores them in a directory that neither agents nor the server can write. Replacing the file later has no effect.
//! The copy is also isolated: a script cannot load the unchecked files next to the original, because it does not find
//! them.

mod agent_writable;
mod copies;
mod interpreter;
mod loaders;
#[cfg(test)]
mod package_tests;
mod packages;
mod paths;
mod runners;
mod search_path;
#[cfg(test)]
mod tests;
mod versions;

pub use copies::PendingFile;
pub use search_path::find_program;

use crate::error::ConnectError;
use crate::settings::ProgramSettings;
use agent_writable::{can_agents_replace, can_agents_write_in};
use copies::Content;
use paths::{Argument, arguments_of, hidden_path_in, may_be_line};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The digests of trusted files, by path.
pub(crate) type TrustedFiles = BTreeMap<String, String>;

/// The variable that keeps Python from loading modules from the current directory.
const SAFE_PATH: &str = "PYTHONSAFEPATH";

/// The variable by which package runners locate their caches. It is set to the server's private directory, so that
/// packages are downloaded only once.
const HOME: &str = "HOME";

/// The variable that makes npm use its cache without asking the registry. Versions are exact, so a cached package is
/// the right one.
const OFFLINE: &str = "npm_config_prefer_offline";

/// A command that is ready to start.
#[derive(Debug)]
pub(crate) struct PreparedCommand {
    pub(crate) argv: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
}

/// The result of checking a command.
struct CommandInspection {
    argv: Vec<String>,
    /// The arguments that name files which agents can write, or which the user trusted once.
    files: Vec<FileArgument>,
}

/// An argument that names a file to pin.
struct FileArgument {
    /// The index in `argv`.
    word: usize,
    /// The text before the path, such as `--config=`.
    before: String,
    path: PathBuf,
}

/// The command of a server.
#[derive(Clone, Copy)]
pub(crate) struct ServerCommand<'a> {
    pub(crate) server: &'a str,
    pub(crate) program: &'a ProgramSettings,
}

impl ServerCommand<'_> {
    /// Checks whether the server may be started, without changing anything.
    pub(crate) fn check(&self, trusted: &TrustedFiles) -> Result<(), ConnectError> {
        let inspection = self.inspect(trusted)?;
        for file in &inspection.files {
            self.read_trusted(file, trusted)?;
        }
        Ok(())
    }

    /// Prepares the command: expands `{workspace}`, and replaces files that agents can write by copies of the trusted
    /// content.
    pub(crate) fn prepare(&self, trusted: &TrustedFiles) -> Result<PreparedCommand, ConnectError> {
        let mut inspection = self.inspect(trusted)?;
        for file in &inspection.files {
            let content = self.read_trusted(file, trusted)?;
            let copy = content
                .store(&self.program.copies, &file.path)
                .map_err(|error| ConnectError::NotStarted {
                    why: format!("lango cannot copy `{}`: {error}", file.path.display()),
                })?;
            inspection.argv[file.word] = format!("{}{}", file.before, copy.display());
        }
        let name = &inspection.argv[0];
        if !name.contains('/') {
            return Err(ConnectError::NotStarted {
                why: format!(
                    "there is no program `{name}` in {}; install it there, or name it by its full path",
                    self.search_path()
                ),
            });
        }
        let mut env = self.environment()?;
        if env.iter().all(|(name, _)| name != SAFE_PATH) {
            env.push((SAFE_PATH.to_owned(), "1".to_owned()));
        }
        if self.downloads_packages() {
            let private = self.program.policy.workspace.display();
            for (name, value) in [(HOME, private.to_string()), (OFFLINE, "true".to_owned())] {
                if env.iter().all(|(known, _)| known != name) {
                    env.push((name.to_owned(), value));
                }
            }
        }
        Ok(PreparedCommand {
            argv: inspection.argv,
            env,
        })
    }

    /// Returns whether the command downloads packages, as `npx` and `uvx` do.
    pub(crate) fn downloads_packages(&self) -> bool {
        packages::has_runner(&self.program.argv, &self.program.data)
    }

    /// Returns the files that the user must trust before the server starts, with their current content.
    pub(crate) fn pending_files(
        &self,
        trusted: &TrustedFiles,
    ) -> Result<Vec<PendingFile>, ConnectError> {
        let inspection = self.inspect(trusted)?;
        let mut pending = Vec::new();
        for file in &inspection.files {
            let content = self.read(file)?;
            let before = trusted.get(&key(&file.path));
            let is_known = |known: &PendingFile| known.path == file.path;
            if before != Some(&content.digest) && !pending.iter().any(is_known) {
                pending.push(content.pending(&file.path, before, &self.program.copies));
            }
        }
        Ok(pending)
    }

    /// Stores a copy of a file that the user trusts, so that a later change can be shown as a diff.
    pub(crate) fn store(&self, file: &PendingFile) -> std::io::Result<()> {
        file.content
            .store(&self.program.copies, &file.path)
            .map(drop)
    }

    /// Returns hints for paths that were meant relative to the workspace. If the server has failed, also
    /// returns hints for paths that may have been meant that way.
    pub(crate) fn hints(&self, has_failed: bool) -> Vec<String> {
        let private = &self.program.policy.workspace;
        let workspace = &self.program.agents.workspace;
        let words = self.program.argv.iter().enumerate();
        let relative = words.flat_map(|(at, word)| {
            let all = arguments_of(word);
            all.into_iter().map(move |argument| (at, argument))
        });
        let hints = relative.filter_map(|(at, Argument { path, .. })| {
            let is_relative = Path::new(path).is_relative() && (at > 0 || path.contains('/'));
            let starts_with_dot = path == "." || path.starts_with("./") || path.starts_with("..");
            let may_be_meant = || {
                has_failed && workspace.join(path).exists() && !private.join(path).exists()
            };
            let is_meant = !path.is_empty() && is_relative && (starts_with_dot || may_be_meant());
            is_meant.then(|| {
                let instead = match path.trim_start_matches("./") {
                    "" | "." => ProgramSettings::WORKSPACE.to_owned(),
                    rest => format!("{}/{rest}", ProgramSettings::WORKSPACE),
                };
                format!(
                    "`{path}` is relative to the server's private directory, not to the workspace; write `{instead}`"
                )
            })
        });
        hints.take(3).collect()
    }

    /// Checks every argument of the command.
    fn inspect(&self, trusted: &TrustedFiles) -> Result<CommandInspection, ConnectError> {
        let Self { program, .. } = self;
        let argv: Vec<String> = program.argv.iter().map(|word| self.expand(word)).collect();
        let data: Vec<String> = program.data.iter().map(|word| self.expand(word)).collect();
        let refuse = |why: String| ConnectError::Refused { why };
        let packages = packages::check(&argv, &data).map_err(refuse)?;
        let path = self.search_path();
        self.check_variables(&argv, &path).map_err(refuse)?;
        self.check_words(&argv, &data).map_err(refuse)?;
        let mut inspection = CommandInspection {
            argv,
            files: Vec::new(),
        };
        if let Some(found) = search_path::find(&inspection.argv[0], &path) {
            inspection.argv[0] = found;
        }
        for (word, text) in inspection.argv.iter().enumerate() {
            for Argument { before, path } in arguments_of(text) {
                let is_data = data.iter().any(|data| data == text || data == path);
                if path.is_empty() || is_data || (word == 0 && !before.is_empty()) {
                    continue;
                }
                let full = program.policy.workspace.join(path);
                let is_program = word == 0;
                let is_line = || {
                    may_be_line(path, &program.agents) && can_agents_replace(&program.agents, &full)
                };
                match self.pinned_path(&full, is_program, trusted)? {
                    Some(path) => inspection.files.push(FileArgument {
                        word,
                        before: before.to_owned(),
                        path,
                    }),
                    None if is_line() => return Err(refuse(self.hidden_path_error(text, path))),
                    None => {}
                }
            }
        }
        self.check_first_line_of(&inspection.argv[0])?;
        let script = interpreter::script_of(&inspection.argv);
        let script = script.map(|at| inspection.argv[at].clone());
        let loaded = interpreter::loaded_by_options(&inspection.argv);
        for code in packages.iter().chain(&script).chain(&loaded) {
            self.check_code(code, &inspection)?;
        }
        Ok(inspection)
    }

    /// Returns the folders in which the program is looked up.
    fn search_path(&self) -> String {
        let path = self.variable("PATH");
        path.unwrap_or_else(|| search_path::SANDBOX_PATH.to_owned())
    }

    /// Refuses variables that make programs load code from paths that agents can write, whether the variables are set
    /// in the settings or by `env` in the command.
    fn check_variables(&self, argv: &[String], path: &str) -> Result<(), String> {
        let ProgramSettings { policy, agents, .. } = self.program;
        let check =
            |name: &str, value: &str| loaders::check(name, value, &policy.workspace, agents);
        check("PATH", path)?;
        for variable in &self.program.env {
            let value = self.variable(&variable.name).unwrap_or_default();
            check(&variable.name, &value)?;
        }
        let mut set_by_env = loaders::set_by_env(argv);
        set_by_env.try_for_each(|(name, value)| check(name, value))
    }

    /// Refuses arguments with a path that agents can write but that lango cannot pin.
    fn check_words(&self, argv: &[String], data: &[String]) -> Result<(), String> {
        let ProgramSettings { policy, agents, .. } = self.program;
        for word in argv.iter().filter(|word| !data.contains(word)) {
            if let Some(path) = hidden_path_in(word, &policy.workspace, agents) {
                return Err(self.hidden_path_error(word, path));
            }
        }
        Ok(())
    }

    fn hidden_path_error(&self, word: &str, path: &str) -> String {
        format!(
            "the argument `{word}` contains `{path}`, which agents can write, at a place where lango cannot pin it; write the \
             path as a separate argument or directly after the first `=`, or, if it only names data, list the whole argument \
             in mcp.servers.{}.data",
            self.server
        )
    }

    /// Returns the real path of a file that must be pinned; `None` for folders and for files that agents cannot
    /// replace.
    fn pinned_path(
        &self,
        path: &Path,
        is_program: bool,
        trusted: &TrustedFiles,
    ) -> Result<Option<PathBuf>, ConnectError> {
        let is_replaceable = can_agents_replace(&self.program.agents, path);
        let real = path.canonicalize().ok();
        let was_trusted = real
            .as_ref()
            .is_some_and(|real| trusted.contains_key(&key(real)));
        match real {
            // Agents could replace the folder by a file after this check.
            Some(real) if real.is_dir() && (was_trusted || (is_program && is_replaceable)) => {
                Err(ConnectError::Refused {
                    why: format!("`{}` is a folder but must be a file", path.display()),
                })
            }
            Some(real) if real.is_dir() => Ok(None),
            Some(real) => Ok((is_replaceable || was_trusted).then_some(real)),
            None if is_replaceable => Err(ConnectError::Refused {
                why: format!(
                    "`{}` does not exist, and agents could create it at any time; create it, or, if the server only reads or \
                     writes it as data, list it in mcp.servers.{}.data",
                    path.display(),
                    self.server
                ),
            }),
            None => Ok(None),
        }
    }

    /// Refuses to run code from a path that agents can write, unless it is pinned. Only files can be pinned; a folder
    /// is refused, because agents could replace it by a file at any time.
    fn check_code(&self, path: &str, inspection: &CommandInspection) -> Result<(), ConnectError> {
        let full = self.program.policy.workspace.join(path);
        let is_pinned = inspection.files.iter().any(|file| {
            let word = &inspection.argv[file.word];
            word.strip_prefix(&file.before) == Some(path)
        });
        let agents = &self.program.agents;
        if is_pinned || !(can_agents_replace(agents, &full) || can_agents_write_in(agents, &full)) {
            return Ok(());
        }
        Err(ConnectError::Refused {
            why: format!(
                "`{}` runs code from `{path}`, which agents can write; name a single file that you can trust, or install the \
                 server outside of their folders",
                inspection.argv[0]
            ),
        })
    }

    /// Refuses a script whose first line starts a program that agents can write.
    fn check_first_line_of(&self, program: &str) -> Result<(), ConnectError> {
        let start = self.program.policy.workspace.join(program);
        self.check_first_line(&start, interpreter::of_file(&start))
    }

    fn check_first_line(
        &self,
        script: &Path,
        interpreter: Option<PathBuf>,
    ) -> Result<(), ConnectError> {
        match interpreter {
            Some(program) if can_agents_replace(&self.program.agents, &program) => {
                Err(ConnectError::Refused {
                    why: format!(
                        "the first line of `{}` starts `{}`, which agents can write; install the server outside of their folders",
                        script.display(),
                        program.display()
                    ),
                })
            }
            _ => Ok(()),
        }
    }

    /// Reads a file; fails if its content is not trusted.
    fn read_trusted(
        &self,
        file: &FileArgument,
        trusted: &TrustedFiles,
    ) -> Result<Content, ConnectError> {
        let content = self.read(file)?;
        let (server, path) = (self.server.to_owned(), file.path.clone());
        match trusted.get(&key(&file.path)) {
            Some(digest) if *digest == content.digest => Ok(content),
            Some(digest) => Err(ConnectError::FileChanged {
                server,
                path,
                trusted: digest.clone(),
                found: content.digest,
            }),
            None => Err(ConnectError::FileUntrusted { server, path }),
        }
    }

    fn read(&self, file: &FileArgument) -> Result<Content, ConnectError> {
        let content = Content::read(&file.path).map_err(|error| ConnectError::NotStarted {
            why: format!("lango cannot read `{}`: {error}", file.path.display()),
        })?;
        // Check these bytes, because the file may have changed since the last check.
        if file.word == 0 {
            self.check_first_line(&file.path, interpreter::of_script(content.bytes()))?;
        }
        Ok(content)
    }

    /// Returns the environment variables of the program; fails if one that is passed on is not set.
    fn environment(&self) -> Result<Vec<(String, String)>, ConnectError> {
        let variables = self.program.env.iter().map(|variable| {
            let value = self.variable(&variable.name);
            let value = value.ok_or_else(|| ConnectError::Unset {
                server: self.server.to_owned(),
                name: variable.name.clone(),
            })?;
            Ok((variable.name.clone(), value))
        });
        variables.collect()
    }

    fn variable(&self, name: &str) -> Option<String> {
        let mut variables = self.program.env.iter();
        let variable = variables.rfind(|variable| variable.name == name)?;
        let value = variable.value.as_ref()?.reveal();
        if variable.is_passed_on {
            Some(value.to_owned())
        } else {
            Some(self.expand(value))
        }
    }

    fn expand(&self, text: &str) -> String {
        let workspace = self.program.agents.workspace.display().to_string();
        text.replace(ProgramSettings::WORKSPACE, &workspace)
    }
}

/// Returns the key of a path in the list of trusted files.
fn key(path: &Path) -> String {
    path.display().to_string()
}
