//! Answers with a JSON schema: who answers, what the model sees, the retry, and how a turn fails.

use crate::bench::{Bench, local, log, turn_on};
use crate::support::{
    Play, PlayedTurn, SHAPES, Shape, file_agent, function_names, tree, tree_with,
};
use lango_core::{
    EventBody, Limit, Message, ModelReply, ModelRequest, Outcome, RemoteAnswer, RemoteThread,
    StopReason, Timestamp, TurnFault, TurnSettings, UserInput,
};
use lango_engine::{Turn, TurnInput, TurnStep, TurnUpdate};
use lango_testkit::model::{ScriptedModel, call, delegate, delegate_and_finish, say};
use serde_json::{Value, json};
use std::sync::Arc;

fn schema() -> Arc<Value> {
    Arc::new(json!({
        "type": "object",
        "properties": { "files": { "type": "array", "items": { "type": "string" } } },
        "required": ["files"],
    }))
}

fn with_schema() -> TurnSettings {
    TurnSettings {
        answer_schema: Some(schema()),
        ..TurnSettings::default()
    }
}

fn play(shape: Shape, replies: Vec<ModelReply>) -> Play<'static> {
    Play::scripted(tree(shape), replies).settings(with_schema())
}

/// Returns the texts of a request's last messages, after those of the user.
fn after_question(request: &ModelRequest) -> Vec<String> {
    let texts = request
        .messages
        .iter()
        .skip(1)
        .map(|message| match message {
            Message::Assistant { text, .. } => format!("assistant: {text}"),
            Message::Notice { text } => format!("notice: {text}"),
            other => format!("{other:?}"),
        });
    texts.collect()
}

fn failure(played: &PlayedTurn) -> &str {
    match played.outcome() {
        Outcome::Failed {
            error,
            setup: false,
            ..
        } => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_valid_answer_is_accepted_unchanged_in_every_kind_of_tree() {
    for shape in SHAPES {
        for text in [r#"{"files": ["a"]}"#, "```json\n{\"files\": [\"a\"]}\n```"] {
            let played = play(shape, vec![say(text)]).run("list");
            let (author, answer) = played.answer();
            assert_eq!(answer, r#"{"files": ["a"]}"#, "{shape:?}");
            assert_eq!(author, played.turn_root());
            assert!(played.answered());
            assert_eq!(played.faults(), []);
        }
    }
}

#[test]
fn only_the_root_sees_the_schema_after_the_question() {
    let agent = file_agent(Shape::Specialists);
    let replies = vec![
        delegate_and_finish(agent, "list"),
        call("fs_read", json!({})),
        say("a and b"),
        say(r#"{"files": ["a", "b"]}"#),
    ];
    let played = play(Shape::Specialists, replies).run("list");
    let (author, answer) = played.answer();
    assert_eq!(
        (answer.as_str(), author.as_str()),
        (r#"{"files": ["a", "b"]}"#, "lango-orchestrator"),
        "`finish` is not heard"
    );
    for (step, request) in &played.requests {
        let Message::User { text, .. } = &request.messages[0] else {
            panic!("{request:?}");
        };
        if step.frame.is_root() {
            assert_eq!(request.answer_schema, Some(schema()));
            let told = text.strip_prefix("list\n\n<answer-schema>\n").unwrap();
            assert!(told.starts_with(&schema().to_string()), "{text}");
            assert!(told.ends_with("`finish` is not available here."), "{text}");
        } else {
            assert_eq!(request.answer_schema, None);
            assert!(!text.contains("answer-schema"), "{text}");
        }
        assert!(
            !step.shows_draft,
            "nothing is shown before it is known to be valid"
        );
    }
    let delegate = &played.requests[0].1.functions[0].parameters["properties"];
    assert!(delegate["task"].is_object() && delegate["finish"].is_null());
    let single = play(Shape::Single, vec![say("{}")]).begin("list").0;
    let Some(TurnStep::CallModel(step)) = single.ready().pop() else {
        panic!("a model is asked");
    };
    let request = single.request(&step);
    let Message::User { text, .. } = &request.messages[0] else {
        panic!("{request:?}");
    };
    assert!(!text.contains("finish"), "it has nobody to delegate to");
}

#[test]
fn an_invalid_answer_is_sent_back_once_with_the_location() {
    for shape in SHAPES {
        let wrong = r#"{"files": ["a", 2]}"#;
        let played = play(shape, vec![say(wrong), say(r#"{"files": []}"#)]).run("list");
        assert_eq!(played.answer().1, r#"{"files": []}"#, "{shape:?}");
        assert_eq!(played.faults(), [TurnFault::InvalidAnswer]);
        let sent = after_question(&played.requests[1].1);
        assert_eq!(sent[0], format!("assistant: {wrong}"));
        assert!(
            sent[1].contains("at `/files/1`: 2 is not of type \"string\""),
            "{sent:?}"
        );
        assert!(
            !function_names(&played.requests[1].1).is_empty(),
            "it may still look something up"
        );
    }
}

#[test]
fn a_second_invalid_answer_fails_the_turn_with_the_location() {
    for shape in SHAPES {
        for (text, place) in [
            (r#"{"files": 1}"#, "at `/files`: 1 is not of type \"array\""),
            ("{}", "\"files\" is a required property"),
            ("There are two files.", "it is not one JSON value"),
            (r#"{"files": []} as you asked"#, "trailing characters"),
        ] {
            let played = play(shape, vec![say(text), say(text), say("never")]).run("list");
            let error = failure(&played);
            let expected = format!("the answer does not satisfy the schema: {place}");
            assert!(
                error.starts_with(&expected) || error.contains(place),
                "{error}"
            );
            assert_eq!(played.counts().0, 2, "one retry");
            assert_eq!(played.faults(), [TurnFault::InvalidAnswer; 2]);
        }
    }
}

#[test]
fn an_empty_reply_does_not_use_up_the_retry() {
    let replies = vec![say(""), say("{}"), say(r#"{"files": []}"#)];
    let played = play(Shape::Single, replies).run("list");
    assert_eq!(played.answer().1, r#"{"files": []}"#);
    assert_eq!(
        played.faults(),
        [TurnFault::EmptyReply, TurnFault::InvalidAnswer]
    );
}

#[test]
fn a_reply_that_was_cut_off_is_not_an_answer() {
    let cut = ModelReply {
        stop: StopReason::OutputLimit,
        ..say(r#"{"files": []}"#)
    };
    let played = play(Shape::Single, vec![cut.clone(), cut]).run("list");
    assert!(failure(&played).contains("cut off"));
}

#[test]
fn without_a_model_call_for_the_retry_the_turn_fails_with_the_location() {
    let limited = play(Shape::Single, vec![say("{}")]).limits(|limits| limits.model_calls = 1);
    let played = limited.run("list");
    assert!(failure(&played).contains("\"files\" is a required property"));
    let notice = &after_question(&played.requests[0].1)[0];
    assert!(
        notice.contains("last reply") && notice.ends_with("JSON schema of this request."),
        "{notice}"
    );
    let limited = play(Shape::Single, vec![say(r#"{"files": []}"#)])
        .limits(|limits| limits.model_calls = 1)
        .run("list");
    let limit = Some(Limit::ModelCalls);
    assert_eq!(*limited.outcome(), Outcome::Answered { limit });
}

#[test]
fn a_question_of_a_remote_agent_goes_to_the_root_and_not_to_the_user() {
    let tree = tree_with(Shape::Specialists, &["fs_read"], &["translator"], 3);
    let play = Play::scripted(Arc::clone(&tree), Vec::new()).settings(with_schema());
    let (mut turn, _) = play.begin("translate");
    accept_reply(&mut turn, delegate("translator", "translate"));
    let Some(TurnStep::CallRemote(step)) = turn.ready().pop() else {
        panic!("the remote agent is asked");
    };
    let thread = RemoteThread {
        context: "c".into(),
        task: Some("t".into()),
    };
    let result = Ok(RemoteAnswer {
        text: "Into which language?".to_owned(),
        thread: Some(thread),
        files: Vec::new(),
    });
    let attachments = Vec::new();
    let input = TurnInput::RemoteReturned {
        step,
        result,
        attachments,
    };
    turn.accept(input, Timestamp(2));
    assert_eq!(turn.outcome(), None);
    accept_reply(&mut turn, say(r#"{"files": []}"#));
    assert_eq!(turn.outcome(), Some(&Outcome::Answered { limit: None }));
}

fn accept_reply(turn: &mut Turn, reply: ModelReply) {
    let Some(TurnStep::CallModel(step)) = turn.ready().pop() else {
        panic!("a model is asked");
    };
    let input = TurnInput::ModelReplied {
        step,
        reply,
        model: "test/scripted".into(),
        inspections: Vec::new(),
    };
    turn.accept(input, Timestamp(2));
}

#[tokio::test]
async fn the_schema_is_stored_with_the_turn_and_the_report_says_so() {
    let bench = Bench::new(Vec::new());
    let model = ScriptedModel::replies([say(r#"{"files": []}"#), say("In words.")]);
    let mut conversation = bench.runner(model).start(local());
    let question = UserInput::from("list").with_answer_schema(schema());
    let (report, shown) = turn_on(&mut conversation, question).await;
    assert_eq!(report.answer.as_deref(), Some(r#"{"files": []}"#));
    assert!(report.structured);
    let is_draft = |item: &TurnUpdate| matches!(item, TurnUpdate::Draft { .. });
    assert!(!shown.iter().any(is_draft));
    let events = log(&bench, conversation.session()).await;
    let EventBody::UserMessage {
        settings: Some(settings),
        ..
    } = &events[0].body
    else {
        panic!("{:?}", events[0]);
    };
    assert_eq!(settings.answer_schema, Some(schema()));
    let (report, _) = turn_on(&mut conversation, "and now?".into()).await;
    assert_eq!(report.answer.as_deref(), Some("In words."));
    assert!(!report.structured, "the schema applies to one turn");
}
