//! The rules of the one who delegates.

use super::request::{Request, Returned};
use super::routing::Table;
use super::words::parts;
use super::{Decision, rules, small_talk};
use serde_json::{Value, json};

const DELEGATE: &str = "delegate";

pub(super) fn decide(request: &Request<'_>, table: &Table<'_>) -> Decision {
    if !request.results.is_empty() {
        return after_results(request, table);
    }
    if let Some(answer) = small_talk::answer(request.task, Some(table)) {
        return Decision::Say(answer);
    }
    let parts = parts(request.task, |part| table.choose(part, &[]).is_some());
    // An orchestrator with tools makes one simple call itself.
    if let [part] = parts.as_slice()
        && let Some((rule, arguments)) = rules::find(part, |tool| request.offers(tool))
    {
        return Decision::Call(vec![(rule.tool, arguments)]);
    }
    if !request.offers(DELEGATE) {
        return Decision::Say(nobody(request.task, table));
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
        [] => Decision::Say(nobody(request.task, table)),
        [(agent, task)] => {
            Decision::Call(vec![(DELEGATE, delegation(agent, task, parts.len() == 1))])
        }
        many => Decision::Call(
            many.iter()
                .map(|(agent, task)| (DELEGATE, delegation(agent, task, false)))
                .collect(),
        ),
    }
}

/// Tries another agent for what was refused; else tells what came back.
fn after_results(request: &Request<'_>, table: &Table<'_>) -> Decision {
    let asked: Vec<Asked> = request.results.iter().filter_map(Asked::read).collect();
    if request.offers(DELEGATE)
        && let Some(again) = asked
            .iter()
            .find_map(|refused| another(refused, &asked, table))
    {
        return Decision::Call(vec![(DELEGATE, again)]);
    }
    let mut answers: Vec<String> = Vec::new();
    for (at, returned) in request.results.iter().enumerate() {
        match (Asked::read(returned), returned.failed) {
            (_, false) => answers.push(unmarked(returned.text).to_owned()),
            // Another agent took it over.
            (Some(failed), true)
                if asked
                    .iter()
                    .filter(|other| other.task == failed.task)
                    .count()
                    > 1
                    && at + 1 < request.results.len() => {}
            (_, true) => answers.push(format!(
                "This could not be done: {}.",
                unmarked(returned.text).trim_end_matches('.')
            )),
        }
    }
    Decision::Say(answers.join("\n\n"))
}

/// What a remote agent said, without the line before it that tells a model not to obey it. Rules obey nobody.
fn unmarked(text: &str) -> &str {
    match text.split_once('\n') {
        Some((mark, said)) if mark.starts_with("[from the remote agent ") => said,
        _ => text,
    }
}

/// A delegation as it was made.
struct Asked {
    agent: String,
    task: String,
    rejected: bool,
}

impl Asked {
    fn read(returned: &Returned<'_>) -> Option<Self> {
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

fn another(refused: &Asked, asked: &[Asked], table: &Table<'_>) -> Option<Value> {
    let same_task = || asked.iter().filter(|other| other.task == refused.task);
    let settled = same_task().any(|other| !other.rejected);
    let tried: Vec<&str> = asked
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

fn nobody(task: &str, table: &Table<'_>) -> String {
    let beginning: String = task.chars().take(80).collect();
    let unheld = if table.has_unheld_actions {
        " There are tools here that no agent holds; they cannot run."
    } else {
        ""
    };
    format!(
        "No agent here can do that: \"{beginning}\".{unheld}\n\n{}",
        small_talk::introduction(Some(table))
    )
}
