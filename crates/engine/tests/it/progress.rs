//! What a user interface learns about running steps: which model is called, how much it has produced, and what a tool
//! prints.

use crate::bench::{Bench, Shared, local, log, turn};
use futures_util::StreamExt as _;
use futures_util::stream;
use lango_core::{
    BoxFuture, BoxStream, Caller, Event, EventBody, FrameId, Model, ModelError, ModelEvent,
    ModelInfo, ModelReply, ModelRequest, OutputSink, Tool, ToolError, ToolOutput, ToolSpec,
};
use lango_engine::{CancelToken, TurnUpdate, turn_updates};
use lango_secrets::SecretValue;
use lango_testkit::model::{ScriptedModel, call, delegate, delegate_and_finish, say};
use lango_testkit::secrets::MemorySecrets;
use lango_testkit::tool::spec;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// A tool that shows its output while it runs.
pub(crate) struct PrintingTool<P> {
    spec: ToolSpec,
    print: P,
}

impl<P, F> PrintingTool<P>
where
    P: Fn(OutputSink) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    pub(crate) fn tools(print: P) -> Vec<Arc<dyn Tool>> {
        let spec = spec("exec_print");
        vec![Arc::new(Self { spec, print })]
    }
}

impl<P, F> Tool for PrintingTool<P>
where
    P: Fn(OutputSink) -> F + Send + Sync,
    F: Future<Output = ()> + Send,
{
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'a>(
        &'a self,
        caller: &'a Caller,
        _arguments: Arc<Value>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async {
            (self.print)(caller.output.clone()).await;
            Ok(ToolOutput::from("printed"))
        })
    }
}

fn script() -> ScriptedModel {
    ScriptedModel::replies([
        delegate_and_finish("operator", "print it"),
        call("exec_print", json!({})),
        say("done"),
    ])
}

/// Returns what a tool showed, and the positions of the first and the last of these updates.
fn output(updates: &[TurnUpdate]) -> (String, Vec<usize>) {
    let shown = updates.iter().enumerate();
    let shown = shown.filter_map(|(at, update)| match update {
        TurnUpdate::ToolOutput { text, .. } => Some((text.as_str(), at)),
        _ => None,
    });
    shown.unzip()
}

fn position(updates: &[TurnUpdate], is_it: fn(&EventBody) -> bool) -> usize {
    let has = |update: &TurnUpdate| match update {
        TurnUpdate::Stored(batch) => batch.iter().any(|event: &Event| is_it(&event.body)),
        _ => false,
    };
    updates.iter().position(has).unwrap()
}

#[tokio::test]
async fn each_model_call_is_announced_and_its_output_counted() {
    let bench = Bench::new(PrintingTool::tools(|_| std::future::ready(())));
    let model = Arc::new(ScriptedModel::replies([
        delegate("operator", "think"),
        say("A result that the user does not see."),
        say("The answer."),
    ]));
    let runner = bench.runner(YieldingModel(Shared(Arc::clone(&model))));
    let mut conversation = runner.start(local());
    let (report, updates) = turn(&mut conversation, "go").await;
    assert_eq!(report.text(), "The answer.");
    let mut calls: Vec<(FrameId, String, usize)> = Vec::new();
    for update in &updates {
        match update {
            TurnUpdate::ModelStarted {
                frame,
                agent,
                model: name,
            } => {
                assert_eq!(&**name, model.name());
                calls.push((frame.clone(), agent.to_string(), 0));
            }
            TurnUpdate::ModelProgress { frame, bytes } => {
                let last = calls.last_mut().unwrap();
                assert_eq!(last.0, *frame, "progress of a call that was not announced");
                last.2 += bytes;
            }
            _ => {}
        }
    }
    let sizes: Vec<(&str, usize)> = calls.iter().map(|call| (call.1.as_str(), call.2)).collect();
    let root = calls[0].1.as_str();
    assert_eq!(sizes, [(root, 0), ("operator", 36), (root, 11)]);
    assert!(calls[0].0.is_root() && !calls[1].0.is_root() && calls[2].0.is_root());
}

/// A model that yields before each event, as one does whose events come from the network.
struct YieldingModel<M>(M);

impl<M: Model> Model for YieldingModel<M> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn info(&self) -> ModelInfo {
        self.0.info()
    }

    fn call<'a>(&'a self, request: ModelRequest) -> BoxStream<'a, Result<ModelEvent, ModelError>> {
        let events = self.0.call(request);
        let yielding = events.then(async |event| {
            tokio::task::yield_now().await;
            event
        });
        yielding.boxed()
    }
}

/// A model that reasons, writes a long argument, and then answers.
struct ReasoningModel;

impl Model for ReasoningModel {
    fn name(&self) -> &str {
        "test/reasoning"
    }

    fn info(&self) -> ModelInfo {
        ModelInfo::default()
    }

    fn call<'a>(&'a self, _: ModelRequest) -> BoxStream<'a, Result<ModelEvent, ModelError>> {
        let events = [
            ModelEvent::Progress { bytes: 1000 },
            ModelEvent::Retrying {
                reason: "busy".to_owned(),
            },
            ModelEvent::Progress { bytes: 300 },
            ModelEvent::Text("42".to_owned()),
            ModelEvent::Reply(ModelReply {
                text: "42".to_owned(),
                ..ModelReply::default()
            }),
        ];
        let events = events.map(Ok::<_, ModelError>);
        stream::iter(events).boxed()
    }
}

#[tokio::test]
async fn reasoning_counts_as_progress_and_is_not_shown() {
    let bench = Bench::new(Vec::new());
    let mut conversation = bench.runner(YieldingModel(ReasoningModel)).start(local());
    let (report, updates) = turn(&mut conversation, "go").await;
    assert_eq!(report.text(), "42");
    let bytes = updates.iter().map(|update| match update {
        TurnUpdate::ModelProgress { bytes, .. } => *bytes,
        _ => 0,
    });
    assert_eq!(bytes.sum::<usize>(), 1302);
    assert_eq!(crate::runner::drafts(&updates), "42");
}

#[tokio::test]
async fn the_output_of_a_tool_comes_between_its_call_and_its_result_and_is_not_stored_if_it_returns()
 {
    let bench = Bench::new(PrintingTool::tools(async |output: OutputSink| {
        output.push("first line\n");
        output.push("second line\n");
        tokio::task::yield_now().await;
    }));
    let mut conversation = bench.runner(script()).start(local());
    let (_, updates) = turn(&mut conversation, "go").await;
    let (text, at) = output(&updates);
    assert_eq!(text, "first line\nsecond line\n");
    let called = position(&updates, |body| {
        matches!(body, EventBody::ToolCalled { .. })
    });
    let returned = position(&updates, |body| {
        matches!(body, EventBody::ToolReturned { .. })
    });
    assert!(
        at.iter().all(|at| (called..returned).contains(at)),
        "{updates:?}"
    );
    let TurnUpdate::ToolOutput { call: shown, .. } = &updates[at[0]] else {
        panic!("{updates:?}");
    };
    let events = log(&bench, conversation.session()).await;
    let is_its =
        |event: &Event| matches!(&event.body, EventBody::ToolCalled { call, .. } if call == shown);
    assert!(events.iter().any(is_its), "{shown} is not the call");
    assert!(
        !serde_json::to_string(&events)
            .unwrap()
            .contains("second line")
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_is_shown_before_the_masks_of_stored_secrets_are_loaded() {
    const VALUE: &str = "stored-QZXJ-7KVW";
    let ready = Arc::new(Notify::new());
    let notify = Arc::clone(&ready);
    let mut bench = Bench::new(PrintingTool::tools(move |output: OutputSink| {
        let ready = Arc::clone(&notify);
        async move {
            output.push("a known value, ");
            output.push(VALUE);
            // Everything that could be published has been.
            tokio::time::sleep(std::time::Duration::from_secs(5)).await;
            ready.notify_one();
            output.push(" and \nanother-QZXJ-7KVW, no more\n");
            tokio::time::sleep(std::time::Duration::from_secs(5)).await;
        }
    }));
    bench
        .masks
        .add("OTHER", &SecretValue::new("another-QZXJ-7KVW"));
    let secrets = MemorySecrets::new(VALUE).with_late_masks(bench.masks.clone(), ready);
    bench.secrets = Some(Arc::new(secrets));
    let mut conversation = bench.runner(script()).start(local());
    let (_, updates) = turn(&mut conversation, "go").await;
    let (text, _) = output(&updates);
    assert_eq!(
        text,
        "a known value, [secret LATE] and \n[secret OTHER], no more\n"
    );
}

#[tokio::test]
async fn a_tool_that_keeps_its_sink_shows_nothing_after_its_call() {
    let leaked = Arc::new(Mutex::new(OutputSink::default()));
    let keep = Arc::clone(&leaked);
    let bench = Bench::new(PrintingTool::tools(move |output: OutputSink| {
        *keep.lock().unwrap() = output;
        std::future::ready(())
    }));
    let runner = bench.runner(script());
    let mut conversation = runner.start(local());
    let (_, updates) = turn(&mut conversation, "go").await;
    assert_eq!(output(&updates).0, "");
    let sink = leaked.lock().unwrap().clone();
    assert!(!sink.is_none());
    sink.push("too late\n");
}

#[tokio::test]
async fn a_tool_gets_a_sink_without_a_reader_too_because_its_output_may_be_stored() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&seen);
    let bench = Bench::new(PrintingTool::tools(move |output: OutputSink| {
        note.lock().unwrap().push(output.is_none());
        std::future::ready(())
    }));
    let runner = bench.runner(script());
    let mut conversation = runner.start(local());
    let (sender, receiver) = turn_updates();
    drop(receiver);
    let stop = CancelToken::new();
    conversation.turn("go", &stop, &sender).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [false]);
}

#[tokio::test(start_paused = true)]
async fn a_turn_with_a_flood_of_output_ends_although_nobody_reads_it() {
    let bench = Bench::new(PrintingTool::tools(async |output: OutputSink| {
        let flood = "y\n".repeat(32 * 1024);
        for _ in 0..2_000 {
            output.push(&flood);
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }));
    let mut conversation = bench.runner(script()).start(local());
    let (sender, receiver) = turn_updates();
    let stop = CancelToken::new();
    let end = conversation.turn("go", &stop, &sender).await;
    assert!(end.unwrap().finished().unwrap().is_answered());
    drop(sender);
    // Everything was queued, but the output of a call that has ended is not worth showing.
    let updates: Vec<TurnUpdate> = receiver.collect().await;
    assert_eq!(output(&updates).0, "");
}
