//! The rules of the orchestrator, which delegates.

use super::agent::NO_RULE;
use super::clause::without_address;
use super::parts::parts;
use super::request::{CallResult, Request};
use super::routing::Table;
use super::rules::{self, Action, Task};
use super::suggestions::{NOT_UNDERSTOOD, Workers, excerpt, refusal};
use super::{Decision, answer, plan, small_talk};
use serde_json::{Value, json};

const DELEGATE: &str = "delegate";

/// A part of the message, what the rules read in it, and the agent for it.
struct Part<'a> {
    text: &'a str,
    task: Option<Task>,
    agent: Option<&'a str>,
}

impl<'a> Part<'a> {
    /// Returns the text without the punctuation at its end, unless that belongs to a command or a path.
    fn delegated_text(&self) -> &'a str {
        let shorter = self.text.trim_end_matches(['.', '?', '!']);
        let is_command = self.task.as_ref().is_some_and(Task::is_open_command);
        if is_command || shorter.is_empty() || shorter.ends_with([' ', '/']) {
            self.text
        } else {
            shorter
        }
    }
}

pub(super) fn decide(request: &Request<'_>, table: &Table<'_>) -> Decision {
    // The runner delegates the call to the agent that owns the tool.
    if let Some((tool, arguments)) = rules::explicit_call(request.task) {
        return if request.results.is_empty() {
            Decision::Call(vec![(tool.to_owned(), arguments)])
        } else {
            after_results(request, table, &[])
        };
    }
    let workers = Workers::Team(table);
    if request.results.is_empty()
        && let Some(answer) = small_talk::answer(request, workers)
    {
        return Decision::Say(answer);
    }
    let is_request = |part: &str| table.choose(part, None, &[]).is_some();
    let Ok(texts) = parts(request.task, is_request) else {
        let problem = format!(
            "I cannot tell where the text ends: {}. Put the text in \"quotation marks\".",
            excerpt(request.task)
        );
        return Decision::Say(refusal(&problem, request.task, workers));
    };
    let parts: Vec<Part<'_>> = texts
        .into_iter()
        .map(|text| {
            let task = rules::find_any(text);
            let agent = table.choose(text, task.as_ref(), &[]);
            let agent = agent.map(|entry| entry.name);
            let text = without_address(text);
            Part { text, task, agent }
        })
        .collect();
    let parts = without_courtesies(parts);
    if !request.results.is_empty() {
        return after_results(request, table, &parts);
    }
    // What changes something is done only if the whole message is clear.
    let has_effect = parts
        .iter()
        .flat_map(|part| &part.task)
        .any(Task::has_effect);
    if has_effect && parts.iter().any(|part| part.task.is_none()) {
        return Decision::Say(refuse(request, table, None));
    }
    // An orchestrator with tools makes one simple call itself.
    if let [part] = parts.as_slice()
        && let Some(Task {
            action: Action::Call { tool, arguments },
            ..
        }) = rules::find(part.text, |tool| request.offers(tool))
    {
        return Decision::Call(vec![(tool.to_owned(), arguments)]);
    }
    let delegations = if request.offers(DELEGATE) {
        delegations(&parts)
    } else {
        Vec::new()
    };
    if delegations.is_empty() {
        return Decision::Say(own_plan(&parts).unwrap_or_else(|| refuse(request, table, None)));
    }
    Decision::Call(delegations)
}

/// Removes parts such as "thanks" from a message with other parts.
fn without_courtesies(parts: Vec<Part<'_>>) -> Vec<Part<'_>> {
    const COURTESIES: [&str; 8] = [
        "hello",
        "hi",
        "hey",
        "thanks",
        "thank you",
        "please",
        "ok",
        "good morning",
    ];
    let is_courtesy = |part: &Part<'_>| {
        let text = part.text.trim_end_matches(['.', '!', ',', ' ']);
        COURTESIES
            .iter()
            .any(|courtesy| text.eq_ignore_ascii_case(courtesy))
    };
    if parts.iter().all(is_courtesy) {
        return parts;
    }
    parts
        .into_iter()
        .filter(|part| !is_courtesy(part))
        .collect()
}

/// Delegates each part. Neighbouring parts for the same agent are one task. The agent's answer goes to the user as it is
/// if it is the whole answer.
fn delegations(parts: &[Part<'_>]) -> Vec<(String, Value)> {
    let mut tasks: Vec<(&str, String)> = Vec::new();
    let mut ends_with_command = false;
    for part in parts {
        let Some(agent) = part.agent else { continue };
        match tasks.last_mut() {
            Some((last, task)) if *last == agent && part.task.is_some() => {
                // After a semicolon, the shell would run the next request.
                task.push_str(if ends_with_command {
                    ", and then "
                } else {
                    "; "
                });
                task.push_str(part.text);
            }
            _ => tasks.push((agent, part.delegated_text().to_owned())),
        }
        ends_with_command = part.task.as_ref().is_some_and(Task::is_open_command);
    }
    let is_whole = tasks.len() == 1 && parts.iter().all(|part| part.agent.is_some());
    tasks
        .into_iter()
        .map(|(agent, task)| (DELEGATE.to_owned(), delegation(agent, &task, is_whole)))
        .collect()
}

/// Returns plans without a planner, if the message asks for nothing else.
fn own_plan(parts: &[Part<'_>]) -> Option<String> {
    let plans: Option<Vec<String>> = parts
        .iter()
        .map(|part| match part.task.as_ref().map(|task| &task.action) {
            Some(Action::Plan { goal }) => Some(plan::plan(goal)),
            _ => None,
        })
        .collect();
    plans
        .filter(|plans| !plans.is_empty())
        .map(|plans| plans.join("\n\n"))
}

/// Delegates a rejected task to another agent; if there is none, answers with the results.
fn after_results(request: &Request<'_>, table: &Table<'_>, parts: &[Part<'_>]) -> Decision {
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
    let mut rejection: Option<Delegation> = None;
    for result in &request.results {
        match Delegation::read(result) {
            Some(made) if made.rejected => {
                let is_answered = delegations
                    .iter()
                    .any(|other| other.task == made.task && !other.rejected);
                rejection = rejection.or(Some(made).filter(|_| !is_answered));
            }
            Some(made) if result.failed => answers.push(made.failure(result.text)),
            Some(_) => answers.push(answer::without_marks(result.text).to_owned()),
            None => answers.push(answer::of(result)),
        }
    }
    let undone = parts.iter().find(|part| part.agent.is_none());
    match (rejection, undone) {
        (Some(rejection), _) => answers.push(refuse(request, table, Some(&rejection))),
        (None, Some(part)) => {
            let problem = format!("I did not do this part: {}.", excerpt(part.text));
            answers.push(refusal(&problem, part.text, Workers::Team(table)));
        }
        (None, None) => {}
    }
    Decision::Say(answers.join("\n\n"))
}

/// A delegation made earlier in this turn.
struct Delegation {
    agent: String,
    task: String,
    rejected: bool,
    /// Why the agent rejected it.
    reason: String,
}

impl Delegation {
    fn read(result: &CallResult<'_>) -> Option<Self> {
        if result.name != DELEGATE {
            return None;
        }
        let arguments: Value = serde_json::from_str(result.arguments).ok()?;
        let field = |name: &str| {
            arguments
                .get(name)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let agent = field("agent")?;
        let mark = format!("{agent} rejected the task: ");
        let reason = result.text.strip_prefix(&mark).filter(|_| result.failed);
        Some(Self {
            task: field("task")?,
            rejected: reason.is_some(),
            reason: reason.unwrap_or_default().trim_end_matches('.').to_owned(),
            agent,
        })
    }

    /// Says that the agent did not answer.
    fn failure(&self, text: &str) -> String {
        let text = answer::without_marks(text).trim_end_matches('.');
        format!("This was not done: {}: {text}.", excerpt(&self.task))
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
    let is_settled = same_task().any(|other| !other.rejected);
    let tried: Vec<&str> = delegations
        .iter()
        .filter(|other| other.rejected || other.task == refused.task)
        .map(|other| other.agent.as_str())
        .collect();
    let task = rules::find_any(&refused.task);
    let next = table.choose(&refused.task, task.as_ref(), &tried)?;
    // Without a rule for the task, another agent would reject it as well.
    let fits = task.is_some_and(|task| {
        let tool = task.tool();
        next.has(tool) || !table.entries.iter().any(|entry| entry.has(tool))
    });
    (refused.rejected && !is_settled && fits).then(|| delegation(next.name, &refused.task, false))
}

fn delegation(agent: &str, task: &str, finish: bool) -> Value {
    json!({ "agent": agent, "task": task, "finish": finish })
}

fn refuse(request: &Request<'_>, table: &Table<'_>, rejection: Option<&Delegation>) -> String {
    let text = rejection.map_or(request.task, |rejection| &rejection.task);
    // The reason of an agent, or a rule without an agent for it, shows that the request was understood.
    let is_understood = match rejection {
        Some(rejection) => rejection.reason != NO_RULE,
        None => rules::find_any(text).is_some(),
    };
    let mut problem = if is_understood {
        format!("No agent here can do that: {}", excerpt(text))
    } else {
        format!("{NOT_UNDERSTOOD}: {}", excerpt(text))
    };
    match rejection {
        Some(Delegation { agent, reason, .. }) if reason != NO_RULE => {
            problem.push_str(&format!(" ({agent}: {reason})."))
        }
        _ => problem.push('.'),
    }
    if let Some(unread) = request.unread {
        problem.push_str(&format!(" I cannot read {unread}."));
    }
    if table.has_unowned_tools {
        problem.push_str(" Some tools here belong to no agent, so I cannot use them.");
    }
    refusal(&problem, request.task, Workers::Team(table))
}
