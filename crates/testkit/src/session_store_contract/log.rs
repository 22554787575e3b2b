//! Cases about sessions and their logs: events read back completely, once and in order.

use super::{LogBuilder, StoreUnderTest, every_kind_of_event};
use futures_util::future::join_all;
use lango_core::{
    EventBatch, EventBody, EventRange, NewSession, SessionId, StoreError, Timestamp, UserId,
};
use std::collections::HashSet;

pub async fn a_new_session_is_empty(subject: StoreUnderTest) {
    let session = subject.session("s_1").await;
    let head = subject
        .store
        .read_head(&session)
        .await
        .expect("the session opens");
    assert_eq!(
        (head.user, head.next_seq, head.turns),
        (UserId::from("local"), 1, 0)
    );
    assert_eq!((head.exchanges, head.unfinished), (vec![], None));
    assert_eq!(subject.log(&session).await, []);
}

/// Another user cannot reuse the id either, and the existing session stays unchanged.
pub async fn a_session_id_cannot_be_used_twice(subject: StoreUnderTest) {
    let id = subject.session("s_1").await;
    append(
        &subject,
        LogBuilder::new(&id)
            .exchange("hello", "hello yourself")
            .batch(),
    )
    .await;
    let again = NewSession {
        id: id.clone(),
        user: UserId::from("other"),
        created: Timestamp(5),
    };
    let error = subject
        .store
        .create(again)
        .await
        .expect_err("the id is taken");
    assert!(matches!(error, StoreError::Exists { id } if id == "s_1"));
    assert_eq!(subject.log(&id).await.len(), 3);
    assert_eq!(
        subject
            .store
            .read_head(&id)
            .await
            .expect("the session opens")
            .user,
        "local"
    );
}

/// User names with control characters are reserved for hidden sessions; empty and overlong names are not valid either.
pub async fn invalid_user_names_are_refused(subject: StoreUnderTest) {
    let endless = "x".repeat(5000);
    for name in ["", "  ", "\u{1}local", "a\nb", endless.as_str()] {
        let session = NewSession {
            id: SessionId::from("s_1"),
            user: UserId::from(name),
            created: Timestamp(5),
        };
        let created = subject.store.create(session).await;
        assert!(created.is_err(), "{name:?}");
    }
    subject.session_of("Jane Doe", "s_1").await;
}

/// A session that does not exist can be neither opened, read nor appended to.
pub async fn a_missing_session_is_reported_as_not_found(subject: StoreUnderTest) {
    subject.session("s_10").await;
    let id = SessionId::from("s_1");
    let page = EventRange { from: 1, limit: 10 };
    let errors = [
        subject.store.read_head(&id).await.err(),
        subject.store.read(&id, page).await.err(),
        subject
            .store
            .append(LogBuilder::new(&id).ask("hello").batch())
            .await
            .err(),
    ];
    for error in errors {
        assert!(
            matches!(&error, Some(StoreError::NotFound { id }) if *id == "s_1"),
            "{error:?}"
        );
    }
}

pub async fn every_kind_of_event_reads_back_unchanged(subject: StoreUnderTest) {
    let session = subject.session("s_1").await;
    let written = every_kind_of_event(&session);
    let kinds: HashSet<_> = written.iter().map(|event| event.body.kind()).collect();
    assert_eq!(kinds.len(), 14, "a kind of event is missing in the sample");
    append(&subject, written.clone()).await;
    let read = subject.log(&session).await;
    for (read, written) in read.iter().zip(written.iter()) {
        assert_eq!(read, written);
    }
    assert_eq!(read.len(), written.len());
}

/// Empty text, long text, and characters that encodings often break on.
pub async fn text_of_any_kind_and_length_reads_back_unchanged(subject: StoreUnderTest) {
    let session = subject.session("s_1").await;
    let long = "ä".repeat(1 << 20);
    let texts = [
        "",
        " ",
        "\0",
        "'; DROP TABLE events; --",
        "\u{202e}\u{feff}😀\r\n\t",
        "\u{10ffff}",
        long.as_str(),
    ];
    let mut builder = texts
        .iter()
        .fold(LogBuilder::new(&session), |builder, text| {
            builder.exchange(text, text)
        });
    append(&subject, builder.batch()).await;
    let exchanges = subject
        .store
        .read_head(&session)
        .await
        .expect("the session opens")
        .exchanges;
    assert_eq!(exchanges.len(), texts.len());
    for (exchange, text) in exchanges.iter().zip(texts) {
        assert_eq!(&*exchange.question, text);
        assert_eq!(
            exchange.answer.as_ref().map(|answer| &*answer.text),
            Some(text)
        );
    }
    for (event, text) in subject.log(&session).await.iter().step_by(3).zip(texts) {
        assert!(
            matches!(&event.body, EventBody::UserMessage { text: read, .. } if **read == *text)
        );
    }
}

pub async fn a_page_respects_its_start_and_limit(subject: StoreUnderTest) {
    let session = subject.session("s_1").await;
    append(
        &subject,
        LogBuilder::new(&session)
            .exchange("one", "1")
            .exchange("two", "2")
            .batch(),
    )
    .await;
    let cases: [(u64, usize, &[u64]); 7] = [
        (1, 6, &[1, 2, 3, 4, 5, 6]),
        (0, 2, &[1, 2]),
        (3, 2, &[3, 4]),
        (6, 9, &[6]),
        (7, 9, &[]),
        (1, 0, &[]),
        (u64::MAX, 1, &[]),
    ];
    for (from, limit, expected) in cases {
        let page = EventRange { from, limit };
        let events = subject
            .store
            .read(&session, page)
            .await
            .expect("events can be read");
        let read: Vec<_> = events.iter().map(|event| event.seq).collect();
        assert_eq!(read, expected, "from {from}, at most {limit}");
    }
}

/// A log never has gaps or two events with the same number.
pub async fn an_append_anywhere_but_at_the_end_is_a_conflict(subject: StoreUnderTest) {
    let session = subject.session("s_1").await;
    append(
        &subject,
        LogBuilder::new(&session).exchange("one", "1").batch(),
    )
    .await;
    let before = subject.log(&session).await;
    for seq in [0, 1, 2, 3, 5, 6, 1000, u64::MAX / 4] {
        let error = subject
            .store
            .append(LogBuilder::new(&session).at(seq).ask("two").batch())
            .await
            .err();
        assert!(
            matches!(&error, Some(StoreError::Conflict { id }) if *id == "s_1"),
            "at {seq}: {error:?}"
        );
    }
    assert_eq!(subject.log(&session).await, before);
    append(&subject, LogBuilder::new(&session).at(4).ask("two").batch()).await;
    assert_eq!(subject.log(&session).await.len(), 4);
}

/// A batch with an invalid event in the middle stores nothing, and the session stays usable.
pub async fn a_batch_is_stored_whole_or_not_at_all(subject: StoreUnderTest) {
    let session = subject.session("s_1").await;
    let other = subject.session("s_2").await;
    let gap = LogBuilder::new(&session)
        .ask("one")
        .at(3)
        .say("root", "", "1")
        .batch();
    let repeated = LogBuilder::new(&session)
        .ask("one")
        .at(1)
        .say("root", "", "1")
        .batch();
    let stray = LogBuilder::new(&other).at(2).say("root", "", "1").batch();
    let mixed: EventBatch = LogBuilder::new(&session)
        .ask("one")
        .batch()
        .iter()
        .chain(stray.iter())
        .cloned()
        .collect();
    for batch in [gap, repeated, mixed] {
        let error = subject
            .store
            .append(batch)
            .await
            .expect_err("the batch is wrong");
        assert!(matches!(error, StoreError::Failed { .. }), "{error:?}");
    }
    let head = subject
        .store
        .read_head(&session)
        .await
        .expect("the session opens");
    assert_eq!((head.next_seq, head.turns, head.unfinished), (1, 0, None));
    assert!(subject.log(&session).await.is_empty() && subject.log(&other).await.is_empty());
    append(
        &subject,
        LogBuilder::new(&session).exchange("one", "1").batch(),
    )
    .await;
}

pub async fn an_empty_batch_changes_nothing(subject: StoreUnderTest) {
    let session = subject.session("s_1").await;
    append(&subject, EventBatch::from([])).await;
    assert_eq!(
        subject
            .store
            .read_head(&session)
            .await
            .expect("the session opens")
            .next_seq,
        1
    );
}

/// Of two writers that have read the same log, only one can append to it.
pub async fn one_of_two_appends_at_the_same_position_wins(subject: StoreUnderTest) {
    let session = subject.session("s_1").await;
    let batches = ["left", "right"].map(|text| LogBuilder::new(&session).ask(text).batch());
    let results = join_all(batches.map(|batch| subject.store.append(batch))).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    let conflicts = results
        .iter()
        .filter(|result| matches!(result, Err(StoreError::Conflict { .. })));
    assert_eq!(conflicts.count(), 1);
    assert_eq!(subject.log(&session).await.len(), 1);
}

/// Each session has its own log in its own order.
pub async fn concurrent_appends_to_fifty_sessions_are_all_stored(subject: StoreUnderTest) {
    const TURNS: usize = 8;
    let live = (0..50).map(async |number| {
        let session = subject.session(&format!("s_{number}")).await;
        let mut builder = LogBuilder::new(&session);
        for turn in 0..TURNS {
            builder = builder.exchange(&format!("question {turn} of {number}"), "answer");
            append(&subject, builder.batch()).await;
        }
        session
    });
    for (number, session) in join_all(live).await.iter().enumerate() {
        let log = subject.log(session).await;
        assert!(log.iter().map(|event| event.seq).eq(1..=3 * TURNS as u64));
        let head = subject
            .store
            .read_head(session)
            .await
            .expect("the session opens");
        let questions: Vec<_> = head
            .exchanges
            .iter()
            .map(|exchange| exchange.question.to_string())
            .collect();
        let expected: Vec<_> = (0..TURNS)
            .map(|turn| format!("question {turn} of {number}"))
            .collect();
        assert_eq!(questions, expected);
    }
}

pub async fn a05_consecutive_messages_of_different_authors_are_never_merged(
    subject: StoreUnderTest,
) {
    let session = subject.session("s_1").await;
    let authors = ["operator", "librarian", "operator", "operator", "test-root"];
    let mut builder = LogBuilder::new(&session).ask("go");
    for author in authors {
        builder = builder.say(author, "", "the same text");
        append(&subject, builder.batch()).await;
    }
    let log = subject.log(&session).await;
    let read: Vec<_> = log.iter().map(|event| event.author.as_str()).collect();
    assert_eq!(
        read,
        [
            "user",
            "operator",
            "librarian",
            "operator",
            "operator",
            "test-root"
        ]
    );
}

/// A store does not know the agent tree: it accepts any author.
pub async fn a07_an_author_outside_the_tree_is_preserved(subject: StoreUnderTest) {
    let session = subject.session("s_1").await;
    append(
        &subject,
        LogBuilder::new(&session)
            .ask("go")
            .say("gone-agent", "", "done")
            .finish()
            .batch(),
    )
    .await;
    assert_eq!(subject.log(&session).await[1].author, "gone-agent");
    let exchanges = subject
        .store
        .read_head(&session)
        .await
        .expect("the session opens")
        .exchanges;
    assert_eq!(
        exchanges[0]
            .answer
            .as_ref()
            .map(|answer| answer.author.as_str()),
        Some("gone-agent")
    );
}

async fn append(subject: &StoreUnderTest, batch: EventBatch) {
    subject
        .store
        .append(batch)
        .await
        .expect("a batch can be appended");
}
