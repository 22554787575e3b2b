//! The gate, through which every tool call passes.
//!
//! [`decide`] has all checks in their order: owner, arguments, limits, the permission mode, the tool's own refusal,
//! rules, approval. It is pure, and runs before anything about the call is stored. Its decision is carried out elsewhere:
//!
//! - [`CallDecision::Run`]: the turn emits `tool.called` (`turn/calls.rs`). Once that is stored, [`Gate::run`]
//!   (`gate/run.rs`) runs the tool, with a timeout and a limit on its output.
//! - [`CallDecision::Ask`]: the turn emits `approval.requested` (`turn/approvals.rs`). A grant (`runner/grants.rs`) or
//!   the user answers it. An approved call passes [`check_again`] and then runs.
//! - [`CallDecision::Return`] and [`InvalidCall`]: the model gets a result, and nothing runs.

mod edits;
mod grant;
mod harmless;
mod live_output;
mod output;
mod pattern;
mod rules;
mod run;
mod subject;

use crate::tree::{Agent, OwnedTool, Tree};
pub(crate) use edits::is_accepted_edit;
pub(crate) use grant::grant_for;
pub use grant::{
    content_bound_pattern, edited_grant_problem, exact_pattern, grant_problem, narrower_command,
};
use lango_core::{
    AgentName, ApprovalAnswer, Call, CallId, CallStatus, Inspection, PermissionMode, Text,
    ToolName, ToolSpec, TurnFault,
};
use rules::RuleDecision;
pub use rules::{ApprovalRule, ApprovalRules, RuleAction};
pub(crate) use rules::{call_digest, digest};
pub use run::{Gate, GateError};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// The part of a turn on which decisions depend.
pub(crate) struct GateContext<'a> {
    pub tree: &'a Tree,
    pub rules: &'a ApprovalRules,
    /// The current mode.
    pub mode: PermissionMode,
    /// The number of calls that ran or run.
    pub tool_calls: u32,
    pub max_tool_calls: u32,
    pub pending_approvals: u32,
    /// The user's answers in this turn, by the digest of the call.
    pub answers: &'a HashMap<Text, ApprovalAnswer>,
}

/// What [`check_again`] depends on.
pub(crate) struct RecheckContext<'a> {
    pub tree: &'a Tree,
    pub rules: &'a ApprovalRules,
    /// The current mode.
    pub mode: PermissionMode,
    /// Whether the call was approved. If not, a rule or the mode allowed it.
    pub is_approved: bool,
}

/// The decision about a tool call.
pub(crate) enum CallDecision {
    /// The call runs.
    Run(CheckedCall),
    /// The call needs approval.
    Ask {
        call: CheckedCall,
        digest: Text,
        reason: Text,
        /// The pattern to offer for a grant. Without one, the call needs approval every time.
        pattern: Option<Text>,
    },
    /// The model gets this result, and the call does not run.
    Return { status: CallStatus, output: String },
}

/// A call whose owner and arguments are valid.
pub(crate) struct CheckedCall {
    pub id: CallId,
    pub spec: Arc<ToolSpec>,
    pub arguments: Arc<Value>,
    pub inspection: Inspection,
}

/// A rejected call, with the explanation for the model. It counts as a fault of the model.
pub(crate) struct InvalidCall {
    pub fault: TurnFault,
    pub detail: String,
}

/// A question for the user about a call.
struct Question {
    reason: Text,
    /// The pattern to offer for a grant.
    pattern: Option<Text>,
    /// Whether the permission mode answers it.
    is_accepted_edit: bool,
}

/// Why a call that was stored or approved earlier must not run any more.
pub(crate) enum Denial {
    ToolGone(ToolName),
    Rule(Text),
    Mode(PermissionMode),
    /// Neither the rules nor the mode accept the call without an approval any more.
    NotApproved {
        reason: Text,
    },
}

/// The maximum number of pending approvals in a turn; further calls are denied.
const MAX_PENDING_APPROVALS: u32 = 100;

/// Decides about a tool call of an agent. `inspection` is what the tool found out about the call.
pub(crate) fn decide(
    context: &GateContext<'_>,
    agent: &Agent,
    call: &Call,
    inspection: Inspection,
) -> Result<CallDecision, InvalidCall> {
    // 1. Owner
    let tool = owned_tool(context.tree, agent, &call.name)?;
    // 2. Arguments
    let arguments = check_arguments(tool, &call.arguments)?;
    // 3. Limits
    check_limits(context)?;
    // 4. Permission mode
    if !context.mode.allows(tool.spec.effect) {
        return Ok(CallDecision::deny(Denial::Mode(context.mode).for_model()));
    }
    // 5. The tool itself
    if let Some(reason) = &inspection.refused {
        return Ok(CallDecision::Return {
            status: CallStatus::Error,
            output: format!("not run: {reason}"),
        });
    }
    // 6. Rules
    let call = CheckedCall {
        id: call.id.clone(),
        spec: Arc::clone(&tool.spec),
        arguments: Arc::new(arguments),
        inspection,
    };
    let rules = context.rules;
    let mut decision = match rules.apply(&agent.name, &call.spec, &call.arguments, &call.inspection)
    {
        RuleDecision::Run => CallDecision::Run(call),
        RuleDecision::Deny { reason } => CallDecision::deny(Denial::Rule(reason).for_model()),
        // 7. Approval
        RuleDecision::Ask { reason, pattern } => {
            let question = Question {
                reason,
                pattern,
                is_accepted_edit: false,
            };
            decide_approval(context, &agent.name, call, question)
        }
        RuleDecision::NoRule { reason, pattern } => {
            let accepts_edits = context.mode == PermissionMode::AcceptEdits;
            let caution = edits::caution(&call.inspection).filter(|_| accepts_edits);
            let question = Question {
                reason: caution.unwrap_or(reason),
                pattern,
                is_accepted_edit: accepts_edits && edits::is_ordinary(&call.inspection),
            };
            decide_approval(context, &agent.name, call, question)
        }
    };
    if let CallDecision::Run(call) = &mut decision {
        call.inspection.allow_later_changes();
    }
    Ok(decision)
}

/// Checks a call again that was stored or approved earlier, because its tool, the rules or the mode may have changed
/// since. Returns the tool's current spec.
pub(crate) fn check_again(
    context: &RecheckContext<'_>,
    agent: &AgentName,
    tool: &ToolName,
    (arguments, inspection): (&Value, &Inspection),
) -> Result<Arc<ToolSpec>, Denial> {
    let owner = context.tree.agent(agent.as_str());
    let Some(owned) = owner.and_then(|owner| owner.tool(tool.as_str())) else {
        return Err(Denial::ToolGone(tool.clone()));
    };
    if !context.mode.allows(owned.spec.effect) {
        return Err(Denial::Mode(context.mode));
    }
    let rules = context.rules;
    match rules.apply(agent, &owned.spec, arguments, inspection) {
        RuleDecision::Deny { reason } => Err(Denial::Rule(reason)),
        RuleDecision::NoRule { .. } if !context.is_approved => {
            let accepts_edits = context.mode == PermissionMode::AcceptEdits;
            if accepts_edits && edits::is_ordinary(inspection) {
                Ok(Arc::clone(&owned.spec))
            } else {
                let reason = format!("the permission mode is `{}` now", context.mode);
                Err(Denial::NotApproved {
                    reason: reason.into(),
                })
            }
        }
        RuleDecision::Ask { reason, .. } if !context.is_approved => {
            Err(Denial::NotApproved { reason })
        }
        RuleDecision::Run | RuleDecision::Ask { .. } | RuleDecision::NoRule { .. } => {
            Ok(Arc::clone(&owned.spec))
        }
    }
}

fn owned_tool<'a>(
    tree: &Tree,
    agent: &'a Agent,
    name: &str,
) -> Result<&'a Arc<OwnedTool>, InvalidCall> {
    let tool = agent.tool(name);
    tool.ok_or_else(|| not_owned(tree, agent, name))
}

fn check_arguments(tool: &OwnedTool, raw: &str) -> Result<Value, InvalidCall> {
    let bad = |detail| InvalidCall {
        fault: TurnFault::BadArguments,
        detail,
    };
    let arguments = parse_arguments(raw).map_err(bad)?;
    tool.check(&arguments).map_err(|faults| {
        let name = &tool.spec.name;
        bad(format!("the arguments of `{name}` do not fit: {faults}"))
    })?;
    Ok(arguments)
}

/// Fails if the tool calls of the turn are used up. A pending call counts, because it may still run.
fn check_limits(context: &GateContext<'_>) -> Result<(), InvalidCall> {
    if context.tool_calls + context.pending_approvals < context.max_tool_calls {
        return Ok(());
    }
    Err(InvalidCall {
        fault: TurnFault::ToolCallLimit,
        detail: "not run: the tool calls of this turn are used up; answer with what you have"
            .to_owned(),
    })
}

/// Decides about a call that needs approval. An answer applies to all equal calls of the turn, except that a call
/// without a pattern needs approval every time. An edit that the mode accepts does not run after a denial.
fn decide_approval(
    context: &GateContext<'_>,
    agent: &AgentName,
    call: CheckedCall,
    question: Question,
) -> CallDecision {
    let Question {
        reason, pattern, ..
    } = question;
    let digest = call_digest(agent, &call.spec.name, &call.arguments, &call.inspection);
    match context.answers.get(&digest) {
        Some(answer) if answer.allows() && pattern.is_some() => CallDecision::Run(call),
        Some(ApprovalAnswer::No { reason }) => CallDecision::deny(denied_by_user(reason.as_ref())),
        _ if question.is_accepted_edit => CallDecision::Run(call),
        _ if context.pending_approvals >= MAX_PENDING_APPROVALS => CallDecision::deny(format!(
            "not run: {MAX_PENDING_APPROVALS} calls of this turn already wait for approval, which is the limit"
        )),
        _ => CallDecision::Ask {
            call,
            digest,
            reason,
            pattern,
        },
    }
}

impl CallDecision {
    fn deny(output: String) -> Self {
        Self::Return {
            status: CallStatus::Denied,
            output,
        }
    }
}

impl Denial {
    /// Returns the result for the model.
    pub(crate) fn for_model(&self) -> String {
        match self {
            Self::ToolGone(_) => format!("not run: {self}"),
            Self::Rule(_) => format!("not run: {self}; do not try it in another way"),
            Self::NotApproved { .. } => format!("not run: {self}; call again to ask the user"),
            Self::Mode(PermissionMode::Plan) => format!(
                "not run: {self}, so nothing was changed; answer with a plan of the changes instead"
            ),
            Self::Mode(_) => format!(
                "not run: {self}, so nothing was changed; say what you would change instead"
            ),
        }
    }
}

impl std::fmt::Display for Denial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ToolGone(tool) => write!(f, "the tool `{tool}` no longer exists"),
            Self::Rule(reason) => write!(f, "{reason} forbids it"),
            Self::Mode(mode) => write!(f, "the permission mode is `{mode}`"),
            Self::NotApproved { reason } => {
                write!(f, "{reason}, and the user has not approved it")
            }
        }
    }
}

/// Returns the result for the model if the user denies the call.
pub(crate) fn denied_by_user(reason: Option<&Text>) -> String {
    match reason {
        Some(reason) => format!("not run: {reason}"),
        None => {
            "not run: the user said no; continue without it, or ask what to do instead".to_owned()
        }
    }
}

/// Parses raw arguments. Invalid JSON is never repaired. Empty text counts as an empty object.
fn parse_arguments(raw: &str) -> Result<Value, String> {
    if raw.trim().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    let value = serde_json::from_str(raw)
        .map_err(|error| format!("the arguments are not valid JSON: {error}"))?;
    if depth(&value) > MAX_DEPTH {
        return Err(format!(
            "the arguments are nested deeper than {MAX_DEPTH} levels"
        ));
    }
    Ok(value)
}

/// The maximum nesting depth. Arguments are stored inside an event, which must remain parseable.
const MAX_DEPTH: usize = 64;

fn depth(value: &Value) -> usize {
    let deepest = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(fields) => fields.values().map(depth).max(),
        _ => return 0,
    };
    1 + deepest.unwrap_or(0)
}

/// Explains why a function is not a tool of this agent: no agent owns it, another agent does, or it does not exist.
fn not_owned(tree: &Tree, agent: &Agent, name: &str) -> InvalidCall {
    let own = if agent.tools.is_empty() {
        "you have no tools".to_owned()
    } else {
        let names: Vec<&str> = agent
            .tools
            .iter()
            .map(|tool| tool.spec.name.as_str())
            .collect();
        format!("your tools are: {}", names.join(", "))
    };
    let shown: String = name.chars().take(64).collect();
    if tree.unmatched.iter().any(|tool| *tool == *name) {
        let detail =
            format!("no agent owns the tool `{shown}`, so it cannot run; say so in the answer");
        return InvalidCall {
            fault: TurnFault::UnmatchedTool,
            detail,
        };
    }
    if tree.owner_of(name).is_some() {
        let detail = format!("the tool `{shown}` is not yours; {own}");
        return InvalidCall {
            fault: TurnFault::ForeignTool,
            detail,
        };
    }
    InvalidCall {
        fault: TurnFault::UnknownTool,
        detail: format!("there is no tool `{shown}`; {own}"),
    }
}
