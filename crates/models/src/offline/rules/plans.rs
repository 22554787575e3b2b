//! The rule for plans.

use super::{Action, Task};
use crate::offline::clause::{Clause, non_empty};
use crate::offline::extract::is_path;

pub(super) fn plan(clause: &Clause<'_>) -> Option<Task> {
    let goal = clause.after(&[
        "make a plan for",
        "make a plan to",
        "make a plan of",
        "make me a plan for",
        "make me a plan to",
        "make a plan",
        "create a plan for",
        "create a plan to",
        "write a plan for",
        "write a plan to",
        "write me a plan for",
        "draft a plan for",
        "draft a plan to",
        "give me a plan for",
        "give me a plan to",
        "i need a plan for",
        "i need a plan to",
        "what is the plan for",
        "what are the steps for",
        "what are the steps to",
        "give me the steps for",
        "give me the steps to",
        "list the steps for",
        "list the steps to",
        "show me the steps to",
        "steps for",
        "steps to",
        "a plan for",
        "roadmap for",
        "make a roadmap for",
        "strategy for",
        "break down the task of",
        "break down",
        "plan out",
        "plan for",
        "plan how to",
        "plan to",
        "plan",
        "organise",
        "organize",
        "prepare for",
        "prepare",
    ])?;
    // A plan is not written to a file.
    let names_file = goal.split_whitespace().any(is_path);
    let goal = non_empty(goal).filter(|goal| !names_file && !goal.contains('`'))?;
    Some(Task {
        action: Action::Plan {
            goal: goal.to_owned(),
        },
        is_open: false,
    })
}
