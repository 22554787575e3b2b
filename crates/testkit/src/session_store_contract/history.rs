//! Cases about the history: which earlier turns a new turn sees, and what it sees of them.

use super::samples::ROOT;
use super::{LogBuilder, StoreUnderTest};
use lango_core::{
    CallId, CallStatus, EventBody, Exchange, ExchangeAnswer, SessionHead, SessionId, Trust,
    TurnFault, TurnId,
};

/// At every length of a session the history starts where [`SessionHead::history_start`] says and contains all later
/// turns.
pub async fn the_history_moves_in_blocks(subject: StoreUnderTest) {
    for (turns, first_shown) in [
        (0, 0),
        (1, 0),
        (19, 0),
        (20, 0),
        (39, 0),
        (40, 20),
        (41, 20),
        (59, 20),
        (60, 40),
    ] {
        assert_eq!(SessionHead::history_start(turns), first_shown);
        let session = subject.session(&format!("s_{turns}")).await;
        let questions = 0..turns;
        let mut builder = questions.fold(LogBuilder::new(&session), |builder, turn| {
            builder.exchange(&format!("question {turn}"), &format!("answer {turn}"))
        });
        store(&subject, &mut builder).await;
        let head = open(&subject, &session).await;
        assert_eq!(
            (head.turns, head.next_seq, head.unfinished),
            (turns, 3 * turns + 1, None)
        );
        let shown: Vec<_> = head
            .exchanges
            .iter()
            .map(|exchange| exchange.question.to_string())
            .collect();
        let expected: Vec<_> = (first_shown..turns)
            .map(|turn| format!("question {turn}"))
            .collect();
        assert_eq!(shown, expected, "of {turns} turns");
        for (exchange, turn) in head.exchanges.iter().zip(first_shown..) {
            assert_eq!(exchange.turn, format!("t_{}", 3 * turn + 1).as_str());
            let expected = ExchangeAnswer {
                author: ROOT.into(),
                text: format!("answer {turn}").into(),
                task: None,
                is_remote: false,
                is_notice: true,
                trust: Trust::Trusted,
            };
            assert_eq!(exchange.answer, Some(expected));
        }
    }
}

/// The history of a past turn is what opening the session returned when that turn started.
pub async fn the_history_of_a_past_turn_is_what_that_turn_saw(subject: StoreUnderTest) {
    let session = subject.session("s_1").await;
    let mut builder = LogBuilder::new(&session);
    let mut shown = Vec::new();
    for turn in 0..45 {
        shown.push(open(&subject, &session).await.exchanges);
        builder = builder.exchange(&format!("question {turn}"), &format!("answer {turn}"));
        store(&subject, &mut builder).await;
    }
    for (turn, expected) in shown.into_iter().enumerate() {
        let id = TurnId::from(format!("t_{}", 3 * turn + 1).as_str());
        let history = subject.store.history_of(&session, &id).await;
        assert_eq!(
            history.expect("history can be read"),
            expected,
            "of turn {turn}"
        );
    }
    let unknown = TurnId::from("t_none");
    assert!(subject.store.history_of(&session, &unknown).await.is_err());
}

/// What was undone of a turn is part of its exchange, for turns that start later. A turn is undone at most once.
pub async fn later_turns_see_what_was_undone(subject: StoreUnderTest) {
    let session = subject.session("s_1").await;
    let mut builder = LogBuilder::new(&session);
    let (mut ids, mut shown) = (Vec::new(), Vec::new());
    for turn in 0..44_usize {
        let head = open(&subject, &session).await;
        ids.push(format!("t_{}", head.next_seq));
        shown.push(head.exchanges);
        builder = builder.exchange("question", "answer");
        match turn {
            // In one batch with its end, and together with an earlier turn.
            7 => builder = builder.undo(&ids[7], &["a", "b"]).undo(&ids[2], &["c"]),
            9 => {
                store(&subject, &mut builder).await;
                builder = builder.undo(&ids[9], &["d"]);
                store(&subject, &mut builder).await;
                builder = builder.undo(&ids[9], &["again"]).undo(&ids[7], &["again"]);
            }
            // It has left the history.
            43 => builder = builder.undo(&ids[0], &["e"]),
            _ => {}
        }
        store(&subject, &mut builder).await;
    }
    let undone = |exchanges: &[Exchange]| -> Vec<(usize, String)> {
        let files = exchanges.iter().enumerate().filter_map(|(at, exchange)| {
            let undone = exchange.undone.as_ref()?;
            assert_eq!(undone.trust, Trust::Trusted);
            Some((at, undone.restored.join(" ")))
        });
        files.collect()
    };
    let expected = [(2, "c"), (7, "a b"), (9, "d")].map(|(at, files)| (at, files.to_owned()));
    assert_eq!(undone(&shown[7]), []);
    assert_eq!(undone(&shown[8]), expected[..2]);
    assert_eq!(undone(&shown[9]), expected[..2]);
    assert_eq!(undone(&shown[10]), expected);
    assert_eq!(undone(&shown[39]), expected);
    let last = open(&subject, &session).await;
    assert_eq!((last.turns, undone(&last.exchanges)), (44, Vec::new()));
    for (id, expected) in ids.iter().zip(&shown) {
        let turn = TurnId::from(id.as_str());
        let history = subject.store.history_of(&session, &turn).await;
        assert_eq!(&history.expect("history can be read"), expected, "of {id}");
    }
    let all = subject.log(&session).await;
    for turn in ids.iter().map(|id| TurnId::from(id.as_str())) {
        let own = all.iter().filter(|event| event.turn == turn).cloned();
        let found = subject.store.turn_events(&session, &turn).await;
        assert_eq!(found.expect("events can be read"), own.collect::<Vec<_>>());
    }
}

/// A turn that is running, or that a crash interrupted, is not part of the history yet.
pub async fn an_unfinished_turn_is_reported_but_not_in_the_history(subject: StoreUnderTest) {
    let session = subject.session("s_1").await;
    let mut builder = LogBuilder::new(&session)
        .exchange("one", "1")
        .ask("two")
        .delegate("c_1", "operator", "do", true);
    store(&subject, &mut builder).await;
    let head = open(&subject, &session).await;
    assert_eq!(
        (head.turns, head.next_seq, head.unfinished),
        (2, 6, Some(4))
    );
    assert_eq!(questions(&head.exchanges), ["one"]);

    let twentieth = subject.session("s_2").await;
    let mut builder = (0..39)
        .fold(LogBuilder::new(&twentieth), |builder, _| {
            builder.exchange("one", "1")
        })
        .ask("last");
    store(&subject, &mut builder).await;
    let head = open(&subject, &twentieth).await;
    assert_eq!(
        (head.turns, head.exchanges.len(), head.unfinished),
        (40, 39, Some(118))
    );
}

/// A turn that is finished after a restart becomes part of the history.
pub async fn an_unfinished_turn_enters_the_history_once_it_is_finished(subject: StoreUnderTest) {
    let session = subject.session("s_1").await;
    let mut builder = LogBuilder::new(&session).ask("one");
    store(&subject, &mut builder).await;
    let detail = "the process ended".into();
    let corrected = EventBody::TurnCorrected {
        fault: TurnFault::Interrupted,
        call: None,
        detail,
        context_tokens: None,
    };
    builder = builder.add(ROOT, "", corrected).say(ROOT, "", "1").finish();
    store(&subject, &mut builder).await;
    let head = open(&subject, &session).await;
    assert_eq!(
        (questions(&head.exchanges), head.unfinished),
        (vec!["one"], None)
    );
    assert!(head.exchanges[0].answer.is_some());
}

/// A turn may end without an answer; its question is still part of the history.
pub async fn a_turn_that_ended_without_text_has_no_answer(subject: StoreUnderTest) {
    let session = subject.session("s_1").await;
    let mut builder = LogBuilder::new(&session)
        .ask("one")
        .say("operator", "c_1", "half")
        .cancel()
        .exchange("two", "2");
    store(&subject, &mut builder).await;
    let head = open(&subject, &session).await;
    assert_eq!(questions(&head.exchanges), ["one", "two"]);
    assert_eq!(head.exchanges[0].answer, None);
}

/// The answer of a sub-agent that replied to the user directly comes with the last task that it was given.
pub async fn the_answer_of_a_sub_agent_carries_its_task(subject: StoreUnderTest) {
    let session = subject.session("s_1").await;
    let rejected = EventBody::AgentRejected {
        reason: "not mine".into(),
    };
    let mut builder = LogBuilder::new(&session)
        .ask("read it")
        .delegate("c_1", "librarian", "look it up", true)
        .add("librarian", "c_1", rejected)
        .delegate("c_2", "operator", "read the file", true)
        .say("operator", "c_2", "it says hello")
        .finish();
    store(&subject, &mut builder).await;
    let expected = ExchangeAnswer {
        author: "operator".into(),
        text: "it says hello".into(),
        task: Some("read the file".into()),
        is_remote: false,
        is_notice: true,
        trust: Trust::Trusted,
    };
    assert_eq!(
        open(&subject, &session).await.exchanges[0].answer,
        Some(expected)
    );
}

/// The answer of a remote agent, which is stored in another kind of event, comes with its task too.
pub async fn the_answer_of_a_remote_agent_carries_its_task(subject: StoreUnderTest) {
    let session = subject.session("s_1").await;
    let output = EventBody::RemoteReturned {
        status: CallStatus::Ok,
        output: "12 °C".into(),
        is_final: true,
        thread: None,
        attachments: Vec::new(),
    };
    let mut builder = LogBuilder::new(&session)
        .ask("how warm is it?")
        .delegate("c_1", "weather", "the temperature", true)
        .add(
            "weather",
            "c_1",
            EventBody::RemoteCalled {
                task: "the temperature".into(),
            },
        )
        .add("weather", "c_1", output)
        .finish();
    store(&subject, &mut builder).await;
    let expected = ExchangeAnswer {
        author: "weather".into(),
        text: "12 °C".into(),
        task: Some("the temperature".into()),
        is_remote: true,
        is_notice: false,
        trust: Trust::Untrusted,
    };
    assert_eq!(
        open(&subject, &session).await.exchanges[0].answer,
        Some(expected)
    );
}

/// Returns all events of the turn, and none of the turns before and after it.
pub async fn the_events_of_one_turn_are_found_by_its_id(subject: StoreUnderTest) {
    let session = subject.session("s_1").await;
    let mut builder = LogBuilder::new(&session)
        .exchange("one", "1")
        .exchange("two", "2")
        .ask("three");
    store(&subject, &mut builder).await;
    let all = subject.log(&session).await;
    for turn in ["t_1", "t_2", "t_3", "t_9"] {
        let turn = TurnId::from(turn);
        let mut expected = all.clone();
        expected.retain(|event| event.turn == turn);
        let found = subject.store.turn_events(&session, &turn).await;
        assert_eq!(found.expect("events can be read"), expected, "{turn}");
    }
}

/// If the root answered, the history does not mention the delegations before that answer.
pub async fn the_answer_of_the_root_carries_no_task(subject: StoreUnderTest) {
    let session = subject.session("s_1").await;
    let returned = EventBody::ToolReturned {
        call: CallId::from("c_1/1"),
        status: CallStatus::Ok,
        output: "x".into(),
        trust: Trust::Untrusted,
        attachments: Vec::new(),
    };
    let mut builder = LogBuilder::new(&session)
        .ask("one")
        .delegate("c_1", "operator", "try it", true)
        .add("operator", "c_1", returned)
        .say(ROOT, "", "it did not work")
        .finish()
        .ask("two")
        .delegate("c_1", "operator", "try again", false)
        .say("operator", "c_1", "done")
        .say(ROOT, "", "it worked")
        .finish();
    store(&subject, &mut builder).await;
    for (exchange, text) in open(&subject, &session)
        .await
        .exchanges
        .iter()
        .zip(["it did not work", "it worked"])
    {
        let expected = ExchangeAnswer {
            author: ROOT.into(),
            text: text.into(),
            task: None,
            is_remote: false,
            is_notice: true,
            trust: Trust::Trusted,
        };
        assert_eq!(exchange.answer, Some(expected));
    }
}

fn questions(exchanges: &[Exchange]) -> Vec<&str> {
    exchanges
        .iter()
        .map(|exchange| &*exchange.question)
        .collect()
}

async fn open(subject: &StoreUnderTest, session: &SessionId) -> SessionHead {
    subject
        .store
        .read_head(session)
        .await
        .expect("the session opens")
}

async fn store(subject: &StoreUnderTest, builder: &mut LogBuilder) {
    subject
        .store
        .append(builder.batch())
        .await
        .expect("a batch can be appended");
}
