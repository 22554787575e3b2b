//! `lango config trust`: takes the project's files at their word as they are now, says what that is, or takes it back.

use crate::config::{self, Loaded, Paths, Surroundings, Trust};
use crate::exit::{Exit, Failure};
use crate::markdown::sanitize;
use crate::roster::{self, Roster};
use crate::screen;
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// Trusts the project's configuration, agents, topology and `AGENTS.md` as they are now.
pub fn give(flags: Vec<String>) -> Result<(), Failure> {
    let surroundings = Surroundings::from_process(flags)?;
    let paths = Paths::locate(&surroundings)?;
    let before = Trust::read(&paths);
    let unheard = config::load(&surroundings).map(|loaded| loaded.unheard());
    let mut trust = before.clone();
    match give_all(&surroundings, &paths, &mut trust) {
        Ok(given) => {
            let unheard = unheard.unwrap_or_default();
            Ok(screen::print(&sanitize(&given.describe(&unheard)))?)
        }
        Err(failure) => {
            // What cannot be read, or makes no sense, is not trusted.
            before
                .write()
                .map_err(|error| failed(&paths.trust_file(), &error))?;
            Err(failure)
        }
    }
}

/// Takes back what was given.
pub fn take_back(flags: Vec<String>) -> Result<(), Failure> {
    let surroundings = Surroundings::from_process(flags)?;
    let paths = Paths::locate(&surroundings)?;
    let mut trust = Trust::read(&paths);
    let mut files = vec![
        paths.project_agents(&surroundings.cwd),
        roster::instructions_file(&surroundings.cwd),
    ];
    files.extend(paths.project_file.clone());
    if let Ok(loaded) = config::load(&surroundings) {
        let more = roster::project_files(&loaded, &surroundings.cwd).into_iter();
        files.extend(more.map(|file| file.path));
    }
    let mut was_trusted = false;
    for file in &files {
        was_trusted |= trust.take_back(file);
    }
    trust
        .write()
        .map_err(|error| failed(&paths.trust_file(), &error))?;
    let project = paths.project(&surroundings.cwd).display();
    Ok(screen::print(&match was_trusted {
        true => format!("nothing of {project} is trusted any more"),
        false => format!("nothing of {project} was trusted"),
    })?)
}

/// What was trusted.
struct Given {
    project_file: Option<PathBuf>,
    files: Vec<PathBuf>,
    instructions: PathBuf,
    roster: Roster,
}

fn give_all(
    surroundings: &Surroundings,
    paths: &Paths,
    trust: &mut Trust,
) -> Result<Given, Failure> {
    let write = |trust: &Trust| {
        let stored = trust.write();
        stored.map_err(|error| failed(&paths.trust_file(), &error))
    };
    // A file of another user is read once the user trusts it.
    let foreign = paths.foreign_project_file().map(|foreign| &foreign.path);
    if let Some(file) = paths.project_file.as_ref().or(foreign) {
        let content = std::fs::read(file).map_err(|error| failed(file, &error))?;
        trust.give(file, content);
        write(trust)?;
    }
    // Only now it can be known which other files it names.
    let loaded: Loaded = config::load(surroundings)?;
    let files = roster::project_files(&loaded, &surroundings.cwd);
    let project_file = loaded.paths.project_file.clone();
    if project_file.is_none() && files.is_empty() {
        let message = format!(
            "there is no lango.toml in this folder or above it, no AGENTS.md in this folder, and no agent in `{}`",
            paths.project_agents(&surroundings.cwd).display()
        );
        return Err(Failure::new(Exit::Usage, message)
            .next("`lango agents new --project NAME` writes an agent file"));
    }
    for file in &files {
        let content = file.bytes().map_err(|error| failed(&file.path, &error))?;
        trust.give(&file.path, content);
    }
    write(trust)?;
    let roster = Roster::read(&loaded, &surroundings.cwd)?;
    Ok(Given {
        project_file,
        files: files.into_iter().map(|file| file.path).collect(),
        instructions: roster::instructions_file(&surroundings.cwd),
        roster,
    })
}

impl Given {
    fn describe(&self, unheard: &[String]) -> String {
        let mut lines = Vec::new();
        let advice = "is trusted as it is now; a change has to be trusted again";
        lines.extend(
            self.project_file
                .iter()
                .map(|file| format!("{} {advice}", file.display())),
        );
        lines.extend(unheard.iter().map(|line| format!("  now heard: {line}")));
        for file in &self.files {
            lines.push(format!("{} {advice}", file.display()));
            if *file == self.instructions {
                let told = self.roster.instructed();
                let told: Vec<&str> = told.iter().map(|agent| agent.as_str()).collect();
                lines.push(match told.is_empty() {
                    true => "  no agent of this topology is told it".to_owned(),
                    false => format!("  told to {}", told.join(", ")),
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
                    "  holds the tools that begin with {}",
                    prefixes.join(", ")
                ));
            }
            lines.extend(
                spec.model
                    .iter()
                    .map(|model| format!("  is answered by {model}")),
            );
            let settings = spec.model_settings();
            if !settings.is_default() {
                lines.push(format!("  answers with {settings}"));
            }
        }
        lines.join("\n")
    }
}

fn failed(file: &Path, error: &dyn Display) -> Failure {
    let message = format!("`{}` cannot be trusted: {error}", file.display());
    Failure::new(Exit::Failed, message)
}
