//! What the user saw of an answer before stopping it is kept: in the log, in the history, in the usage.

use crate::bench::{Bench, Shared, finished, local, log};
use futures_util::{StreamExt as _, stream};
use lango_core::{
    BoxStream, Event, EventBody, Message, Model, ModelError, ModelEvent, ModelInfo, ModelReply,
    ModelRequest, Outcome, Price, RemoteEvent, StopReason, Trust,
};
use lango_engine::{CancelToken, Conversation, TurnReport, TurnUpdate, turn_updates};
use lango_testkit::model::{ScriptedModel, call, calls, delegate_and_finish, say};
use lango_testkit::remote::ScriptedRemote;
use lango_testkit::tool::CountingTool;
use serde_json::json;
use std::sync::Arc;

const NOTE: &str = "[the answer was cut off here: the user stopped it]";

/// A model that never ends a reply whose text has a `|`: it streams the text before it and hangs.
struct HangingModel(Arc<ScriptedModel>);

impl Model for HangingModel {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn info(&self) -> ModelInfo {
        self.0.info()
    }

    fn call<'a>(&'a self, request: ModelRequest) -> BoxStream<'a, Result<ModelEvent, ModelError>> {
        let reply = self.0.call(request).filter_map(async |event| match event {
            Ok(ModelEvent::Text(_)) => None,
            event => Some(event),
        });
        let streamed = reply.flat_map(|event| match event {
            Ok(ModelEvent::Reply(reply)) if reply.text.contains('|') => {
                let (shown, _) = reply.text.split_once('|').unwrap();
                let shown = Ok(ModelEvent::Text(shown.to_owned()));
                stream::iter([shown]).chain(stream::pending()).boxed()
            }
            event => stream::iter([event]).boxed(),
        });
        streamed.boxed()
    }
}

/// Runs a turn and stops it as soon as this text was shown.
async fn stop_after(conversation: &mut Conversation, question: &str, shown: &str) -> TurnReport {
    let (sender, mut updates) = turn_updates();
    let cancel = CancelToken::new();
    let reader = async {
        let mut seen = String::new();
        while !seen.ends_with(shown) {
            if let Some(TurnUpdate::Draft { text, .. }) = updates.recv().await {
                seen.push_str(&text);
            }
        }
        cancel.cancel();
    };
    let (end, ()) =
        futures_util::future::join(conversation.turn(question, &cancel, &sender), reader).await;
    finished(end.unwrap())
}

fn scripted(replies: impl IntoIterator<Item = ModelReply>) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::replies(replies))
}

/// Returns what the model got as earlier assistant messages in its last request.
fn remembered(model: &ScriptedModel) -> Vec<String> {
    let requests = model.requests();
    let messages = requests.last().unwrap().messages.iter();
    let spoken = messages.filter_map(|message| match message {
        Message::Assistant { text, .. } if !text.is_empty() => Some(text.to_string()),
        Message::Result { text, .. } => Some(text.to_string()),
        _ => None,
    });
    spoken.collect()
}

fn last_message(events: &[Event]) -> &Event {
    let is_message = |event: &&Event| matches!(event.body, EventBody::AgentMessage { .. });
    events.iter().rfind(is_message).unwrap()
}

#[tokio::test]
async fn the_next_turn_knows_what_was_shown_of_a_stopped_answer() {
    let bench = Bench::new(Vec::new());
    let model = scripted([say("One, two, three,| four."), say("four.")]);
    let runner = bench.runner(HangingModel(Arc::clone(&model)));
    let mut conversation = runner.start(local());
    let report = stop_after(&mut conversation, "count", "three,").await;
    let kept = format!("One, two, three,\n\n{NOTE}");
    assert_eq!(report.outcome, Outcome::Cancelled);
    assert_eq!(report.answer.as_deref(), Some(kept.as_str()));
    crate::bench::turn(&mut conversation, "go on").await;
    assert_eq!(remembered(&model), [kept.as_str()]);

    // A process that reads the session from the store builds the same request.
    let other = scripted([say("four.")]);
    let runner = bench.runner(Shared(Arc::clone(&other)));
    let mut reopened = runner.open(conversation.session().clone()).await.unwrap();
    crate::bench::turn(&mut reopened, "go on").await;
    assert_eq!(remembered(&other)[0], kept);
}

#[tokio::test]
async fn a_stopped_answer_counts_its_estimated_tokens_and_cost() {
    let bench = Bench::new(Vec::new());
    let price = Price {
        input: 2.0,
        cached: 1.0,
        cache_write: None,
        output: 10.0,
        tier: None,
    };
    let terms = ModelInfo {
        price: Some(price),
        context_tokens: None,
    };
    let text = format!("{}|", "word ".repeat(80));
    let model = Arc::new(ScriptedModel::replies([say(&text)]).with_terms(terms));
    let mut conversation = bench.runner(HangingModel(model)).start(local());
    let report = stop_after(&mut conversation, "write", "word ").await;
    let usage = report.usage;
    assert!(usage.input_tokens > 100, "{usage:?}");
    assert!((80..=200).contains(&usage.output_tokens), "{usage:?}");
    assert_eq!(report.cost_micros, Some(price.cost(&usage)));
    assert_eq!(report.model_calls, 1);
    let events = log(&bench, conversation.session()).await;
    let EventBody::AgentMessage { stop, model, .. } = &last_message(&events).body else {
        unreachable!();
    };
    assert_eq!(*stop, StopReason::Cancelled);
    assert_eq!(model.as_deref(), Some("test/scripted"));
}

#[tokio::test]
async fn a_stopped_answer_of_a_sub_agent_keeps_its_author() {
    let bench = Bench::new(Vec::new());
    let model = scripted([
        delegate_and_finish("planner", "plan"),
        say("First,| then"),
        say("ok"),
    ]);
    let runner = bench.runner(HangingModel(Arc::clone(&model)));
    let mut conversation = runner.start(local());
    let report = stop_after(&mut conversation, "plan it", "First,").await;
    assert_eq!(report.author.unwrap().as_str(), "planner");
    crate::bench::turn(&mut conversation, "and?").await;
    assert_eq!(remembered(&model), [format!("First,\n\n{NOTE}")]);
}

#[tokio::test]
async fn a_stopped_answer_lists_what_was_done_before() {
    let tool = CountingTool::new("fs_write").with_effect(lango_core::Effect::Idempotent);
    let bench = Bench::new(vec![Arc::new(tool)]);
    let model = scripted([
        delegate_and_finish("operator", "write"),
        call("fs_write", json!({"path": "a"})),
        say("I wrote| a"),
    ]);
    let mut conversation = bench.runner(HangingModel(model)).start(local());
    let report = stop_after(&mut conversation, "write a", "I wrote").await;
    let answer = report.answer.unwrap();
    assert!(
        answer.starts_with(&format!("I wrote\n\n{NOTE}\n\n")),
        "{answer}"
    );
    assert!(answer.contains("operator used fs_write"), "{answer}");
}

#[tokio::test]
async fn a_stopped_answer_of_a_remote_agent_is_kept_as_text_from_outside() {
    let mut bench = Bench::new(Vec::new());
    let remote = ScriptedRemote::from_fn("weather", |_| {
        vec![Ok(RemoteEvent::Text("Rain until".to_owned()))]
    });
    bench.remotes = vec![Arc::new(remote)];
    let model = scripted([delegate_and_finish("weather", "forecast"), say("ok")]);
    let runner = bench.runner(HangingModel(Arc::clone(&model)));
    let mut conversation = runner.start(local());
    let report = stop_after(&mut conversation, "weather?", "Rain until").await;
    assert_eq!(report.author.unwrap().as_str(), "weather");
    assert_eq!(report.trust, Trust::Untrusted);
    crate::bench::turn(&mut conversation, "and?").await;
    let remembered = remembered(&model).concat();
    assert!(remembered.contains("Rain until"), "{remembered}");
    assert!(remembered.contains(NOTE), "{remembered}");
}

#[tokio::test]
async fn a_withdrawn_draft_is_not_kept() {
    let stop = CancelToken::new();
    let stopper = stop.clone();
    let tool = CountingTool::new("fs_read").with_run(move |_| {
        stopper.cancel();
        Ok("x".to_owned())
    });
    let bench = Bench::new(vec![Arc::new(tool)]);
    let said = ModelReply {
        text: "I will read it.".to_owned(),
        ..call("fs_read", json!({}))
    };
    let model = ScriptedModel::replies([delegate_and_finish("operator", "x"), said, say("never")]);
    let mut conversation = bench.runner(model).start(local());
    let (sender, _updates) = turn_updates();
    let report = finished(conversation.turn("x", &stop, &sender).await.unwrap());
    assert_eq!((report.outcome, report.answer), (Outcome::Cancelled, None));
}

#[tokio::test]
async fn stopped_replies_of_several_agents_are_counted_and_their_texts_are_no_answer() {
    let bench = Bench::new(vec![Arc::new(CountingTool::new("fs_read"))]);
    let delegate = |agent: &str| ("delegate", json!({ "agent": agent, "task": "write" }));
    let text = format!("{}|", "word ".repeat(80));
    let script = [
        calls([delegate("planner"), delegate("operator")]),
        say(&text),
        say(&text),
    ];
    let mut conversation = bench.runner(HangingModel(scripted(script))).start(local());
    let (sender, mut updates) = turn_updates();
    let cancel = CancelToken::new();
    let reader = async {
        let mut written = 0;
        while written < 2 * 400 {
            if let Some(TurnUpdate::ModelProgress { bytes, .. }) = updates.recv().await {
                written += bytes;
            }
        }
        cancel.cancel();
    };
    let turn = conversation.turn("write", &cancel, &sender);
    let (end, ()) = futures_util::future::join(turn, reader).await;
    let report = finished(end.unwrap());
    assert_eq!((report.model_calls, report.answer), (3, None));
    assert!(report.usage.output_tokens > 2 * 80, "{:?}", report.usage);
    let events = log(&bench, conversation.session()).await;
    let is_stopped = |event: &&Event| {
        matches!(
            event.body,
            EventBody::AgentMessage {
                stop: StopReason::Cancelled,
                is_final: false,
                ..
            }
        )
    };
    let mut authors: Vec<&str> = events
        .iter()
        .filter(is_stopped)
        .map(|event| event.author.as_str())
        .collect();
    authors.sort_unstable();
    assert_eq!(authors, ["operator", "planner"]);
}
