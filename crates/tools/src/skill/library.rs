//! The tools of whoever looks after the skills: one that tells which there are, one that makes a new one.

use super::create::{CreateArguments, Draft, taken};
use super::{BrokenSkill, SkillFolder, Skills, Whose};
use crate::declaration::{Blocking, BlockingParts};
use crate::show;
use lango_core::{Declaration, Effect, Risk, Subject, Tool, ToolError, Trust};
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::PathBuf;
use std::sync::Arc;

/// How much of a description or a problem is told in the list.
const LONGEST_LINE: usize = 200;

/// How many broken ones are told.
const MOST_BROKEN: usize = 50;

const LIST: Declaration = Declaration {
    name: "list_skills",
    description: "Lists the skills: those that can be used, and those that are broken with what is wrong with them.",
    effect: Effect::Pure,
    risk: Risk::Safe,
    subject: Subject::Arguments,
};

const CREATE: Declaration = Declaration {
    name: "create_skill",
    description: "Writes a new skill: how something is done, so that it can be done again later without being found \
        out anew. It is available from the next start. Nothing that is there is changed.",
    effect: Effect::Effect,
    risk: Risk::Moderate,
    subject: Subject::Arguments,
};

/// `list_skills`, which tells of `skills` and of what has come to `folder` since, and `create_skill`, which writes there.
pub fn skill_library_tools(skills: &Skills, folder: PathBuf) -> Vec<Arc<dyn Tool>> {
    let library = Arc::new(Library {
        skills: skills.clone(),
        folder,
    });
    let (listing, creating, previewing) = (Arc::clone(&library), Arc::clone(&library), library);
    let list = LIST.with_blocking_code(move |_: NoArguments| Ok(listing.list()));
    let parts = BlockingParts {
        preview: Box::new(move |arguments, extent| {
            let draft = previewing.draft(arguments, Trust::Trusted)?;
            Ok(draft.preview(&previewing.folder, extent))
        }),
        inspect: None,
    };
    let create = CREATE.with_blocking_parts(
        move |caller, arguments| {
            let draft = creating.draft(arguments, caller.trust)?;
            draft.write(&creating.folder)
        },
        parts,
    );
    vec![list, create]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoArguments {}

struct Library {
    /// Those that were found at the start.
    skills: Skills,
    folder: PathBuf,
}

impl Library {
    fn draft(&self, arguments: CreateArguments, author: Trust) -> Result<Draft, ToolError> {
        let draft = Draft::check(arguments, author)?;
        let is_known = self.skills.good.iter().any(|card| card.name == draft.name);
        let is_there = self.folder.join(&draft.name).symlink_metadata().is_ok();
        match is_known || is_there {
            true => Err(taken(&draft.name)),
            false => Ok(draft),
        }
    }

    fn list(&self) -> String {
        let now = Skills::find(&[SkillFolder {
            path: self.folder.clone(),
            whose: Whose::User,
        }]);
        let known = |name: &String| self.skills.good.iter().any(|card| card.name == *name);
        let new_good = now.good.iter().filter(|card| !known(&card.name));
        let known =
            |broken: &BrokenSkill| self.skills.broken.iter().any(|old| old.path == broken.path);
        let new_broken = now.broken.iter().filter(|broken| !known(broken));
        let mut text = String::new();
        for card in &self.skills.good {
            let whose = match card.whose {
                Whose::User => "the user's",
                Whose::Project => "the project's",
            };
            text.push_str(&line(
                &format!("{} ({whose})", card.name),
                &card.description,
            ));
        }
        for card in new_good {
            let name = format!("{} (the user's, from the next start on)", card.name);
            text.push_str(&line(&name, &card.description));
        }
        let mut broken = self.skills.broken.iter().chain(new_broken);
        for broken in broken.by_ref().take(MOST_BROKEN) {
            let name = format!("broken: {}", show::name(broken.path.as_os_str()));
            text.push_str(&line(&name, &broken.problem));
        }
        let left = broken.count();
        if left > 0 {
            text.push_str(&format!("[and {left} more that are broken]\n"));
        }
        match text.is_empty() {
            true => "There are no skills.\n".to_owned(),
            false => text,
        }
    }
}

fn line(name: &str, text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    format!("{name}: {}\n", show::line(&words.join(" "), LONGEST_LINE))
}
