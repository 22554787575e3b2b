//! The rules of the orchestrator, which delegates.

use super::request::{CallResult, Request};
use super::routing::Table;
use super::words::parts;
use super::{Decision, rules, small_talk};
use serde_json::{Value, json};

const DELEGATE: &str = "delegate";

pub(super) fn decide(request: &Request<'_>, table: &Table<'_>) -> Decision {
    if !request.results.is_empty() {
        return after_results(request, table);
    }
    // The runner delegates the call to the agent that owns the tool.
    if let Some((tool, arguments)) = rules::explicit_call(request.task) {
        return Decision::Call(vec![(tool.to_owned(), arguments)]);
    }
    if let Some(answer) = small_talk::answer(request.task, Some(table)) {
        return Decision::Say(answer);
    }
    let parts = parts(request.task, |part| table.choose(part, &[]).is_some());
    // An orchestrator with tools makes one simple call itself.
    if let [part] = parts.as_slice()
        && let Some((rule, arguments)) = rules::find(part, |tool| request.offers(tool))
    {
        return Decision::Call(vec![(rule.tool.to_owned(), arguments)]);
    }
    if !request.offers(DELEGATE) {
        return Decision::Say(no_agent_answer(request.task, table));
    }
    let chosen: Vec<_> = parts
        .iter()
        .filter_map(|part| {
            table
                .choose(part, &[])
                .map(|entry| (entry.name, part.as_str()))
        })
        .collect();
    match chosen.as_slice() {
        [] => Decision::Say(no_agent_answer(request.task, table)),
        [(agent, task)] => Decision::Call(vec![(
            DELEGATE.to_owned(),
            delegation(agent, task, parts.len() == 1),
        )]),
        many => Decision::Call(
            many.iter()
                .map(|(agent, task)| (DELEGATE.to_owned(), delegation(agent, task, false)))
                .collect(),
        ),
    }
}

/// Delegates a rejected task to another agent; if there is none, answers with the results.
fn after_results(request: &Request<'_>, table: &Table<'_>) -> Decision {
    let delegations: Vec<Delegation> = request
        .results
        .iter()
        .filter_map(Delegation::read)
        .collect();
    if request.offers(DELEGATE)
        && let Some(again) = delegations
            .iter()
            .find_map(|refused| retry_elsewhere(refused, &delegations, table))
    {
        return Decision::Call(vec![(DELEGATE.to_owned(), again)]);
    }
    let mut answers: Vec<String> = Vec::new();
    for (at, returned) in request.results.iter().enumerate() {
        match (Delegation::read(returned), returned.failed) {
            (_, false) => answers.push(without_untrusted_mark(returned.text).to_owned()),
            // The task was delegated again to another agent.
            (Some(failed), true)
                if delegations
                    .iter()
                    .filter(|other| other.task == failed.task)
                    .count()
                    > 1
                    && at + 1 < request.results.len() => {}
            (_, true) => answers.push(format!(
                "I could not do this: {}.",
                without_untrusted_mark(returned.text).trim_end_matches('.')
            )),
        }
    }
    Decision::Say(answers.join("\n\n"))
}

/// Strips the first line if it warns a model not to obey a remote agent's text. These rules obey no text anyway.
fn without_untrusted_mark(text: &str) -> &str {
    match text.split_once('\n') {
        Some((mark, reply)) if mark.starts_with("[from the remote agent ") => reply,
        _ => text,
    }
}

/// A delegation made earlier in this turn.
struct Delegation {
    agent: String,
    task: String,
    rejected: bool,
}

impl Delegation {
    fn read(returned: &CallResult<'_>) -> Option<Self> {
        let arguments: Value = serde_json::from_str(returned.arguments).ok()?;
        let field = |name: &str| {
            arguments
                .get(name)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let rejected = returned.failed && returned.text.contains("rejected");
        (returned.name == DELEGATE).then_some(Self {
            agent: field("agent")?,
            task: field("task")?,
            rejected,
        })
    }
}

/// Returns the delegation of a rejected task to an agent that has not tried it.
fn retry_elsewhere(
    refused: &Delegation,
    delegations: &[Delegation],
    table: &Table<'_>,
) -> Option<Value> {
    let same_task = || {
        delegations
            .iter()
            .filter(|other| other.task == refused.task)
    };
    let settled = same_task().any(|other| !other.rejected);
    let tried: Vec<&str> = delegations
        .iter()
        .filter(|other| other.rejected || other.task == refused.task)
        .map(|other| other.agent.as_str())
        .collect();
    let next = table.choose(&refused.task, &tried)?;
    (refused.rejected && !settled).then(|| delegation(next.name, &refused.task, false))
}

fn delegation(agent: &str, task: &str, finish: bool) -> Value {
    json!({ "agent": agent, "task": task, "finish": finish })
}

fn no_agent_answer(task: &str, table: &Table<'_>) -> String {
    let excerpt: String = task.chars().take(80).collect();
    let unowned = if table.has_unowned_tools {
        " Some tools here belong to no agent, so I cannot use them."
    } else {
        ""
    };
    format!(
        "No agent here can do that: \"{excerpt}\".{unowned}\n\n{}",
        small_talk::introduction(Some(table))
    )
}
