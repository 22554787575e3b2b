//! The rules of an agent that does the work: a sub-agent with a task, or the single agent with the user's message.

use super::clause::Clause;
use super::parts::parts;
use super::request::Request;
use super::rules::{self, Task};
use super::steps::{self, Step};
use super::suggestions::{NOT_UNDERSTOOD, Workers, excerpt, refusal};
use super::{Decision, answer, small_talk};

const NO_SEARCH_SERVICE: &str = "I cannot search the web because no search service is set up; set one under \
    `search.providers` (docs/web.md), or give me the address of a page";

/// The reason of a rejection that says nothing about the task.
pub(super) const NO_RULE: &str = "none of my rules matches this task";

const UNCLEAR_TEXT: &str = "I cannot tell where the text ends; put it in \"quotation marks\"";

pub(super) fn decide(request: &Request<'_>) -> Decision {
    if request.has_no_functions() && !request.results.is_empty() {
        return Decision::Say(all_results(request));
    }
    if let Some((tool, arguments)) = rules::explicit_call(request.task) {
        if !request.results.is_empty() {
            return Decision::Say(all_results(request));
        }
        if request.offers(tool) {
            return Decision::Call(vec![(tool.to_owned(), arguments)]);
        }
    }
    if !request.may_reject
        && let Some(answer) = small_talk::answer(request, Workers::Own(request))
    {
        return Decision::Say(answer);
    }
    let Ok(parts) = parts(request.task, |_| false) else {
        return refuse(request, request.task, Some(UNCLEAR_TEXT));
    };
    let offers = |tool: &str| request.offers(tool) || can_plan(request, tool);
    let tasks: Vec<(&str, Option<Task>)> = parts
        .into_iter()
        .map(|part| (part, rules::find(part, offers)))
        .collect();
    let unknown = tasks.iter().find(|(_, task)| task.is_none());
    let has_effect = tasks
        .iter()
        .flat_map(|(_, task)| task)
        .any(Task::has_effect);
    let is_understood = tasks.iter().any(|(_, task)| task.is_some());
    match unknown {
        // What changes something is done only if the whole task is clear.
        Some((part, _)) if has_effect || !is_understood => refuse(request, part, None),
        Some((part, _)) => {
            let done = work(request, &tasks);
            match done {
                Decision::Say(text) => {
                    let problem = format!("I did not do this part: {}.", excerpt(part));
                    let rest = refusal(&problem, part, Workers::Own(request));
                    Decision::Say(format!("{text}\n\n{rest}"))
                }
                Decision::Call(_) => done,
            }
        }
        None => work(request, &tasks),
    }
}

/// Takes the next step of each task. Calls that only read are made together; one with an effect is made alone, after
/// everything before it.
fn work(request: &Request<'_>, tasks: &[(&str, Option<Task>)]) -> Decision {
    let mut results = request.results.iter();
    let mut answers = Vec::new();
    let mut calls = Vec::new();
    let mut has_failed = false;
    for (part, task) in tasks {
        let Some(task) = task else { continue };
        if task.has_effect() && !calls.is_empty() {
            break;
        }
        if task.has_effect() && has_failed && results.len() == 0 {
            answers.push(format!("I stopped before this: {}.", excerpt(part)));
            continue;
        }
        match steps::next(task, &mut results) {
            Step::Done { mut answer, failed } => {
                has_failed |= failed;
                if failed
                    && answer.contains("does not exist")
                    && task.tool() == "fs_read"
                    && let Some(path) = rules::spaced_path(&Clause::read(part))
                {
                    answer.push_str(&format!(
                        " A name with spaces needs quotation marks: read \"{path}\""
                    ));
                }
                answers.push(answer);
            }
            Step::Calls(made) => {
                let named = |(tool, arguments): (&str, _)| (tool.to_owned(), arguments);
                calls.extend(made.into_iter().map(named));
                if task.has_effect() {
                    break;
                }
            }
        }
    }
    if calls.is_empty() {
        Decision::Say(answers.join("\n\n"))
    } else {
        Decision::Call(calls)
    }
}

/// Rejects a task, or says to the user that it cannot be done.
fn refuse(request: &Request<'_>, part: &str, reason: Option<&str>) -> Decision {
    let needed = rules::find_any(part).map(|task| task.tool());
    let reason = match (reason, needed) {
        (Some(reason), _) => Some(reason.to_owned()),
        (None, Some("search_web")) => Some(NO_SEARCH_SERVICE.to_owned()),
        (None, Some(rules::PLAN)) => Some("I do not make plans".to_owned()),
        (None, Some(tool)) => Some(format!("this needs `{tool}`, and I do not have it")),
        (None, None) => None,
    };
    if request.may_reject {
        let reason = reason.as_deref().unwrap_or(NO_RULE);
        return Decision::Say(format!("[REJECT] {reason}"));
    }
    let mut problem = match reason {
        Some(reason) => format!("I cannot do that: {} ({reason}).", excerpt(part)),
        None => format!("{NOT_UNDERSTOOD}: {}.", excerpt(part)),
    };
    if let Some(unread) = request.unread {
        problem.push_str(&format!(" I cannot read {unread}."));
    }
    Decision::Say(refusal(&problem, request.task, Workers::Own(request)))
}

/// Whether the agent makes plans: the planner does, and an agent that works alone.
fn can_plan(request: &Request<'_>, tool: &str) -> bool {
    tool == rules::PLAN && (!request.may_reject || request.instruction.contains("numbered plan"))
}

/// Joins all results, in the order of the calls.
fn all_results(request: &Request<'_>) -> String {
    let answers: Vec<String> = request.results.iter().map(answer::of).collect();
    answers.join("\n\n")
}
