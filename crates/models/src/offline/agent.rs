//! The rules of an agent that does the work: a sub-agent with a task, or the single agent with the user's message.

use super::request::Request;
use super::words::{has_phrase, parts, words};
use super::{Decision, rules, small_talk};

const NO_SEARCH_SERVICE: &str = "I cannot search the web because no search service is set up; set one under \
    `search.providers` (docs/web.md), or give me the address of a page";

pub(super) fn decide(request: &Request<'_>) -> Decision {
    if !request.results.is_empty() {
        return Decision::Say(results_text(request));
    }
    if let Some((tool, arguments)) =
        rules::explicit_call(request.task).filter(|(tool, _)| request.offers(tool))
    {
        return Decision::Call(vec![(tool.to_owned(), arguments)]);
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
                .map(|(rule, arguments)| (rule.tool.to_owned(), arguments))
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
            "none of my rules matches this task"
        };
        return Decision::Say(format!("[REJECT] {reason}"));
    }
    Decision::Say(small_talk::answer(request.task, None).unwrap_or_else(|| {
        let excerpt: String = request.task.chars().take(80).collect();
        format!(
            "I cannot do that: \"{excerpt}\". {}",
            small_talk::introduction(None)
        )
    }))
}

fn wants_web_search(task: &str) -> bool {
    rules::find(task, |tool| tool == "search_web").is_some()
}

/// Joins the results of the calls, in the order of the calls.
fn results_text(request: &Request<'_>) -> String {
    let texts = request.results.iter().map(|result| {
        if result.failed {
            format!("That did not work: {}", result.text)
        } else {
            result.text.to_owned()
        }
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

fn wants_plan(request: &Request<'_>) -> bool {
    let request_words = words(request.task);
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
        && asks.iter().any(|phrase| has_phrase(&request_words, phrase))
}

fn plan(task: &str) -> String {
    format!(
        "This plan comes from fixed rules, not from an AI model. It is for: {task}\n\n\
         1. Write down what the finished result looks like.\n\
         2. List what you already have and what is missing.\n\
         3. Order the missing pieces by what depends on what.\n\
         4. Do the smallest piece that you can check, and check it.\n\
         5. Continue piece by piece, and compare the result with step 1."
    )
}
