//! `lango skills`: lists the skills that agents can use, and what is wrong with the others.

use crate::exit::Exit;
use crate::screen::{self, Layout, one_line};
use lango::app::App;
use lango::app::Failure;
use lango_core::text::sanitize;
use lango_tools::SkillOwner;
use serde_json::json;

/// Runs the command.
pub(super) async fn skills(config: Vec<String>, as_json: bool) -> Result<Exit, Failure> {
    let app = App::load(config).await?;
    let word = |owner: SkillOwner| match owner {
        SkillOwner::User => "yours",
        SkillOwner::Project => "project",
    };
    if as_json {
        let good: Vec<_> = app
            .skills
            .good
            .iter()
            .map(|skill| {
                json!({
                    "name": skill.name,
                    "tool": format!("skill_{}", skill.name),
                    "description": skill.description,
                    "folder": skill.folder,
                    "whose": word(skill.owner),
                })
            })
            .collect();
        let broken: Vec<_> = app
            .skills
            .broken
            .iter()
            .map(|skill| json!({ "path": skill.path, "problem": skill.problem }))
            .collect();
        let all = json!({ "skills": good, "broken": broken });
        screen::print(&screen::json(&all, Layout::Indented)?)?;
        return Ok(Exit::Ok);
    }
    for skill in &app.skills.good {
        screen::print(&format!(
            "{}  {}  {}",
            skill.name,
            word(skill.owner),
            one_line(&skill.description, 100)
        ))?;
    }
    for skill in &app.skills.broken {
        let line = format!("broken: {}: {}", skill.path.display(), skill.problem);
        screen::print(&sanitize(&line))?;
    }
    if app.skills.good.is_empty() && app.skills.broken.is_empty() {
        let folders = app.loaded.paths.skills(app.workspace.path());
        let folders: Vec<String> = folders
            .iter()
            .map(|folder| folder.path.display().to_string())
            .collect();
        screen::print(&format!(
            "no skills; searched {} for folders with a SKILL.md",
            folders.join(", ")
        ))?;
    }
    Ok(Exit::Ok)
}
