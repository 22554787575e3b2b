//! A server's command, checked and made ready for its start.
//!
//! Agents can write the workspace and the folders that the user opened to them. Code from there would run with the server's
//! token and network, so a file of the command that lies there runs only while its SHA-256 is the one that the user trusts.
//! What runs is a copy: lango reads the file once, compares the digest of those bytes, and stores these very bytes in a
//! directory that neither agents nor the server can write. A file that is swapped at any later moment has no effect. A copy
//! is also alone: a script that loads its neighbours does not find them, so no unchecked file comes along with it.

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

use crate::error::ConnectError;
use crate::settings::Program;
use agent_writable::{can_agents_replace, can_agents_write_in};
use copies::Content;
use paths::{Argument, arguments_of, hidden_path_in, may_be_line};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The digests of trusted files, by path.
pub(crate) type TrustedFiles = BTreeMap<String, String>;

/// What a Python program must not do: load modules from the directory that it is started in.
const SAFE_PATH: &str = "PYTHONSAFEPATH";

/// The variable that locates the caches of package runners. It names the server's private directory, so that packages are
/// downloaded once.
const HOME: &str = "HOME";

/// Has npm use its cache without asking the registry. Versions are exact, so what was downloaded is what is wanted.
const OFFLINE: &str = "npm_config_prefer_offline";

/// A command that is ready to be started.
#[derive(Debug)]
pub(crate) struct PreparedCommand {
    pub(crate) argv: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
}

/// A command with all that has to be known before it is started.
struct Survey {
    argv: Vec<String>,
    /// The files among the words that agents can write, or that the user trusted once.
    files: Vec<FileWord>,
}

/// A word of the command that names a file to pin.
struct FileWord {
    word: usize,
    /// What stands before the path in the word, such as `--config=`.
    before: String,
    path: PathBuf,
}

/// A command, and the server that it belongs to.
#[derive(Clone, Copy)]
pub(crate) struct ServerCommand<'a> {
    pub(crate) server: &'a str,
    pub(crate) program: &'a Program,
}

impl ServerCommand<'_> {
    /// Says why the server must not be started; changes nothing.
    pub(crate) fn check(&self, trusted: &TrustedFiles) -> Result<(), ConnectError> {
        let survey = self.survey(trusted)?;
        for file in &survey.files {
            self.read_trusted(file, trusted)?;
        }
        Ok(())
    }

    /// Makes the command ready: `{workspace}` replaced, files that agents can write replaced by copies of what is trusted.
    pub(crate) fn prepare(&self, trusted: &TrustedFiles) -> Result<PreparedCommand, ConnectError> {
        let mut survey = self.survey(trusted)?;
        for file in &survey.files {
            let content = self.read_trusted(file, trusted)?;
            let copy = content
                .store(&self.program.copies, &file.path)
                .map_err(|error| ConnectError::NotStarted {
                    why: format!("`{}` cannot be copied: {error}", file.path.display()),
                })?;
            survey.argv[file.word] = format!("{}{}", file.before, copy.display());
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
            argv: survey.argv,
            env,
        })
    }

    /// Returns whether the command downloads packages, such as `npx` and `uvx`.
    pub(crate) fn downloads_packages(&self) -> bool {
        packages::has_runner(&self.program.argv, &self.program.data)
    }

    /// The files that have to be trusted before the server starts, as they are now.
    pub(crate) fn pending_files(
        &self,
        trusted: &TrustedFiles,
    ) -> Result<Vec<PendingFile>, ConnectError> {
        let survey = self.survey(trusted)?;
        let mut pending = Vec::new();
        for file in &survey.files {
            let content = self.read(file)?;
            let before = trusted.get(&key(&file.path));
            let is_known = |known: &PendingFile| known.path == file.path;
            if before != Some(&content.digest) && !pending.iter().any(is_known) {
                pending.push(content.pending(&file.path, before, &self.program.copies));
            }
        }
        Ok(pending)
    }

    /// Stores a copy of what is about to be trusted, so that a later change can be shown line by line.
    pub(crate) fn store(&self, file: &PendingFile) -> std::io::Result<()> {
        file.content
            .store(&self.program.copies, &file.path)
            .map(drop)
    }

    /// What the user should write instead of words that were meant from the workspace: those that surely were, and those
    /// that may have been, which matter once the server fails.
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
                    "" | "." => Program::WORKSPACE.to_owned(),
                    rest => format!("{}/{rest}", Program::WORKSPACE),
                };
                format!(
                    "`{path}` is relative to the server's private directory, not to the workspace; write `{instead}`"
                )
            })
        });
        hints.take(3).collect()
    }

    /// Looks at every word of the command.
    fn survey(&self, trusted: &TrustedFiles) -> Result<Survey, ConnectError> {
        let Self { program, .. } = self;
        let argv: Vec<String> = program.argv.iter().map(|word| self.expand(word)).collect();
        let data: Vec<String> = program.data.iter().map(|word| self.expand(word)).collect();
        let refuse = |why: String| ConnectError::Refused { why };
        let packages = packages::check(&argv, &data).map_err(refuse)?;
        let path = self.variable("PATH");
        let path = path.unwrap_or_else(|| search_path::SANDBOX_PATH.to_owned());
        self.check_variables(&argv, &path).map_err(refuse)?;
        self.check_words(&argv, &data).map_err(refuse)?;
        let mut survey = Survey {
            argv,
            files: Vec::new(),
        };
        if let Some(found) = search_path::find(&survey.argv[0], &path) {
            survey.argv[0] = found;
        }
        for (word, text) in survey.argv.iter().enumerate() {
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
                    Some(path) => survey.files.push(FileWord {
                        word,
                        before: before.to_owned(),
                        path,
                    }),
                    None if is_line() => return Err(refuse(self.hidden_path_error(text, path))),
                    None => {}
                }
            }
        }
        self.check_first_line_of(&survey.argv[0])?;
        let script = interpreter::script_of(&survey.argv);
        let script = script.map(|at| survey.argv[at].clone());
        let loaded = interpreter::loaded_by_options(&survey.argv);
        for code in packages.iter().chain(&script).chain(&loaded) {
            self.check_code(code, &survey)?;
        }
        Ok(survey)
    }

    /// Refuses variables that load code from where agents can write, however they are set.
    fn check_variables(&self, argv: &[String], path: &str) -> Result<(), String> {
        let Program { policy, agents, .. } = self.program;
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

    /// Refuses words with a path that agents can write at a place where it cannot be pinned.
    fn check_words(&self, argv: &[String], data: &[String]) -> Result<(), String> {
        let Program { policy, agents, .. } = self.program;
        for word in argv.iter().filter(|word| !data.contains(word)) {
            if let Some(path) = hidden_path_in(word, &policy.workspace, agents) {
                return Err(self.hidden_path_error(word, path));
            }
        }
        Ok(())
    }

    fn hidden_path_error(&self, word: &str, path: &str) -> String {
        format!(
            "the word `{word}` contains `{path}`, which agents can write, at a place where lango cannot pin it; write the path \
             as a word of its own or right behind the first `=`, or if it only names data, list the whole word in \
             mcp.servers.{}.data",
            self.server
        )
    }

    /// The real path of a file that has to be pinned. Folders need not be, nor files out of agents' reach.
    fn pinned_path(
        &self,
        path: &Path,
        is_program: bool,
        trusted: &TrustedFiles,
    ) -> Result<Option<PathBuf>, ConnectError> {
        let is_in_reach = can_agents_replace(&self.program.agents, path);
        let real = path.canonicalize().ok();
        let was_trusted = real
            .as_ref()
            .is_some_and(|real| trusted.contains_key(&key(real)));
        match real {
            // Agents could put a file in the place of a folder once it was looked at.
            Some(real) if real.is_dir() && (was_trusted || (is_program && is_in_reach)) => {
                Err(ConnectError::Refused {
                    why: format!("`{}` is a folder, and should be a file", path.display()),
                })
            }
            Some(real) if real.is_dir() => Ok(None),
            Some(real) => Ok((is_in_reach || was_trusted).then_some(real)),
            None if is_in_reach => Err(ConnectError::Refused {
                why: format!(
                    "`{}` does not exist, and agents could write it at any moment; create it, or if the server only reads or \
                     writes it as data, name it in mcp.servers.{}.data",
                    path.display(),
                    self.server
                ),
            }),
            None => Ok(None),
        }
    }

    /// Refuses a path that is run as code if agents can decide what is found there and it is not pinned as a file: a
    /// folder is not, and agents could turn a folder into a file in the next moment.
    fn check_code(&self, path: &str, survey: &Survey) -> Result<(), ConnectError> {
        let full = self.program.policy.workspace.join(path);
        let is_pinned = survey.files.iter().any(|file| {
            let word = &survey.argv[file.word];
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
                survey.argv[0]
            ),
        })
    }

    /// The first line of a script starts another program, which agents must not be able to write either.
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

    /// Reads a file, and refuses what is not trusted.
    fn read_trusted(
        &self,
        file: &FileWord,
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

    fn read(&self, file: &FileWord) -> Result<Content, ConnectError> {
        let content = Content::read(&file.path).map_err(|error| ConnectError::NotStarted {
            why: format!("`{}` cannot be read: {error}", file.path.display()),
        })?;
        // Judged by these bytes, whatever the file held when it was looked at before.
        if file.word == 0 {
            self.check_first_line(&file.path, interpreter::of_script(content.bytes()))?;
        }
        Ok(content)
    }

    /// The variables of the program.
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
        text.replace(Program::WORKSPACE, &workspace)
    }
}

/// How a path is written in the list of trusted files.
fn key(path: &Path) -> String {
    path.display().to_string()
}
