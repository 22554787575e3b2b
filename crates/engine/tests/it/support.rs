//! Plays turns without a runtime: one script replies for the models, another one for the tools.

use lango_core::{
    AgentModel, AgentName, CallStatus, Event, EventBody, Limits, Message, ModelFault, ModelReply,
    ModelRequest, Outcome, SessionId, Text, Timestamp, Trust, TurnId, TurnSettings,
};
use lango_engine::{
    ApprovalRule, History, ModeSwitch, ModelStep, RemoteCard, RemoteStep, RuleAction, ToolStep,
    Topology, Tree, TreeSettings, Turn, TurnInput, TurnStart, TurnStep,
};
use lango_testkit::tool::specs;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// One tool for every agent of `specialists`, and one without an owner.
pub(crate) const TOOLS: [&str; 8] = [
    "exec_shell",
    "fs_read",
    "browser_navigate",
    "crypto_sign",
    "search_web",
    "graph_query",
    "memory_store",
    "odd_thing",
];

/// The kinds of trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Specialists,
    Classic,
    ClassicToolLess,
    Single,
}

pub(crate) const SHAPES: [Shape; 4] = [
    Shape::Specialists,
    Shape::Classic,
    Shape::ClassicToolLess,
    Shape::Single,
];

pub(crate) fn tree(shape: Shape) -> Arc<Tree> {
    tree_with(shape, &TOOLS, &[], 3)
}

pub(crate) fn tree_with(shape: Shape, tools: &[&str], remotes: &[&str], rounds: u32) -> Arc<Tree> {
    let card = |name: &&str| RemoteCard {
        name: (*name).into(),
        description: "Translates".to_owned(),
    };
    let remotes = remotes.iter().map(card).collect();
    let mut settings = TreeSettings {
        rounds,
        ..TreeSettings::default()
    };
    let name = match shape {
        Shape::Single => {
            return Arc::new(Tree::single(specs(tools), &TreeSettings::default()).unwrap());
        }
        Shape::Specialists => "specialists",
        Shape::Classic => "classic",
        Shape::ClassicToolLess => {
            settings.orchestrator_tools = Some(lango_engine::OrchestratorTools::None);
            "classic"
        }
    };
    let topology = Topology::built_in(name).unwrap();
    Arc::new(Tree::multi(&topology, specs(tools), remotes, &settings).unwrap())
}

/// Returns the agent that owns `fs_read`.
pub(crate) fn file_agent(shape: Shape) -> &'static str {
    match shape {
        Shape::Specialists => "operator",
        Shape::Classic | Shape::ClassicToolLess => "executor",
        Shape::Single => "lango-agent",
    }
}

/// A turn that was played to its end.
pub(crate) struct PlayedTurn {
    pub turn: Turn,
    pub events: Vec<Event>,
    pub requests: Vec<(ModelStep, ModelRequest)>,
    pub tools_run: Vec<ToolStep>,
}

type Models<'a> = Box<dyn FnMut(&ModelStep, &ModelRequest) -> ModelReply + 'a>;
type Tools<'a> = Box<dyn FnMut(&ToolStep) -> (CallStatus, String) + 'a>;
type Remotes<'a> = Box<dyn FnMut(&RemoteStep) -> Result<String, String> + 'a>;

/// The setup of a turn to play.
pub(crate) struct Play<'a> {
    pub tree: Arc<Tree>,
    pub limits: Limits,
    pub exchanges: Vec<lango_core::Exchange>,
    /// The attachments of the question.
    pub attachments: Vec<lango_core::Attachment>,
    pub price: Option<lango_core::Price>,
    pub context_tokens: Option<u64>,
    pub agent_models: BTreeMap<AgentName, AgentModel>,
    /// Additional settings in the turn's first event.
    settings: TurnSettings,
    models: Models<'a>,
    tools: Tools<'a>,
    remote: Remotes<'a>,
}

impl<'a> Play<'a> {
    /// Takes replies from a function of the step and the request.
    pub(crate) fn new(
        tree: Arc<Tree>,
        models: impl FnMut(&ModelStep, &ModelRequest) -> ModelReply + 'a,
    ) -> Self {
        Self {
            tree,
            limits: Limits::default(),
            exchanges: Vec::new(),
            attachments: Vec::new(),
            price: None,
            context_tokens: None,
            agent_models: BTreeMap::new(),
            settings: TurnSettings::default(),
            models: Box::new(models),
            tools: Box::new(|step| (CallStatus::Ok, format!("{} ran", step.tool))),
            remote: Box::new(|_| Ok("bonjour".to_owned())),
        }
    }

    /// Takes replies from a list, in the order in which models are called. After its end every model replies "done".
    pub(crate) fn scripted(tree: Arc<Tree>, replies: Vec<ModelReply>) -> Self {
        let mut replies: VecDeque<ModelReply> = replies.into();
        Self::new(tree, move |_, _| {
            replies
                .pop_front()
                .unwrap_or_else(|| lango_testkit::model::say("done"))
        })
    }

    /// Sets additional settings in the turn's first event.
    pub(crate) fn settings(mut self, settings: TurnSettings) -> Self {
        self.settings = settings;
        self
    }

    pub(crate) fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    pub(crate) fn tools(
        mut self,
        tools: impl FnMut(&ToolStep) -> (CallStatus, String) + 'a,
    ) -> Self {
        self.tools = Box::new(tools);
        self
    }

    pub(crate) fn remote(
        mut self,
        remote: impl FnMut(&RemoteStep) -> Result<String, String> + 'a,
    ) -> Self {
        self.remote = Box::new(remote);
        self
    }

    fn history_trust(&self) -> Trust {
        let labels = self.exchanges.iter().map(lango_core::Exchange::trust);
        labels.fold(Trust::Trusted, Trust::and)
    }

    pub(crate) fn begin(&self, question: &str) -> (Turn, Vec<Event>) {
        let settings = TurnSettings {
            limits: self.limits,
            model: "test/scripted".into(),
            topology: Text::clone(&self.tree.digest),
            price: self.price,
            context_tokens: self.context_tokens,
            history_trust: self.history_trust(),
            models: self.agent_models.clone(),
            ..self.settings.clone()
        };
        let mut question = lango_core::UserInput::from(question);
        question.attachments.clone_from(&self.attachments);
        Turn::begin(
            Arc::clone(&self.tree),
            start(self.exchanges.clone()),
            question,
            settings,
            Timestamp(1),
        )
    }

    /// Performs the first ready step until the turn has ended.
    pub(crate) fn run(mut self, question: &str) -> PlayedTurn {
        let (mut turn, mut events) = self.begin(question);
        let mut requests = Vec::new();
        let mut tools_run = Vec::new();
        while turn.outcome().is_none() {
            let step = turn
                .ready()
                .into_iter()
                .next()
                .expect("an unfinished turn has a step");
            let input = match step {
                TurnStep::CallModel(step) => {
                    let request = turn.request(&step);
                    check_request(&request);
                    let reply = (self.models)(&step, &request);
                    requests.push((step.clone(), request));
                    TurnInput::ModelReplied {
                        step,
                        reply,
                        model: "test/scripted".into(),
                        inspections: Vec::new(),
                    }
                }
                TurnStep::CallTool(step) => {
                    let (status, output) = (self.tools)(&step);
                    tools_run.push(step.clone());
                    TurnInput::ToolReturned {
                        step,
                        status,
                        output: output.into(),
                        trust: Trust::Untrusted,
                        attachments: Vec::new(),
                    }
                }
                TurnStep::CallRemote(step) => {
                    let result = (self.remote)(&step).map_err(|detail| lango_core::RemoteError {
                        agent: step.agent.clone(),
                        detail,
                        is_unknown: false,
                    });
                    let result = result.map(lango_core::RemoteAnswer::from);
                    TurnInput::RemoteReturned {
                        step,
                        result,
                        attachments: Vec::new(),
                    }
                }
            };
            events.extend(turn.accept(input, Timestamp(2)));
            assert!(events.len() < 2000, "the turn does not end");
        }
        PlayedTurn {
            turn,
            events,
            requests,
            tools_run,
        }
    }
}

/// A cut-off stream, or a request that is too long.
pub(crate) fn model_fault(is_too_long: bool) -> ModelFault {
    if !is_too_long {
        return ModelFault::Incomplete;
    }
    ModelFault::ContextTooLong {
        detail: "too long".to_owned(),
        limit_tokens: None,
    }
}

pub(crate) fn rule(action: RuleAction, tool: &str) -> ApprovalRule {
    ApprovalRule {
        action,
        agent: None,
        tool: Some(tool.to_owned()),
        matching: None,
        origin: "a test".into(),
    }
}

pub(crate) fn start(exchanges: Vec<lango_core::Exchange>) -> TurnStart {
    TurnStart {
        session: SessionId::from("s_1"),
        turn: TurnId::from("t_1"),
        first_seq: 1,
        history: Arc::new(History::new(&"lango-orchestrator".into(), exchanges)),
        rules: Arc::default(),
        mode: ModeSwitch::default(),
    }
}

impl PlayedTurn {
    pub(crate) fn outcome(&self) -> &Outcome {
        self.turn.outcome().expect("it has ended")
    }

    /// Returns the answer for the user and its author.
    pub(crate) fn answer(&self) -> (String, String) {
        let Some(EventBody::TurnFinished {
            answer: Some(seq), ..
        }) = self.events.last().map(|event| &event.body)
        else {
            return (String::new(), String::new());
        };
        let event = self
            .events
            .iter()
            .find(|event| event.seq == *seq)
            .expect("the answer is stored");
        let text = match &event.body {
            EventBody::AgentMessage { text, .. } => text.to_string(),
            EventBody::RemoteReturned { output, .. } => output.to_string(),
            other => panic!("{other:?} is not an answer"),
        };
        (event.author.to_string(), text)
    }

    /// Returns the name of the root agent.
    pub(crate) fn turn_root(&self) -> String {
        self.requests[0].0.agent.to_string()
    }

    pub(crate) fn answered(&self) -> bool {
        matches!(self.outcome(), Outcome::Answered { .. })
    }

    /// Returns the numbers of accepted replies, tool calls and rounds.
    pub(crate) fn counts(&self) -> (u32, u32, u32) {
        match self.events.last().map(|event| &event.body) {
            Some(EventBody::TurnFinished {
                model_calls,
                tool_calls,
                rounds,
                ..
            }) => (*model_calls, *tool_calls, *rounds),
            other => panic!("the last event is {other:?}"),
        }
    }

    pub(crate) fn kinds(&self) -> Vec<&'static str> {
        self.events.iter().map(|event| event.body.kind()).collect()
    }

    pub(crate) fn faults(&self) -> Vec<lango_core::TurnFault> {
        let fault = |event: &Event| match &event.body {
            EventBody::TurnCorrected { fault, .. } => Some(*fault),
            _ => None,
        };
        self.events.iter().filter_map(fault).collect()
    }

    /// Returns the results in the last request of the root.
    pub(crate) fn last_results(&self) -> Vec<(String, bool)> {
        let last = self
            .requests
            .iter()
            .rev()
            .find(|(step, _)| step.frame.is_root())
            .map(|(_, request)| request);
        last.map(results_in).unwrap_or_default()
    }
}

pub(crate) fn results_in(request: &ModelRequest) -> Vec<(String, bool)> {
    let result = |message: &Message| match message {
        Message::Result { text, failed, .. } => Some((text.to_string(), *failed)),
        _ => None,
    };
    request.messages.iter().filter_map(result).collect()
}

pub(crate) fn function_names(request: &ModelRequest) -> Vec<String> {
    request
        .functions
        .iter()
        .map(|function| function.name.to_string())
        .collect()
}

/// Checks what providers require: every call is followed by its result, and no message is empty.
pub(crate) fn check_request(request: &ModelRequest) {
    let mut ids = std::collections::BTreeSet::new();
    let mut waiting: Vec<&str> = Vec::new();
    assert!(!request.instruction.is_empty());
    for message in &request.messages {
        if let Message::Result { call, .. } = message {
            let at = waiting
                .iter()
                .position(|id| *id == call.as_str())
                .expect("a result answers a call before it");
            waiting.remove(at);
            continue;
        }
        assert!(waiting.is_empty(), "calls without results: {waiting:?}");
        match message {
            Message::Assistant { text, calls, .. } => {
                assert!(
                    !calls.is_empty() || !text.trim().is_empty(),
                    "an empty message"
                );
                for call in calls.iter() {
                    assert!(
                        !call.id.as_str().is_empty() && ids.insert(call.id.clone()),
                        "id {:?} twice",
                        call.id
                    );
                    waiting.push(call.id.as_str());
                }
            }
            Message::User { text, .. } | Message::Notice { text } => {
                assert!(!text.trim().is_empty())
            }
            Message::Result { .. } => {}
        }
    }
    assert!(waiting.is_empty(), "calls without results: {waiting:?}");
}
