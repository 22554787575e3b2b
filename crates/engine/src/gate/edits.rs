//! The calls that mode `accept-edits` runs without a question: changes that lango's file tools make to ordinary files
//! of the workspace, and that an undo can restore. All other facts that an inspection can find (a guarded target, a
//! site, a secret, a program) keep their questions.

use super::rules::{ApprovalRules, RuleDecision};
use crate::tree::Tree;
use lango_core::{ApprovalQuestion, ApprovalRequest, FileEdit, Inspection, Text};

/// Whether the inspection found a change of an ordinary file that an undo can restore, and nothing else. Links on the
/// way are fine: the tool has looked at the file that they lead to.
pub(super) fn is_ordinary(inspection: &Inspection) -> bool {
    let replaces = inspection
        .edit
        .as_ref()
        .and_then(|edit| edit.replaces.clone());
    let ordinary = Inspection {
        edit: Some(Box::new(FileEdit {
            caution: None,
            replaces,
            irreversible: None,
        })),
        path: inspection.path.clone(),
        ..Inspection::default()
    };
    *inspection == ordinary
}

/// Returns why a change needs approval even if edits are accepted.
pub(super) fn caution(inspection: &Inspection) -> Option<Text> {
    let edit = inspection.edit.as_ref()?;
    edit.caution.clone().or_else(|| edit.irreversible.clone())
}

/// Whether mode `accept-edits` would run this pending call without a question.
pub(crate) fn is_accepted_edit(
    tree: &Tree,
    rules: &ApprovalRules,
    request: &ApprovalRequest,
) -> bool {
    let owner = tree.agent(request.agent.as_str());
    let Some(tool) = owner.and_then(|owner| owner.tool(request.tool.as_str())) else {
        return false;
    };
    let (arguments, inspection) = (&request.arguments, &request.inspection);
    let decision = rules.apply(&request.agent, &tool.spec, arguments, inspection);
    request.question == ApprovalQuestion::Permission
        && is_ordinary(inspection)
        && matches!(decision, RuleDecision::NoRule { .. })
}
