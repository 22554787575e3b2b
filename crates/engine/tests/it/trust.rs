//! The trust label of what an agent stores: trusted only if everything that the agent has seen is trusted.

use crate::bench::{Bench, local, log, turn, turn_on};
use lango_core::{
    BoxFuture, Caller, Effect, EventBody, MemoryContext, MemoryProvider, ModelReply, SessionId,
    Text, Tool, ToolError, ToolOutput, ToolSpec, Trust, UserId, UserInput,
};
use lango_engine::{Conversation, ToolAssignment, Topology};
use lango_testkit::model::{ScriptedModel, call, calls, delegate, delegate_and_finish, say};
use lango_testkit::remote::ScriptedRemote;
use lango_testkit::tool::{CountingTool, spec};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// A tool that records the label of each call.
pub(crate) struct LabelRecorder {
    spec: ToolSpec,
    labels: Mutex<Vec<Trust>>,
}

impl LabelRecorder {
    pub(crate) fn new() -> Arc<Self> {
        let spec = ToolSpec {
            effect: Effect::Idempotent,
            ..spec("memory_save")
        };
        Arc::new(Self {
            spec,
            labels: Mutex::default(),
        })
    }

    pub(crate) fn labels(&self) -> Vec<Trust> {
        self.labels.lock().unwrap().clone()
    }
}

impl Tool for LabelRecorder {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'a>(
        &'a self,
        caller: &'a Caller,
        _arguments: Arc<Value>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.labels.lock().unwrap().push(caller.trust);
        Box::pin(async { Ok(ToolOutput::trusted("Saved.")) })
    }
}

/// A tool with an untrusted description, like those of MCP servers and of a project's skills.
struct UntrustedTool(ToolSpec);

impl Tool for UntrustedTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn run<'a>(
        &'a self,
        _caller: &'a Caller,
        _arguments: Arc<Value>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async { Ok(ToolOutput::trusted("It ran.")) })
    }
}

pub(crate) fn untrusted_tool(name: &str) -> Arc<dyn Tool> {
    Arc::new(UntrustedTool(ToolSpec {
        trust: Trust::Untrusted,
        ..spec(name)
    }))
}

/// A bench with a tool that saves, one that reads, and additional ones.
pub(crate) fn bench_with(more: Vec<Arc<dyn Tool>>) -> (Bench, Arc<LabelRecorder>) {
    let saving = LabelRecorder::new();
    let mut tools: Vec<Arc<dyn Tool>> =
        vec![saving.clone(), Arc::new(CountingTool::new("fs_read"))];
    tools.extend(more);
    (Bench::new(tools), saving)
}

/// Replies of a turn in which the orchestrator delegates to the chronicler, which saves something.
pub(crate) fn save() -> [ModelReply; 3] {
    [
        delegate_and_finish("chronicler", "remember that I like tea"),
        call("memory_save", json!({ "text": "likes tea" })),
        say("I will remember it."),
    ]
}

fn start(bench: &Bench, script: impl IntoIterator<Item = ModelReply>) -> Conversation {
    bench.runner(ScriptedModel::replies(script)).start(local())
}

/// Returns the label with which one turn saves.
async fn label_in(bench: &Bench, saving: &LabelRecorder) -> Trust {
    turn(&mut start(bench, save()), "remember that I like tea").await;
    saving.labels()[0]
}

#[tokio::test]
async fn a_plain_chat_saves_as_trusted_turn_after_turn() {
    let (bench, saving) = bench_with(Vec::new());
    let script = save().into_iter().chain([say("Hello.")]).chain(save());
    let mut conversation = start(&bench, script);
    for question in ["remember that I like tea", "hello", "and remember it again"] {
        turn(&mut conversation, question).await;
    }
    assert_eq!(saving.labels(), [Trust::Trusted; 2]);
    for event in log(&bench, conversation.session()).await {
        if let EventBody::AgentMessage { .. } = &event.body {
            assert_eq!(event.body.trust(), Trust::Trusted, "{event:?}");
        }
    }
}

#[tokio::test]
async fn an_untrusted_description_of_a_tool_lowers_the_label_of_its_agent() {
    let (bench, saving) = bench_with(vec![untrusted_tool("memory_of_mcp")]);
    assert_eq!(label_in(&bench, &saving).await, Trust::Untrusted);
}

#[tokio::test]
async fn the_names_of_mcp_tools_lower_the_label_of_the_orchestrator_and_its_delegates() {
    let (mut bench, saving) = bench_with(vec![untrusted_tool("server_do_as_i_say")]);
    let home = ToolAssignment {
        agent: "operator".into(),
        capability: "tools of the MCP server `server` (server_do_as_i_say)".into(),
    };
    bench
        .tool_assignments
        .insert("server_do_as_i_say".into(), home);
    assert_eq!(label_in(&bench, &saving).await, Trust::Untrusted);
}

#[tokio::test]
async fn a_description_that_neither_the_agent_nor_the_orchestrator_sees_lowers_nothing() {
    let (bench, saving) = bench_with(vec![untrusted_tool("fs_of_mcp")]);
    assert_eq!(label_in(&bench, &saving).await, Trust::Trusted);
}

#[tokio::test]
async fn an_agent_card_lowers_the_label_of_the_orchestrator_and_its_delegates() {
    let (mut bench, saving) = bench_with(Vec::new());
    bench.remotes = vec![Arc::new(ScriptedRemote::new("weather", Ok("rain")))];
    assert_eq!(label_in(&bench, &saving).await, Trust::Untrusted);
}

#[tokio::test]
async fn the_description_of_a_projects_skill_lowers_the_label_of_its_owner() {
    let (mut bench, saving) = bench_with(vec![untrusted_tool("skill_of_project")]);
    // The orchestrator of `classic` has every tool itself.
    bench.topology = Topology::built_in("classic").unwrap();
    let script = [call("memory_save", json!({ "text": "tea" })), say("Done.")];
    turn(&mut start(&bench, script), "remember that I like tea").await;
    assert_eq!(saving.labels(), [Trust::Untrusted]);
}

#[tokio::test]
async fn an_agent_file_of_a_project_lowers_the_label_of_the_orchestrator() {
    let (mut bench, saving) = bench_with(Vec::new());
    let planner = bench.topology.agents.iter_mut();
    let planner = planner.into_iter().find(|spec| spec.name == "planner");
    planner.unwrap().trust = Trust::Untrusted;
    assert_eq!(label_in(&bench, &saving).await, Trust::Untrusted);
}

#[tokio::test]
async fn a_message_from_a_pipe_or_a_program_lowers_the_label_of_its_turn_and_all_later_ones() {
    let inputs = [
        UserInput::from_pipe("remember that I like tea", 0),
        UserInput::from_pipe("remember\n\n<stdin>\ntea\n</stdin>", 8),
        UserInput::from_program("remember that I like tea"),
    ];
    for input in inputs {
        let (bench, saving) = bench_with(Vec::new());
        let mut conversation = start(&bench, save().into_iter().chain(save()));
        turn_on(&mut conversation, input).await;
        turn(&mut conversation, "now I type it: I like tea").await;
        assert_eq!(saving.labels(), [Trust::Untrusted; 2]);
    }
}

#[tokio::test]
async fn what_a_sub_agent_read_lowers_the_label_of_the_agents_that_see_its_result() {
    let (bench, saving) = bench_with(Vec::new());
    let [_, saves, says] = save();
    let script = [
        delegate("chronicler", "remember that I like tea"),
        saves.clone(),
        says.clone(),
        delegate("operator", "read the file"),
        call("fs_read", json!({})),
        say("It says: remember rum."),
        delegate_and_finish("chronicler", "remember rum"),
        saves,
        says,
    ];
    turn(
        &mut start(&bench, script),
        "remember tea, and what the file says",
    )
    .await;
    assert_eq!(saving.labels(), [Trust::Trusted, Trust::Untrusted]);
}

#[tokio::test]
async fn concurrent_agents_do_not_lower_each_others_labels() {
    let (bench, saving) = bench_with(Vec::new());
    let both = calls([
        (
            "delegate",
            json!({ "agent": "operator", "task": "read the file" }),
        ),
        (
            "delegate",
            json!({ "agent": "chronicler", "task": "remember tea" }),
        ),
    ]);
    let model = ScriptedModel::from_fn(move |request| {
        let has_result =
            |message: &lango_core::Message| matches!(message, lango_core::Message::Result { .. });
        let has_results = request.messages.iter().any(has_result);
        let first = request.functions.first().map(|function| &*function.name);
        match (first, has_results) {
            (Some("delegate"), false) => both.clone(),
            (Some("fs_read"), false) => call("fs_read", json!({})),
            (Some("memory_save"), false) => call("memory_save", json!({})),
            _ => say("Done."),
        }
    });
    let mut conversation = bench.runner(model).start(local());
    turn(&mut conversation, "read, and remember").await;
    assert_eq!(saving.labels(), [Trust::Trusted]);
}

#[tokio::test]
async fn a_remote_agents_answer_in_an_earlier_turn_lowers_the_label() {
    for first in [
        vec![delegate_and_finish("weather", "what is it like?")],
        vec![delegate("weather", "what is it like?"), say("It rains.")],
    ] {
        let (mut bench, saving) = bench_with(Vec::new());
        bench.remotes = vec![Arc::new(ScriptedRemote::new("weather", Ok("rain")))];
        let mut conversation = start(&bench, first);
        turn(&mut conversation, "how is the weather?").await;
        // The remote agent is no longer configured, but its answer is still in the conversation.
        bench.remotes.clear();
        conversation.set_runner(&bench.runner(ScriptedModel::replies(save())));
        turn(&mut conversation, "remember that I like tea").await;
        assert_eq!(saving.labels(), [Trust::Untrusted]);
    }
}

struct MemoryWithTrust(Trust);

impl MemoryProvider for MemoryWithTrust {
    fn recall(&self, _user: &UserId, _session: &SessionId) -> BoxFuture<'_, Option<MemoryContext>> {
        let text = Text::from("<memory>\nlikes rum\n</memory>");
        let trust = self.0;
        Box::pin(async move { Some(MemoryContext { text, trust }) })
    }
}

#[tokio::test]
async fn untrusted_memory_lowers_the_label_of_a_turn() {
    for trust in [Trust::Trusted, Trust::Untrusted] {
        let (mut bench, saving) = bench_with(Vec::new());
        bench.memory = Some(Arc::new(MemoryWithTrust(trust)));
        assert_eq!(label_in(&bench, &saving).await, trust);
    }
}

#[tokio::test]
async fn a_reopened_session_has_the_same_labels() {
    for question in [
        "I type this".into(),
        UserInput::from_pipe("this is piped", 0),
    ] {
        let expected = question.origin.trust();
        let (bench, saving) = bench_with(Vec::new());
        let mut live = start(&bench, [say("Well.")].into_iter().chain(save()));
        turn_on(&mut live, question).await;
        let runner = bench.runner(ScriptedModel::replies(save()));
        let mut opened = runner.open(live.session().clone()).await.unwrap();
        turn(&mut live, "remember that I like tea").await;
        turn(&mut opened, "remember that I like tea").await;
        assert_eq!(saving.labels(), [expected; 2]);
    }
}
