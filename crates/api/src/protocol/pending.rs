//! Describes pending approvals in words, for protocols that cannot represent them.

use lango_core::PendingApproval;

/// The maximum number of characters of a call's arguments that are shown.
const MAX_ARGUMENTS: usize = 500;

/// Describes what a turn waits for, and how to answer.
pub(crate) fn pending_text(waiting: &[PendingApproval]) -> String {
    let requests = waiting.iter().map(|waiting| {
        let request = &waiting.request;
        let (id, agent, tool) = (&request.id, &request.agent, &request.tool);
        let arguments = request.arguments.to_string();
        let mut shown: String = arguments.chars().take(MAX_ARGUMENTS).collect();
        if shown.len() < arguments.len() {
            shown.push('…');
        }
        let question = match request.question {
            lango_core::ApprovalQuestion::Permission => {
                format!("agent `{agent}` asks to call `{tool}` with {shown}")
            }
            lango_core::ApprovalQuestion::UnknownOutcome => format!(
                "the outcome of the call of `{tool}` by agent `{agent}` with {shown} is unknown"
            ),
            lango_core::ApprovalQuestion::ContinueTurn => "the turn was interrupted and asks whether to go on".to_owned(),
        };
        let answer = match request.question {
            lango_core::ApprovalQuestion::Permission => "yes",
            lango_core::ApprovalQuestion::UnknownOutcome | lango_core::ApprovalQuestion::ContinueTurn => "retry",
        };
        format!(
            "Approval `{id}` is pending: {question}. Answer with `POST /api/approvals/{id}`, or with `lango approvals answer {id} {answer}`."
        )
    });
    requests.collect::<Vec<_>>().join("\n")
}
