//! The rules of the one who works: a sub-agent with a task, or the single agent with a request.

use super::request::Request;
use super::words::{has_phrase, parts, words};
use super::{Decision, rules, small_talk};

/// Why the web is not searched, and the way to change that.
const NO_SEARCH_SERVICE: &str = "the web cannot be searched: no search service is set up; set one under \
    `search.providers` (docs/web.md), or ask for a page by its address";

pub(super) fn decide(request: &Request<'_>) -> Decision {
    if !request.results.is_empty() {
        return Decision::Say(tell(request));
    }
    let offers = |tool: &str| request.offers(tool);
    let parts = parts(request.task, |part| rules::find(part, offers).is_some());
    let calls: Vec<_> = parts
        .iter()
        .filter_map(|part| rules::find(part, offers))
        .collect();
    if !calls.is_empty() {
        return Decision::Call(
            calls
                .into_iter()
                .map(|(rule, arguments)| (rule.tool, arguments))
                .collect(),
        );
    }
    if wants_plan(request) {
        return Decision::Say(plan(request.task));
    }
    if request.may_reject {
        let reason = if wants_web_search(request.task) {
            NO_SEARCH_SERVICE
        } else {
            "no rule of mine fits this task"
        };
        return Decision::Say(format!("[REJECT] {reason}"));
    }
    Decision::Say(small_talk::answer(request.task, None).unwrap_or_else(|| {
        let beginning: String = request.task.chars().take(80).collect();
        format!(
            "I cannot do that: \"{beginning}\". {}",
            small_talk::introduction(None)
        )
    }))
}

fn wants_web_search(task: &str) -> bool {
    rules::find(task, |tool| tool == "search_web").is_some()
}

/// What came back, in the order of the calls.
fn tell(request: &Request<'_>) -> String {
    let told = request
        .results
        .iter()
        .map(|returned| match returned.failed {
            false => returned.text.to_owned(),
            true => format!("That did not work: {}", returned.text),
        });
    told.collect::<Vec<_>>().join("\n\n")
}

fn wants_plan(request: &Request<'_>) -> bool {
    let heard = words(request.task);
    let asks = [
        "plan",
        "steps",
        "break down",
        "roadmap",
        "strategy",
        "organise",
        "prepare",
    ];
    request.instruction.contains("numbered plan")
        && asks.iter().any(|phrase| has_phrase(&heard, phrase))
}

fn plan(task: &str) -> String {
    format!(
        "A plan by fixed rules (not by an AI model) for: {task}\n\n\
         1. Write down what the finished result looks like.\n\
         2. List what is there already, and what is missing.\n\
         3. Put the missing pieces in the order in which they need each other.\n\
         4. Do the smallest piece that can be checked, and check it.\n\
         5. Go on piece by piece, and compare with step 1 at the end."
    )
}
