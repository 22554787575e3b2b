//! What grants cover: whether one that was given is still in force, and which pattern a new one can have.

use crate::app::App;
use crate::exit::{Exit, Failure};
use lango_core::{Approvals, Grant, Subject, Text, Waiting};
use lango_engine::{edited_grant_problem, grant_problem, is_bound_to_content};
use serde_json::{Value, json};

/// Why a grant covers nothing any more; none if it does. Earlier versions of lango took wider patterns.
pub fn problem(app: &App, grant: &Grant) -> Option<String> {
    // Without a script a skill is safe, and no grant is needed.
    let is_for_scripts = grant.tool.as_str().starts_with("skill_");
    if is_for_scripts && !is_bound_to_content(&grant.pattern) {
        let problem = "it is not bound to the files of the skill, so scripts are asked for again";
        return Some(problem.to_owned());
    }
    let subject = subject_of(app, grant.tool.as_str());
    grant_problem(subject, &grant.pattern).map(str::to_owned)
}

/// What waits and what was granted as JSON, with the reason why a grant is not in force.
pub fn listed(app: &App, approvals: &Approvals) -> Value {
    let mut listed = json!(approvals);
    let grants = listed["granted"].as_array_mut().into_iter().flatten();
    for (shown, grant) in grants.zip(&approvals.granted) {
        if let Some(problem) = problem(app, grant) {
            shown["not_in_force"] = problem.into();
        }
    }
    listed
}

/// The pattern of an answer that shall hold for longer: the one given, or the one offered.
pub fn pattern(app: &App, waiting: &Waiting, given: Option<&str>) -> Result<Text, Failure> {
    let request = &waiting.request;
    let yes = format!("lango approvals answer {} yes", request.id);
    let Some(offered) = &request.pattern else {
        let message = format!("this call has to be allowed each time: {}", request.reason);
        return Err(Failure::new(Exit::Usage, message).next(yes));
    };
    let pattern = given.map_or_else(|| Text::clone(offered), Into::into);
    let subject = subject_of(app, request.tool.as_str());
    match edited_grant_problem(subject, offered, &pattern) {
        None => Ok(pattern),
        Some(problem) => {
            let next = format!("leave out --pattern to grant `{offered}`, or: {yes}");
            Err(Failure::new(Exit::Usage, problem).next(next))
        }
    }
}

/// What patterns for calls of a tool are matched against; by its name if it is not installed here.
fn subject_of(app: &App, tool: &str) -> Subject {
    let installed = app.tools.iter().find(|own| own.spec().name == *tool);
    match installed {
        Some(tool) => tool.spec().subject,
        None if tool.starts_with("exec") => Subject::Command,
        None if tool.starts_with("browser_") || tool == "search_fetch" => Subject::Site,
        None => Subject::default(),
    }
}
