//! Files of messages and results: who sees them, what happens if they do not fit, and that a resumed turn still has
//! them.

use crate::bench::{Bench, Shared, local, log, turn, turn_on};
use crate::support::{Play, Shape, start, tree};
use futures_util::{StreamExt, stream};
use lango_core::{
    AttachedFile, Attachment, BoxFuture, BoxStream, Caller, EventBody, Exchange, Message, Model,
    ModelError, ModelEvent, ModelFault, ModelInfo, ModelRequest, RemoteAnswer, RemoteCall,
    RemoteEvent, Tool, ToolError, ToolOutput, ToolSpec, Trust, UserInput,
};
use lango_engine::{CancelToken, RunnerError, Turn, TurnUpdate, turn_updates};
use lango_store::Store;
use lango_testkit::model::{ScriptedModel, call, delegate, failure, say};
use lango_testkit::remote::ScriptedRemote;
use lango_testkit::tool::spec;
use serde_json::{Value, json};
use std::sync::Arc;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nsome pixels";

/// A reference to an image.
pub(crate) fn image(name: &str) -> Attachment {
    Attachment {
        name: name.into(),
        media_type: "image/png".into(),
        digest: "d".into(),
        size: 1000,
    }
}

fn text_file(name: &str, size: u64) -> Attachment {
    Attachment {
        media_type: "text/plain".into(),
        size,
        ..image(name)
    }
}

fn png(name: &str) -> AttachedFile {
    AttachedFile::image(name, PNG).unwrap()
}

fn with_file(text: &str, file: AttachedFile) -> UserInput {
    let mut question = UserInput::from(text);
    question.files.push(file);
    question
}

fn exchange_with_image(number: usize) -> Exchange {
    Exchange {
        turn: format!("t_{number}").as_str().into(),
        question: format!("question {number}").into(),
        origin: None,
        attachments: vec![image(&format!("{number}.png"))],
        answer: None,
        undone: None,
    }
}

/// Returns the names of the files in a request.
fn files(request: &ModelRequest) -> Vec<&str> {
    let attachments = request.messages.iter().flat_map(|message| match message {
        Message::User { attachments, .. } | Message::Result { attachments, .. } => {
            attachments.as_slice()
        }
        Message::Assistant { .. } | Message::Notice { .. } => &[],
    });
    attachments.map(|attachment| &*attachment.name).collect()
}

/// Returns all text of a request.
fn request_text(request: &ModelRequest) -> String {
    serde_json::to_string(&request.messages).unwrap()
}

/// A tool that returns these files.
struct Camera {
    spec: ToolSpec,
    files: Vec<AttachedFile>,
}

impl Camera {
    fn with(files: Vec<AttachedFile>) -> Vec<Arc<dyn Tool>> {
        let spec = spec("fs_look");
        vec![Arc::new(Self { spec, files })]
    }
}

impl Tool for Camera {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'a>(
        &'a self,
        _caller: &'a Caller,
        _arguments: Arc<Value>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let mut output = ToolOutput::trusted("Taken.");
        output.files.clone_from(&self.files);
        Box::pin(async { Ok(output) })
    }
}

/// A model that never replies.
struct UnresponsiveModel;

impl Model for UnresponsiveModel {
    fn name(&self) -> &str {
        "test/silent"
    }

    fn info(&self) -> ModelInfo {
        ModelInfo::default()
    }

    fn call<'a>(&'a self, _request: ModelRequest) -> BoxStream<'a, Result<ModelEvent, ModelError>> {
        stream::pending().boxed()
    }
}

#[test]
fn the_root_sees_the_users_files_and_a_sub_agent_only_named_ones() {
    let named = json!({ "agent": "operator", "task": "look", "attachments": ["new.png", "0.png"] });
    for shape in [Shape::Specialists, Shape::Single] {
        let script = vec![call("delegate", named.clone()), say("seen"), say("done")];
        let mut play = Play::scripted(tree(shape), script);
        play.exchanges = vec![exchange_with_image(0), exchange_with_image(1)];
        play.attachments = vec![image("new.png")];
        let played = play.run("what is it?");
        assert_eq!(files(&played.requests[0].1), ["0.png", "1.png", "new.png"]);
        if shape == Shape::Specialists {
            assert_eq!(files(&played.requests[1].1), ["new.png", "0.png"]);
            assert_eq!(files(&played.requests[2].1), ["0.png", "1.png", "new.png"]);
        }
        let replayed = Turn::replay(
            tree(shape),
            start(vec![exchange_with_image(0), exchange_with_image(1)]),
            &played.events,
        );
        assert_eq!(replayed, played.turn);
    }
}

#[test]
fn the_delegate_function_mentions_files_only_if_there_are_any() {
    let offered = |attachments: Vec<Attachment>| {
        let mut play = Play::scripted(tree(Shape::Specialists), vec![say("done")]);
        play.attachments = attachments;
        let played = play.run("x");
        let function = &played.requests[0].1.functions[0];
        function.parameters["properties"]
            .get("attachments")
            .cloned()
    };
    assert_eq!(offered(vec![]), None);
    let offer = offered(vec![image("a.png")]).unwrap();
    assert_eq!(offer["items"]["enum"], json!(["a.png"]));
    // If there are no files, the argument is ignored.
    let stray = json!({ "agent": "operator", "task": "look", "attachments": "none" });
    let script = vec![call("delegate", stray), say("seen"), say("done")];
    let played = Play::scripted(tree(Shape::Specialists), script).run("x");
    assert_eq!(played.counts(), (3, 0, 1));
}

#[test]
fn files_with_the_same_name_get_different_names_within_a_turn() {
    let mut play = Play::scripted(tree(Shape::Specialists), vec![say("done")]);
    play.exchanges = vec![exchange_with_image(0)];
    play.attachments = vec![image("0.png"), image("0.png")];
    let played = play.run("x");
    assert_eq!(
        files(&played.requests[0].1),
        ["0.png", "0-2.png", "0-3.png"]
    );
}

#[test]
fn without_space_the_files_of_old_turns_are_dropped_first_and_those_of_the_question_last() {
    let mut play = Play::scripted(tree(Shape::Specialists), vec![say("done")]);
    play.exchanges = (0..24).map(exchange_with_image).collect();
    play.attachments = vec![image("new.png")];
    let played = play.run("x");
    let request = &played.requests[0].1;
    let shown = files(request);
    assert!(shown.len() <= 20, "{shown:?}");
    assert_eq!(shown.last(), Some(&"new.png"));
    assert!(
        request_text(request)
            .contains("[`0.png` (image/png, 1000 bytes) is left out to make room]")
    );
    assert!(request_text(request).contains("question 0"));

    let mut play = Play::scripted(tree(Shape::Specialists), vec![say("done")]);
    play.context_tokens = Some(20_000);
    play.exchanges = vec![exchange_with_image(0)];
    play.attachments = vec![
        text_file("small.txt", 10_000),
        text_file("large.txt", 9_000_000),
    ];
    let played = play.run("x");
    let request = &played.requests[0].1;
    assert_eq!(files(request), ["small.txt"]);
    assert!(request_text(request).contains("`large.txt` (text/plain, 9000000 bytes) is left out"));
}

#[test]
fn an_image_counts_towards_the_budget() {
    let spent = |attachments: Vec<Attachment>| {
        let mut play = Play::scripted(tree(Shape::Specialists), vec![say("done")])
            .limits(|limits| limits.tokens = Some(6000));
        play.attachments = attachments;
        play.run("x").answered()
    };
    assert!(spent(vec![]));
    assert!(!spent(vec![image("a.png"), image("b.png"), image("c.png")]));
}

#[tokio::test]
async fn files_that_a_tool_returns_are_shown_to_its_caller_and_reach_the_orchestrator_as_text() {
    let svg = AttachedFile {
        media_type: "image/png".into(),
        ..AttachedFile::text("fake.png", "<svg/>")
    };
    let bench = Bench::new(Camera::with(vec![png("../photo.png"), svg]));
    let script = [
        delegate("operator", "look"),
        call("fs_look", json!({})),
        say("a cat"),
        say("It is a cat."),
    ];
    let model = Arc::new(ScriptedModel::replies(script));
    let mut conversation = bench.runner(Shared(Arc::clone(&model))).start(local());
    turn(&mut conversation, "what is there?").await;
    let requests = model.requests();
    assert_eq!(files(&requests[2]), ["photo.png"]);
    assert_eq!(requests[2].contents.values().next().unwrap()[..], *PNG);
    assert!(request_text(&requests[2]).contains("`fake.png` is not attached: it is not a PNG"));
    assert!(requests[3].contents.is_empty() && files(&requests[3]).is_empty());
    let events = log(&bench, conversation.session()).await;
    let returned = events.iter().find_map(|event| match &event.body {
        EventBody::ToolReturned {
            attachments, trust, ..
        } => Some((attachments.len(), *trust)),
        _ => None,
    });
    // The tool labelled its text as trusted; the image is not.
    assert_eq!(returned, Some((1, Trust::Untrusted)));
}

#[tokio::test]
async fn a_file_of_the_user_is_untrusted() {
    for (files, label) in [(0, Trust::Trusted), (1, Trust::Untrusted)] {
        let bench = Bench::new(Camera::with(Vec::new()));
        let model = ScriptedModel::replies([say("done")]);
        let mut conversation = bench.runner(model).start(local());
        let mut question = UserInput::from("x");
        question.files = vec![png("a.png"); files];
        turn_on(&mut conversation, question).await;
        let events = log(&bench, conversation.session()).await;
        assert_eq!(events[0].body.trust(), label);
        assert_eq!(events[1].body.trust(), label);
    }
}

#[tokio::test]
async fn a_resumed_turn_has_the_same_files() {
    let folder = tempfile::tempdir().unwrap();
    let open = || {
        let store = Store::sqlite(folder.path().join("lango.db"), "lango-orchestrator".into());
        let store = Arc::new(store.unwrap());
        Bench {
            store: Arc::clone(&store) as _,
            attachments: Some(store),
            ..Bench::new(Camera::with(Vec::new()))
        }
    };
    let mut conversation = open().runner(UnresponsiveModel).start(local());
    let (sender, mut shown) = turn_updates();
    let stop = CancelToken::new();
    let question = with_file("what is it?", png("a.png"));
    let running = conversation.turn(question, &stop, &sender);
    tokio::select! {
        _ = running => panic!("it waits for its model"),
        stored = shown.recv() => assert!(matches!(stored, Some(TurnUpdate::Stored(_)))),
    }
    let session = conversation.session().clone();
    drop(conversation);

    let model = Arc::new(ScriptedModel::replies([say("a cat"), say("still a cat")]));
    let bench = open();
    let mut conversation = bench
        .runner(Shared(Arc::clone(&model)))
        .open(session)
        .await
        .unwrap();
    conversation.resume(&stop, &sender).await.unwrap().unwrap();
    turn(&mut conversation, "sure?").await;
    let requests = model.requests();
    assert_eq!(requests.len(), 2);
    for request in &requests {
        assert_eq!(files(request), ["a.png"]);
        let bytes: Vec<_> = request.contents.values().collect();
        assert_eq!(bytes[..], [&Arc::from(PNG)]);
    }
}

#[tokio::test]
async fn a_question_with_an_unattachable_file_is_rejected_completely() {
    let bench = Bench::new(Camera::with(Vec::new()));
    let model = ScriptedModel::replies([say("never")]);
    let mut conversation = bench.runner(model).start(local());
    let (sender, _shown) = turn_updates();
    let mut large = PNG.to_vec();
    large.resize(AttachedFile::IMAGE_BYTES + 1, 0);
    let question = with_file("x", AttachedFile::image("large.png", large).unwrap());
    let error = conversation
        .turn(question, &CancelToken::new(), &sender)
        .await;
    let error = error.unwrap_err();
    assert!(
        matches!(error, RunnerError::AttachmentRejected { .. }),
        "{error}"
    );
    assert!(
        error.to_string().contains("may have at most 5 MB"),
        "{error}"
    );
}

#[tokio::test]
async fn a_remote_agent_gets_the_named_files_and_its_own_files_are_stored() {
    let remote = Arc::new(ScriptedRemote::from_fn("painter", |_| {
        vec![Ok(RemoteEvent::Answer(RemoteAnswer {
            files: vec![png("copy.png")],
            ..RemoteAnswer::from("painted".to_owned())
        }))]
    }));
    let mut bench = Bench::new(Camera::with(Vec::new()));
    bench.remotes = vec![Arc::clone(&remote) as _];
    let task = json!({ "agent": "painter", "task": "copy it", "attachments": ["a.png"] });
    let script = [call("delegate", task), say("Here it is.")];
    let model = Arc::new(ScriptedModel::replies(script));
    let mut conversation = bench.runner(Shared(Arc::clone(&model))).start(local());
    turn_on(&mut conversation, with_file("copy this", png("a.png"))).await;
    let calls = remote.calls();
    let RemoteCall::Send { files: sent, .. } = &calls[0] else {
        panic!("{calls:?}");
    };
    assert_eq!(sent[..], [png("a.png")]);
    let requests = model.requests();
    assert_eq!(files(&requests[1]), ["a.png", "copy.png"]);
    let offered = &requests[1].functions[0].parameters["properties"]["attachments"];
    assert_eq!(offered["items"]["enum"], json!(["copy.png", "a.png"]));
}

#[tokio::test]
async fn a_file_that_failed_its_turn_is_only_named_in_later_ones() {
    let bench = Bench::new(Camera::with(Vec::new()));
    let answer = |request: &ModelRequest| {
        if files(request).is_empty() {
            Ok(say("Here."))
        } else {
            Err(failure(ModelFault::Refused {
                detail: "could not process image".to_owned(),
            }))
        }
    };
    let model = Arc::new(ScriptedModel::new(answer));
    let mut conversation = bench.runner(Shared(Arc::clone(&model))).start(local());
    turn_on(&mut conversation, with_file("what is it?", png("bad.png"))).await;
    turn(&mut conversation, "and now?").await;
    let reopened = bench.runner(Shared(Arc::clone(&model)));
    let mut conversation = reopened.open(conversation.session().clone()).await.unwrap();
    turn(&mut conversation, "and after a restart?").await;
    let requests = model.requests();
    assert_eq!(files(&requests[0]), ["bad.png"]);
    for request in &requests[1..] {
        assert!(files(request).is_empty());
        assert!(request_text(request).contains("bad.png"));
    }
}

#[tokio::test]
async fn text_that_exceeds_the_context_window_is_rejected_before_a_model_is_called() {
    let bench = Bench::new(Camera::with(Vec::new()));
    let model = Arc::new(ScriptedModel::replies([say("done")]).with_terms(ModelInfo {
        context_tokens: Some(2000),
        ..ModelInfo::default()
    }));
    let mut conversation = bench.runner(Shared(Arc::clone(&model))).start(local());
    let file = AttachedFile::text("long.txt", "word ".repeat(2000));
    let (sender, _shown) = turn_updates();
    let question = with_file("read it", file);
    let error = conversation
        .turn(question, &CancelToken::new(), &sender)
        .await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("is 2000"), "{error}");
    assert!(model.requests().is_empty());
}

#[tokio::test]
async fn a_runner_without_a_store_for_files_refuses_and_omits_them() {
    let bench = Bench {
        attachments: None,
        ..Bench::new(Camera::with(vec![png("photo.png")]))
    };
    let script = [
        delegate("operator", "look"),
        call("fs_look", json!({})),
        say("seen"),
        say("It was seen."),
    ];
    let model = Arc::new(ScriptedModel::replies(script));
    let mut conversation = bench.runner(Shared(Arc::clone(&model))).start(local());
    let (sender, _shown) = turn_updates();
    let stop = CancelToken::new();
    let mut known = UserInput::from("what is it?");
    known.attachments.push(image("a.png"));
    for question in [with_file("what is it?", png("a.png")), known] {
        let error = conversation.turn(question, &stop, &sender).await;
        let text = error.unwrap_err().to_string();
        assert_eq!(text, "`a.png` is not attached: this store keeps no files");
    }
    turn(&mut conversation, "take a photo").await;
    let requests = model.requests();
    let text = request_text(&requests[2]);
    let omitted = "Taken.\\n`photo.png` is not attached: this store keeps no files";
    assert!(text.contains(omitted), "{text}");
    assert!(requests.iter().all(|request| files(request).is_empty()));
}
