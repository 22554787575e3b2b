//! Trust in a project's files: trusts their current content and describes what that enables, or revokes the trust.

use crate::app::Failure;
use crate::app::roster::{self, Roster};
use lango_config::{LoadedConfig, Paths, ProcessEnv, TrustedFiles};
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// Trusts the current content of the project's configuration, agents, topology and `AGENTS.md`, and describes what
/// is trusted now. If a file is invalid or cannot be read, the earlier trust stays as it was.
pub fn trust_project(flags: Vec<String>) -> Result<String, Failure> {
    let process_env = ProcessEnv::from_process(flags)?;
    let paths = Paths::locate(&process_env)?;
    let before = TrustedFiles::read(&paths);
    let ignored_settings = lango_config::load(&process_env).map(|loaded| loaded.ignored_settings());
    let mut trust = before.clone();
    match trust_all(&process_env, &paths, &mut trust) {
        Ok(trusted) => Ok(trusted.describe(&ignored_settings.unwrap_or_default())),
        Err(failure) => {
            before
                .write()
                .map_err(|error| trust_failure(&paths.trust_file(), &error))?;
            Err(failure)
        }
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

/// The project files that are now trusted.
struct TrustedProject {
    project_file: Option<PathBuf>,
    files: Vec<PathBuf>,
    instructions: PathBuf,
    roster: Roster,
}

fn trust_all(
    process_env: &ProcessEnv,
    paths: &Paths,
    trust: &mut TrustedFiles,
) -> Result<TrustedProject, Failure> {
    let write = |trust: &TrustedFiles| {
        let stored = trust.write();
        stored.map_err(|error| trust_failure(&paths.trust_file(), &error))
    };
    // A file that belongs to another user is read once it is trusted.
    let foreign = paths.foreign_project_file().map(|foreign| &foreign.path);
    if let Some(file) = paths.project_file.as_ref().or(foreign) {
        let content = std::fs::read(file).map_err(|error| trust_failure(file, &error))?;
        trust.add(file, content);
        write(trust)?;
    }
    // Only the trusted configuration tells which other files belong to the project.
    let loaded: LoadedConfig = lango_config::load(process_env)?;
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
        trust.add(&file.path, content);
    }
    write(trust)?;
    let roster = Roster::read(&loaded, &process_env.cwd)?;
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
