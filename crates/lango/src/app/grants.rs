//! What grants cover: whether an existing grant is still in force, and which pattern a new one may have.

use crate::app::App;
use crate::app::failure::Failure;
use lango_core::{Approvals, Grant, PendingApproval, RuleSubject, Text};
use lango_engine::{content_bound_pattern, edited_grant_problem, grant_problem};
use serde_json::{Value, json};

/// Returns why a grant is no longer in force; `None` if it still is. A grant from an earlier version of lango can have
/// a pattern that is too wide today.
pub fn problem(app: &App, grant: &Grant) -> Option<String> {
    // A skill without a script is safe and needs no grant.
    let is_for_scripts = grant.tool.as_str().starts_with("skill_");
    if is_for_scripts && content_bound_pattern(&grant.pattern).is_none() {
        let problem = "it is not bound to the skill's files, so scripts need approval again";
        return Some(problem.to_owned());
    }
    let subject = subject_of(app, grant.tool.as_str());
    grant_problem(subject, &grant.pattern).map(str::to_owned)
}

/// Returns pending approvals and grants as JSON, with the reason if a grant is not in force.
pub fn approvals_json(app: &App, approvals: &Approvals) -> Value {
    let mut list = json!(approvals);
    let grants = list["granted"].as_array_mut().into_iter().flatten();
    for (shown, grant) in grants.zip(&approvals.granted) {
        if let Some(problem) = problem(app, grant) {
            shown["not_in_force"] = problem.into();
        }
    }
    list
}

/// Returns the pattern of a lasting grant: the given one, or else the offered one. Fails if the given pattern is
/// invalid, or if the call needs approval each time.
pub fn pattern(app: &App, waiting: &PendingApproval, given: Option<&str>) -> Result<Text, Failure> {
    let request = &waiting.request;
    let yes = format!("lango approvals answer {} yes", request.id);
    let Some(offered) = &request.pattern else {
        let message = format!("this call needs approval each time: {}", request.reason);
        return Err(Failure::usage(message).next(yes));
    };
    let pattern = given.map_or_else(|| Text::clone(offered), Into::into);
    let subject = subject_of(app, request.tool.as_str());
    match edited_grant_problem(subject, request, &pattern) {
        None => Ok(pattern),
        Some(problem) => {
            let next = format!("leave out --pattern to grant `{offered}`, or: {yes}");
            Err(Failure::usage(problem).next(next))
        }
    }
}

/// Returns what patterns for a tool are matched against; guessed from its name if the tool is not installed here.
fn subject_of(app: &App, tool: &str) -> RuleSubject {
    let installed = app.tools.iter().find(|own| own.spec().name == *tool);
    match installed {
        Some(tool) => tool.spec().subject,
        None if tool.starts_with("exec") => RuleSubject::Command,
        None if tool.starts_with("browser_") || tool == "search_fetch" => RuleSubject::Site,
        None => RuleSubject::default(),
    }
}
