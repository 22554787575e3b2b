//! Trust in a project's files: reads their current content, trusts it, and describes what that enables; or revokes the trust.

use crate::app::Failure;
use crate::app::roster::{self, Roster};
use lango_config::{LoadedConfig, Paths, ProcessEnv, TrustedFiles};
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// The files of a project with the content that the user is asked to trust.
pub struct ProjectTrust {
    trust: TrustedFiles,
    trust_file: PathBuf,
    ignored_settings: Vec<String>,
    project: TrustedProject,
    files: Vec<ProjectFileContent>,
}

/// A file of a project, as it is now and as the user trusted it before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectFileContent {
    pub path: PathBuf,
    pub content: Vec<u8>,
    pub state: ContentState,
}

/// How the content of a file relates to what the user trusts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContentState {
    New,
    /// The user trusted another content.
    Changed {
        before: Vec<u8>,
    },
    Trusted,
}

impl ProjectTrust {
    /// Reads the project's configuration, agents, topology and `AGENTS.md`, and stores nothing. Fails if a file is
    /// invalid or cannot be read.
    pub fn prepare(flags: Vec<String>) -> Result<Self, Failure> {
        let process_env = ProcessEnv::from_process(flags)?;
        let paths = Paths::locate(&process_env)?;
        let before = TrustedFiles::read(&paths);
        let loaded = lango_config::load(&process_env);
        let ignored_settings = loaded.map(|loaded| loaded.ignored_settings());
        let mut trust = before.clone();
        let mut files = Vec::new();
        let project = trust_all(&process_env, &paths, &mut trust, |path, content| {
            let state = if before.is_trusted(path, content) {
                ContentState::Trusted
            } else {
                match before.trusted_content(path) {
                    Some(before) => ContentState::Changed { before },
                    None => ContentState::New,
                }
            };
            files.push(ProjectFileContent {
                path: path.to_owned(),
                content: content.to_owned(),
                state,
            });
        })?;
        Ok(Self {
            trust,
            trust_file: paths.trust_file(),
            ignored_settings: ignored_settings.unwrap_or_default(),
            project,
            files,
        })
    }

    /// Returns the files, the configuration first.
    pub fn files(&self) -> &[ProjectFileContent] {
        &self.files
    }

    /// Returns whether the user trusts all files with their current content.
    pub fn is_complete(&self) -> bool {
        let mut states = self.files.iter().map(|file| &file.state);
        states.all(|state| *state == ContentState::Trusted)
    }

    /// Returns what lango ignores until the user trusts the project.
    pub fn ignored_settings(&self) -> &[String] {
        &self.ignored_settings
    }

    /// Trusts the files with exactly the content that was read, and describes what is trusted now. A file that was
    /// changed meanwhile stays untrusted.
    pub fn store(self) -> Result<String, Failure> {
        let stored = self.trust.write();
        stored.map_err(|error| trust_failure(&self.trust_file, &error))?;
        Ok(self.project.describe(&self.ignored_settings))
    }
}

/// Stops trusting all files of the project, and describes what changed.
pub fn revoke_trust(flags: Vec<String>) -> Result<String, Failure> {
    let process_env = ProcessEnv::from_process(flags)?;
    let paths = Paths::locate(&process_env)?;
    let mut trust = TrustedFiles::read(&paths);
    let mut files = vec![
        paths.project_agents(&process_env.cwd),
        roster::instructions_file(&process_env.cwd),
    ];
    files.extend(paths.project_file.clone());
    if let Ok(loaded) = lango_config::load(&process_env) {
        let more = roster::project_files(&loaded, &process_env.cwd).into_iter();
        files.extend(more.map(|file| file.path));
    }
    let mut was_trusted = false;
    for file in &files {
        was_trusted |= trust.revoke(file);
    }
    trust
        .write()
        .map_err(|error| trust_failure(&paths.trust_file(), &error))?;
    let project = paths.project(&process_env.cwd).display();
    Ok(if was_trusted {
        format!("no file of {project} is trusted any more")
    } else {
        format!("no file of {project} was trusted")
    })
}

/// The project files that are trusted.
struct TrustedProject {
    project_file: Option<PathBuf>,
    files: Vec<PathBuf>,
    instructions: PathBuf,
    roster: Roster,
}

/// Adds all files of the project to `trust`, and passes each with its content to `found`.
fn trust_all(
    process_env: &ProcessEnv,
    paths: &Paths,
    trust: &mut TrustedFiles,
    mut found: impl FnMut(&Path, &[u8]),
) -> Result<TrustedProject, Failure> {
    // A file that belongs to another user is read once it is trusted.
    let foreign = paths.foreign_project_file().map(|foreign| &foreign.path);
    if let Some(file) = paths.project_file.as_ref().or(foreign) {
        let content = std::fs::read(file).map_err(|error| trust_failure(file, &error))?;
        found(file, &content);
        trust.add(file, content);
    }
    // Only the trusted configuration tells which other files belong to the project.
    let loaded: LoadedConfig = lango_config::load_with_trust(process_env, trust)?;
    let files = roster::project_files(&loaded, &process_env.cwd);
    let project_file = loaded.paths.project_file.clone();
    if project_file.is_none() && files.is_empty() {
        let message = format!(
            "there is no lango.toml in this folder or above it, no AGENTS.md in this folder, and no agent in `{}`",
            paths.project_agents(&process_env.cwd).display()
        );
        return Err(
            Failure::usage(message).next("`lango agents new --project NAME` creates an agent file")
        );
    }
    for file in &files {
        let content = file
            .bytes()
            .map_err(|error| trust_failure(&file.path, &error))?;
        found(&file.path, &content);
        trust.add(&file.path, content);
    }
    let roster = Roster::read_with_trust(&loaded, &process_env.cwd, trust)?;
    Ok(TrustedProject {
        project_file,
        files: files.into_iter().map(|file| file.path).collect(),
        instructions: roster::instructions_file(&process_env.cwd),
        roster,
    })
}

impl TrustedProject {
    fn describe(&self, ignored_settings: &[String]) -> String {
        let mut lines = Vec::new();
        let advice = "is trusted with its current content; trust it again after a change";
        lines.extend(
            self.project_file
                .iter()
                .map(|file| format!("{} {advice}", file.display())),
        );
        lines.extend(
            ignored_settings
                .iter()
                .map(|line| format!("  now in effect: {line}")),
        );
        for file in &self.files {
            lines.push(format!("{} {advice}", file.display()));
            if *file == self.instructions {
                let readers = self.roster.instructed_agents();
                let readers: Vec<&str> = readers.iter().map(|agent| agent.as_str()).collect();
                lines.push(if readers.is_empty() {
                    "  no agent of this topology gets it".to_owned()
                } else {
                    format!("  given to {}", readers.join(", "))
                });
            }
            let Some(spec) = self.roster.agent_of(file) else {
                continue;
            };
            lines.push(format!("  the agent `{}`: {}", spec.name, spec.role));
            if !spec.prefixes.is_empty() {
                let prefixes: Vec<&str> = spec
                    .prefixes
                    .iter()
                    .map(|entry| entry.prefix.as_str())
                    .collect();
                lines.push(format!(
                    "  owns the tools that start with {}",
                    prefixes.join(", ")
                ));
            }
            lines.extend(
                spec.model
                    .iter()
                    .map(|model| format!("  uses the model {model}")),
            );
            let settings = spec.model_settings();
            if !settings.is_default() {
                lines.push(format!("  uses the settings {settings}"));
            }
        }
        lines.join("\n")
    }
}

fn trust_failure(file: &Path, error: &dyn Display) -> Failure {
    let message = format!("`{}` cannot be trusted: {error}", file.display());
    Failure::failed(message)
}
