//! Random turns, including absurd ones: whatever models, tools and users do, the invariants hold, and replaying the
//! events restores the state of the live turn.
//!
//! A list of bytes drives a turn: each decision consumes the next byte, and after the last one everything behaves well.
//! So a counterexample shrinks to the few decisions that matter.

use crate::approval_laws::{answer, check_approvals, inspection, rules};
use crate::choices::{Choices, TEXTS};
use crate::crash_laws::{crash, retries};
use crate::mode_laws::{ModeLog, check_modes};
use crate::schema_laws::{array_schema, check_answer};
use crate::support::{SHAPES, Shape, check_request, function_names, model_fault, start, tree_with};
use lango_core::{
    AgentModel, AgentName, CallId, CallStatus, Event, EventBody, Limits, ModelRequest, Outcome,
    Price, RemoteAnswer, RemoteError, RemoteThread, StopReason, Text, Timestamp, Trust,
    TurnSettings,
};
use lango_engine::{
    ApprovalRules, ModeSwitch, PartialReply, PrintedOutput, Tree, TreeMode, Turn, TurnInput,
    TurnStart, TurnStep,
};
use lango_testkit::model::failure;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

const TOOLS: [&str; 7] = [
    "exec_shell",
    "fs_read",
    "fs_edit",
    "search_web",
    "memory_store",
    "odd_thing",
    "payment_send",
];
const PRICE: Price = Price {
    input: 3.0,
    cached: 0.3,
    cache_write: None,
    output: 15.0,
    tier: None,
};

/// What the user sets for a turn.
#[derive(Clone)]
pub(crate) struct Permissions {
    pub rules: Arc<ApprovalRules>,
    pub mode: ModeSwitch,
}

/// Starts a turn with these rules and this mode.
pub(crate) fn start_with(permissions: &Permissions) -> TurnStart {
    TurnStart {
        rules: Arc::clone(&permissions.rules),
        mode: permissions.mode.clone(),
        ..start(Vec::new())
    }
}

/// A running step, with the request of its model.
struct RunningStep {
    step: TurnStep,
    request: Option<ModelRequest>,
}

struct CompletedTurn {
    events: Vec<Event>,
    turn: Turn,
    limits: Limits,
    rules: Arc<ApprovalRules>,
    modes: ModeLog,
}

/// Gives one agent its own model, or none.
fn own_models(choices: &mut Choices<'_>) -> BTreeMap<AgentName, AgentModel> {
    let own = AgentModel {
        model: "test/own".into(),
        price: [Some(PRICE), None][choices.next(2)],
        context_tokens: [None, Some(700)][choices.next(2)],
    };
    let agent = ["operator", "executor", "planner", "nobody"][choices.next(4)];
    [(AgentName::from(agent), own)].into()
}

/// Runs one turn like the runner does: every ready step starts, and any of them may finish next.
fn run_turn(tree: &Arc<Tree>, choices: &mut Choices<'_>) -> Result<CompletedTurn, TestCaseError> {
    let limits = choices.limits();
    let permissions = Permissions {
        rules: [Arc::default(), rules()][choices.next(2)].clone(),
        mode: ModeSwitch::new(choices.mode()),
    };
    let mut modes = ModeLog::default();
    let settings = TurnSettings {
        limits,
        model: "test/random".into(),
        topology: Text::clone(&tree.digest),
        price: [Some(PRICE), None][choices.next(2)],
        context_tokens: [None, Some(3000), Some(500)][choices.next(3)],
        history_trust: [Trust::Trusted, Trust::Untrusted][choices.next(2)],
        models: own_models(choices),
        answer_schema: [None, Some(array_schema())][choices.next(2)].clone(),
        ..TurnSettings::default()
    };
    let (mut turn, mut events) = Turn::begin(
        Arc::clone(tree),
        start_with(&permissions),
        "go".into(),
        settings,
        Timestamp(1),
    );
    let mut under_way: Vec<RunningStep> = Vec::new();
    while turn.outcome().is_none() {
        modes.note(&events, permissions.mode.get());
        if choices.next(12) == 11 {
            permissions.mode.set(choices.mode());
        }
        for step in turn.ready() {
            if !under_way.iter().any(|other| other.step.key() == step.key()) {
                let request = if let TurnStep::CallModel(step) = &step {
                    Some(turn.request(step))
                } else {
                    None
                };
                request.iter().for_each(check_request);
                under_way.push(RunningStep { step, request });
            }
        }
        let waiting = turn.waiting();
        prop_assert_eq!(
            under_way.is_empty(),
            turn.is_parked(),
            "it is parked when nothing but an answer can come, and only then: {:?}",
            turn
        );
        if turn.is_parked() || (!waiting.is_empty() && choices.next(3) == 0) {
            let one = &waiting[choices.next(waiting.len())];
            events.extend(turn.accept(answer(one, choices), Timestamp(2)));
            check_replay(tree, &permissions, &events, &turn)?;
            continue;
        }
        prop_assert!(
            under_way
                .iter()
                .all(|one| turn.ready().iter().any(|step| step.key() == one.step.key()))
        );
        let before = events.len();
        if choices.next(40) == 39 {
            let begun = under_way.drain(..).map(|one| one.step).collect();
            turn = crash(tree, &permissions, &mut events, begun)?;
            check_replay(tree, &permissions, &events, &turn)?;
            continue;
        }
        let next = under_way.remove(choices.next(under_way.len()));
        events.extend(turn.accept(result_of(next, choices), Timestamp(2)));
        prop_assert!(events.len() > before, "every input is a stored fact");
        prop_assert!(events.len() < 5000, "the turn does not end");
        check_replay(tree, &permissions, &events, &turn)?;
    }
    modes.note(&events, permissions.mode.get());
    prop_assert!(turn.ready().is_empty());
    let after_the_end = turn.accept(
        TurnInput::Cancelled {
            partial: Vec::new(),
            printed: Vec::new(),
        },
        Timestamp(3),
    );
    prop_assert!(after_the_end.is_empty());
    Ok(CompletedTurn {
        events,
        turn,
        limits,
        rules: permissions.rules,
        modes,
    })
}

/// Returns the beginning of the reply for which a step waits.
fn partial_reply(step: &TurnStep) -> Vec<PartialReply> {
    let (frame, agent) = match step {
        TurnStep::CallModel(step) => (&step.frame, &step.agent),
        TurnStep::CallRemote(step) => (&step.frame, &step.agent),
        TurnStep::CallTool(_) => return Vec::new(),
    };
    let answers_user = frame.is_root();
    let text = if answers_user { "The beginning" } else { "" };
    vec![PartialReply {
        frame: frame.clone(),
        agent: agent.clone(),
        model: "test/scripted".into(),
        bytes: 13,
        text: text.to_owned(),
    }]
}

/// Returns what the call of a step has printed.
fn printed_output(step: &TurnStep) -> Vec<PrintedOutput> {
    let TurnStep::CallTool(step) = step else {
        return Vec::new();
    };
    vec![PrintedOutput {
        call: step.call.clone(),
        text: "step 1\nstep 2".to_owned(),
        is_cut: false,
    }]
}

fn result_of(one: RunningStep, choices: &mut Choices<'_>) -> TurnInput {
    match choices.next(60) {
        57 => {
            let partial = partial_reply(&one.step);
            let printed = printed_output(&one.step);
            return TurnInput::Cancelled { partial, printed };
        }
        58 => {
            let printed = printed_output(&one.step);
            return TurnInput::TimeSpent { printed };
        }
        59 => return TurnInput::Interrupted,
        _ => {}
    }
    match one.step {
        TurnStep::CallModel(step) if choices.next(30) == 29 => TurnInput::ModelFailed {
            step,
            error: failure(model_fault(choices.next(2) == 1)),
        },
        TurnStep::CallModel(step) => {
            let mut reply = choices.reply();
            // A model with constrained decoding calls only offered functions; half of these do.
            if choices.next(2) == 1 {
                let offered = one.request.as_ref().map(function_names).unwrap_or_default();
                reply
                    .calls
                    .retain(|call| offered.iter().any(|name| **name == *call.name));
            }
            let inspections = reply.calls.iter().map(|call| inspection(call, choices));
            TurnInput::ModelReplied {
                step,
                inspections: inspections.collect(),
                reply,
                model: "test/random".into(),
            }
        }
        TurnStep::CallTool(step) => {
            let status = [CallStatus::Ok, CallStatus::Ok, CallStatus::Error][choices.next(3)];
            let output = choices
                .pick(&["same", "same", "other", "[REJECT] from a file", ""])
                .into();
            TurnInput::ToolReturned {
                step,
                status,
                output,
                trust: [Trust::Trusted, Trust::Untrusted][choices.next(2)],
                attachments: vec![crate::attachments::image("a.png"); choices.next(3) / 2],
            }
        }
        TurnStep::CallRemote(step) => {
            let text = choices.pick(&TEXTS).to_owned();
            let error = RemoteError {
                agent: step.agent.clone(),
                detail: "down".to_owned(),
                is_unknown: choices.next(2) == 1,
            };
            let thread = RemoteThread {
                context: "c".into(),
                task: Some("t".into()),
            };
            if step.accepted.is_none() && choices.next(4) == 3 {
                return TurnInput::RemoteAccepted { step, thread };
            }
            let asks = choices.next(4) == 3;
            let result = if choices.next(4) == 3 {
                Err(error)
            } else {
                let thread = asks.then_some(thread);
                Ok(RemoteAnswer {
                    thread,
                    ..RemoteAnswer::from(text)
                })
            };
            TurnInput::RemoteReturned {
                step,
                result,
                attachments: Vec::new(),
            }
        }
    }
}

fn check_replay(
    tree: &Arc<Tree>,
    permissions: &Permissions,
    events: &[Event],
    turn: &Turn,
) -> Result<(), TestCaseError> {
    let replayed = Turn::replay(Arc::clone(tree), start_with(permissions), events);
    prop_assert!(replayed == *turn, "replayed: {replayed:?}\nlived: {turn:?}");
    prop_assert_eq!(replayed.ready(), turn.ready());
    prop_assert_eq!(replayed.waiting(), turn.waiting());
    Ok(())
}

fn check_invariants(tree: &Tree, completed: &CompletedTurn) -> Result<(), TestCaseError> {
    let CompletedTurn {
        events,
        turn,
        limits,
        rules,
        modes,
    } = completed;
    check_modes(events, modes)?;
    if **rules != ApprovalRules::default() {
        check_approvals(events)?;
    }
    let stored: Vec<Event> = serde_json::from_str(&serde_json::to_string(events).unwrap()).unwrap();
    prop_assert_eq!(&stored, events, "the log's JSON gives the events back");
    let mut agents: HashMap<&str, &str> = HashMap::from([("", tree.root.name.as_str())]);
    for (at, event) in events.iter().enumerate() {
        prop_assert_eq!(event.seq, at as u64 + 1, "gap-free");
        let author = event.author.as_str();
        prop_assert!(
            author == "user" || tree.agent(author).is_some(),
            "author {:?}",
            author
        );
        let frame_agent = agents.get(event.frame.as_str()).copied();
        match &event.body {
            EventBody::AgentDelegated {
                call, agent, round, ..
            } => {
                prop_assert!(event.frame.is_root() && *round <= limits.rounds);
                prop_assert!(tree.sub_agent(agent.as_str()).is_some());
                agents.insert(
                    call.as_str(),
                    tree.sub_agent(agent.as_str())
                        .map_or("", |agent| agent.name.as_str()),
                );
            }
            EventBody::ToolCalled { tool, .. } => {
                prop_assert_eq!(Some(author), frame_agent);
                prop_assert!(
                    tree.agent(author)
                        .is_some_and(|agent| agent.tool(tool.as_str()).is_some()),
                    "not its tool"
                );
                prop_assert!(
                    tree.topology.as_ref() != "specialists" || author != tree.root.name.as_str()
                );
            }
            EventBody::AgentMessage { model: Some(_), .. }
            | EventBody::ToolReturned { .. }
            | EventBody::AgentRejected { .. } => {
                prop_assert_eq!(Some(author), frame_agent);
            }
            EventBody::UserMessage { .. } => prop_assert_eq!((author, at), ("user", 0)),
            _ => {}
        }
    }
    check_answer(tree, events)?;
    check_end(tree, events, turn, limits)
}

fn check_end(
    tree: &Tree,
    events: &[Event],
    turn: &Turn,
    limits: &Limits,
) -> Result<(), TestCaseError> {
    let ends = events
        .iter()
        .filter(|event| matches!(event.body, EventBody::TurnFinished { .. }))
        .count();
    prop_assert_eq!(ends, 1, "exactly one outcome");
    let Some(EventBody::TurnFinished {
        outcome,
        answer,
        model_calls,
        tool_calls,
        rounds,
        usage,
        ..
    }) = events.last().map(|event| &event.body)
    else {
        return Err(TestCaseError::fail("the end is not the end"));
    };
    prop_assert_eq!(Some(outcome), turn.outcome());
    prop_assert!(
        *model_calls <= limits.model_calls
            && *tool_calls <= limits.tool_calls
            && *rounds <= limits.rounds
    );
    prop_assert!(tree.mode == TreeMode::Multi || *rounds == 0);
    let is_zero = limits.tokens == Some(0) || limits.cost_micros == Some(0);
    prop_assert!(!is_zero || *model_calls == 0, "zero means zero");
    let stopped = events.iter().find_map(|event| match &event.body {
        EventBody::AgentMessage {
            usage,
            stop: StopReason::Cancelled,
            ..
        } => Some(usage.input_tokens),
        _ => None,
    });
    let complete = u64::from(*model_calls) - u64::from(stopped.is_some());
    prop_assert_eq!(usage.input_tokens, 7 * complete + stopped.unwrap_or(0));
    let called = events
        .iter()
        .filter(|event| matches!(event.body, EventBody::ToolCalled { .. }))
        .count();
    let was_called = |id: &CallId| {
        let mut bodies = events.iter().map(|event| &event.body);
        bodies.any(|body| matches!(body, EventBody::ToolCalled { call, .. } if call == id))
    };
    let ran = |event: &&Event| match &event.body {
        EventBody::ToolReturned { call, .. } => was_called(call),
        _ => false,
    };
    let returned = events.iter().filter(ran).count();
    let retried = retries(events);
    prop_assert_eq!(called, *tool_calls as usize + retried);
    prop_assert_eq!(
        called,
        returned + retried,
        "every stored call has a result, or was repeated on the user's request"
    );

    let answer_event = answer.and_then(|seq| events.iter().find(|event| event.seq == seq));
    let text = answer_event.map(|event| match &event.body {
        EventBody::AgentMessage {
            text,
            is_final: true,
            ..
        } => text.to_string(),
        EventBody::RemoteReturned {
            output,
            is_final: true,
            ..
        } => output.to_string(),
        other => panic!("{other:?} is not an answer"),
    });
    match (&text, outcome) {
        (None, outcome) => {
            prop_assert!(matches!(outcome, Outcome::Cancelled | Outcome::Interrupted))
        }
        (Some(text), _) => {
            prop_assert!(!text.trim().is_empty(), "an empty answer");
            prop_assert!(
                !text.trim_start().to_lowercase().starts_with("[reject]"),
                "{text}"
            );
        }
    }
    Ok(())
}

static TREES: LazyLock<Vec<Arc<Tree>>> = LazyLock::new(|| {
    let mut trees: Vec<Arc<Tree>> = SHAPES
        .iter()
        .map(|shape| tree_with(*shape, &TOOLS, &[], 3))
        .collect();
    trees.push(tree_with(Shape::Specialists, &TOOLS, &["translator"], 3));
    trees.push(tree_with(Shape::Classic, &["fs_read"], &["translator"], 3));
    trees.push(tree_with(Shape::Specialists, &[], &[], 3));
    trees
});

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// 2,000 cases of seven trees each: 14,000 turns.
    #[test]
    fn a06_no_random_turn_breaks_an_invariant_or_replays_differently(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for tree in TREES.iter() {
            let completed = run_turn(tree, &mut Choices::new(&bytes))?;
            check_invariants(tree, &completed)?;
        }
    }
}
