//! The tools that manage skills: one lists the skills, the other creates a new skill.

use super::create::{CreateArguments, NewSkill, name_taken};
use super::{BrokenSkill, SkillFolder, SkillOwner, Skills};
use crate::declaration::{Blocking, BlockingParts};
use crate::show;
use lango_core::{Effect, Risk, RuleSubject, Tool, ToolDeclaration, ToolError, Trust};
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::PathBuf;
use std::sync::Arc;

/// Number of characters after which the list truncates a description or a problem.
const MAX_LINE: usize = 200;

/// Maximum number of broken skills in the list.
const MAX_BROKEN: usize = 50;

const LIST: ToolDeclaration = ToolDeclaration {
    name: "list_skills",
    description: "Lists the skills: the usable ones, and the broken ones with the reason.",
    effect: Effect::Pure,
    risk: Risk::Safe,
    subject: RuleSubject::Arguments,
};

const CREATE: ToolDeclaration = ToolDeclaration {
    name: "create_skill",
    description: "Creates a new skill: instructions for a task, so that it can be repeated later without working it out \
        again. The skill is available after the next start. Existing skills are not changed.",
    effect: Effect::NonIdempotent,
    risk: Risk::Moderate,
    subject: RuleSubject::Arguments,
};

/// Creates two tools: `list_skills` lists `skills` and the skills added to `folder` since then, and `create_skill`
/// writes to `folder`.
pub fn skill_library_tools(skills: &Skills, folder: PathBuf) -> Vec<Arc<dyn Tool>> {
    let library = Arc::new(Library {
        skills: skills.clone(),
        folder,
    });
    let (listing, creating, previewing) = (Arc::clone(&library), Arc::clone(&library), library);
    let list = LIST.with_blocking_code(move |_: NoArguments| Ok(listing.list()));
    let parts = BlockingParts {
        preview: Some(Box::new(move |arguments, request| {
            let skill = previewing.check_new_skill(arguments, Trust::Trusted)?;
            Ok(skill.preview(&previewing.folder, request.length))
        })),
        inspect: None,
    };
    let create = CREATE.with_blocking_parts(
        move |call, arguments| {
            let skill = creating.check_new_skill(arguments, call.caller.trust)?;
            skill.write(&creating.folder)
        },
        parts,
    );
    vec![list, create]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoArguments {}

struct Library {
    /// The skills that were found at startup.
    skills: Skills,
    folder: PathBuf,
}

impl Library {
    fn check_new_skill(
        &self,
        arguments: CreateArguments,
        author: Trust,
    ) -> Result<NewSkill, ToolError> {
        let skill = NewSkill::check(arguments, author)?;
        let is_known = self.skills.good.iter().any(|card| card.name == skill.name);
        let exists = self.folder.join(&skill.name).symlink_metadata().is_ok();
        if is_known || exists {
            Err(name_taken(&skill.name))
        } else {
            Ok(skill)
        }
    }

    fn list(&self) -> String {
        let now = Skills::find(&[SkillFolder {
            path: self.folder.clone(),
            owner: SkillOwner::User,
        }]);
        let known = |name: &String| self.skills.good.iter().any(|card| card.name == *name);
        let new_good = now.good.iter().filter(|card| !known(&card.name));
        let known =
            |broken: &BrokenSkill| self.skills.broken.iter().any(|old| old.path == broken.path);
        let new_broken = now.broken.iter().filter(|broken| !known(broken));
        let mut text = String::new();
        for card in &self.skills.good {
            let owner = match card.owner {
                SkillOwner::User => "user",
                SkillOwner::Project => "project",
            };
            text.push_str(&line(
                &format!("{} ({owner})", card.name),
                &card.description,
            ));
        }
        for card in new_good {
            let name = format!("{} (user, available after the next start)", card.name);
            text.push_str(&line(&name, &card.description));
        }
        let mut broken = self.skills.broken.iter().chain(new_broken);
        for broken in broken.by_ref().take(MAX_BROKEN) {
            let name = format!("broken: {}", show::name(broken.path.as_os_str()));
            text.push_str(&line(&name, &broken.problem));
        }
        let left = broken.count();
        if left > 0 {
            text.push_str(&format!("[{left} more broken skills]\n"));
        }
        if text.is_empty() {
            "There are no skills.\n".to_owned()
        } else {
            text
        }
    }
}

fn line(name: &str, text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    format!("{name}: {}\n", show::line(&words.join(" "), MAX_LINE))
}
