//! Cases about sessions and their logs: what goes in comes out, whole, once and in order.

use super::{Sketch, Subject, every_kind_of_event};
use futures_util::future::join_all;
use lango_core::{Batch, EventBody, NewSession, Page, SessionId, StoreError, Timestamp, UserId};
use std::collections::HashSet;

/// A session that was just made has nothing in it.
pub async fn a_new_session_is_empty(subject: Subject) {
    let session = subject.session("s_1").await;
    let head = subject.store.open(&session).await.expect("it opens");
    assert_eq!(
        (head.user, head.next_seq, head.turns),
        (UserId::from("local"), 1, 0)
    );
    assert_eq!((head.exchanges, head.unfinished), (vec![], None));
    assert_eq!(subject.log(&session).await, []);
}

/// An id that is taken is refused, whoever asks, and what is there stays.
pub async fn a_session_id_can_be_taken_once(subject: Subject) {
    let id = subject.session("s_1").await;
    append(
        &subject,
        Sketch::of(&id).exchange("hello", "hello yourself").batch(),
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
        subject.store.open(&id).await.expect("it opens").user,
        "local"
    );
}

/// Control characters mark what nobody is to see, and a name that is none or has no end is nobody's.
pub async fn a_user_whose_name_hides_sessions_gets_none(subject: Subject) {
    let endless = "x".repeat(5000);
    for name in ["", "  ", "\u{1}local", "a\nb", endless.as_str()] {
        let session = NewSession {
            id: SessionId::from("s_1"),
            user: UserId::from(name),
            created: Timestamp(5),
        };
        let made = subject.store.create(session).await;
        assert!(made.is_err(), "{name:?}");
    }
    subject.session_of("Jane Doe", "s_1").await;
}

/// A session that nobody made can be neither opened, read nor continued.
pub async fn a_session_that_is_not_there_is_not_found(subject: Subject) {
    subject.session("s_10").await;
    let id = SessionId::from("s_1");
    let page = Page { from: 1, limit: 10 };
    let errors = [
        subject.store.open(&id).await.err(),
        subject.store.read(&id, page).await.err(),
        subject
            .store
            .append(Sketch::of(&id).ask("hello").batch())
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

/// One event of every kind, with all its fields.
pub async fn every_kind_of_event_reads_back_as_it_was_written(subject: Subject) {
    let session = subject.session("s_1").await;
    let written = every_kind_of_event(&session);
    let kinds: HashSet<_> = written.iter().map(|event| event.body.kind()).collect();
    assert_eq!(kinds.len(), 13, "a kind of event is missing in the sample");
    append(&subject, written.clone()).await;
    let read = subject.log(&session).await;
    for (read, written) in read.iter().zip(written.iter()) {
        assert_eq!(read, written);
    }
    assert_eq!(read.len(), written.len());
}

/// Empty, long, and with characters that formats like to trip over.
pub async fn words_of_any_kind_and_length_read_back_as_they_were_written(subject: Subject) {
    let session = subject.session("s_1").await;
    let long = "ä".repeat(1 << 20);
    let words = [
        "",
        " ",
        "\0",
        "'; DROP TABLE events; --",
        "\u{202e}\u{feff}😀\r\n\t",
        "\u{10ffff}",
        long.as_str(),
    ];
    let mut sketch = words.iter().fold(Sketch::of(&session), |sketch, text| {
        sketch.exchange(text, text)
    });
    append(&subject, sketch.batch()).await;
    let exchanges = subject
        .store
        .open(&session)
        .await
        .expect("it opens")
        .exchanges;
    assert_eq!(exchanges.len(), words.len());
    for (exchange, text) in exchanges.iter().zip(words) {
        assert_eq!(&*exchange.question, text);
        assert_eq!(
            exchange.answer.as_ref().map(|answer| &*answer.text),
            Some(text)
        );
    }
    for (event, text) in subject.log(&session).await.iter().step_by(3).zip(words) {
        assert!(
            matches!(&event.body, EventBody::UserMessage { text: read, .. } if **read == *text)
        );
    }
}

/// The first event and the number of them are the reader's choice.
pub async fn a_page_begins_and_ends_where_it_is_told(subject: Subject) {
    let session = subject.session("s_1").await;
    append(
        &subject,
        Sketch::of(&session)
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
        let page = Page { from, limit };
        let events = subject.store.read(&session, page).await.expect("it reads");
        let read: Vec<_> = events.iter().map(|event| event.seq).collect();
        assert_eq!(read, expected, "from {from}, at most {limit}");
    }
}

/// Neither a gap nor a second event of the same number can come to be.
pub async fn an_append_anywhere_but_at_the_end_is_a_conflict(subject: Subject) {
    let session = subject.session("s_1").await;
    append(&subject, Sketch::of(&session).exchange("one", "1").batch()).await;
    let before = subject.log(&session).await;
    for seq in [0, 1, 2, 3, 5, 6, 1000, u64::MAX / 4] {
        let error = subject
            .store
            .append(Sketch::of(&session).at(seq).ask("two").batch())
            .await
            .err();
        assert!(
            matches!(&error, Some(StoreError::Conflict { id }) if *id == "s_1"),
            "at {seq}: {error:?}"
        );
    }
    assert_eq!(subject.log(&session).await, before);
    append(&subject, Sketch::of(&session).at(4).ask("two").batch()).await;
    assert_eq!(subject.log(&session).await.len(), 4);
}

/// A batch with something wrong in the middle leaves nothing behind, and the session can go on.
pub async fn a_batch_is_stored_whole_or_not_at_all(subject: Subject) {
    let session = subject.session("s_1").await;
    let other = subject.session("s_2").await;
    let gap = Sketch::of(&session)
        .ask("one")
        .at(3)
        .say("root", "", "1")
        .batch();
    let repeated = Sketch::of(&session)
        .ask("one")
        .at(1)
        .say("root", "", "1")
        .batch();
    let stray = Sketch::of(&other).at(2).say("root", "", "1").batch();
    let mixed: Batch = Sketch::of(&session)
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
    let head = subject.store.open(&session).await.expect("it opens");
    assert_eq!((head.next_seq, head.turns, head.unfinished), (1, 0, None));
    assert!(subject.log(&session).await.is_empty() && subject.log(&other).await.is_empty());
    append(&subject, Sketch::of(&session).exchange("one", "1").batch()).await;
}

/// Storing nothing succeeds.
pub async fn an_empty_batch_changes_nothing(subject: Subject) {
    let session = subject.session("s_1").await;
    append(&subject, Batch::from([])).await;
    assert_eq!(
        subject
            .store
            .open(&session)
            .await
            .expect("it opens")
            .next_seq,
        1
    );
}

/// Two who read the same end of a log cannot both write behind it.
pub async fn of_two_appends_to_the_same_place_one_wins(subject: Subject) {
    let session = subject.session("s_1").await;
    let batches = ["left", "right"].map(|text| Sketch::of(&session).ask(text).batch());
    let results = join_all(batches.map(|batch| subject.store.append(batch))).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    let conflicts = results
        .iter()
        .filter(|result| matches!(result, Err(StoreError::Conflict { .. })));
    assert_eq!(conflicts.count(), 1);
    assert_eq!(subject.log(&session).await.len(), 1);
}

/// Many sessions at once, each with its own log in its own order.
pub async fn appends_to_fifty_sessions_at_once_all_arrive(subject: Subject) {
    const TURNS: usize = 8;
    let live = (0..50).map(async |number| {
        let session = subject.session(&format!("s_{number}")).await;
        let mut sketch = Sketch::of(&session);
        for turn in 0..TURNS {
            sketch = sketch.exchange(&format!("question {turn} of {number}"), "answer");
            append(&subject, sketch.batch()).await;
        }
        session
    });
    for (number, session) in join_all(live).await.iter().enumerate() {
        let log = subject.log(session).await;
        assert!(log.iter().map(|event| event.seq).eq(1..=3 * TURNS as u64));
        let head = subject.store.open(session).await.expect("it opens");
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

/// Two agents that speak one after the other stay two messages.
pub async fn a05_consecutive_messages_of_different_authors_are_never_merged(subject: Subject) {
    let session = subject.session("s_1").await;
    let authors = [
        "operator",
        "librarian",
        "operator",
        "operator",
        "sketch-root",
    ];
    let mut sketch = Sketch::of(&session).ask("go");
    for author in authors {
        sketch = sketch.say(author, "", "the same words");
        append(&subject, sketch.batch()).await;
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
            "sketch-root"
        ]
    );
}

/// A store knows no tree: whoever said it, said it.
pub async fn a07_an_author_that_is_in_no_tree_is_kept(subject: Subject) {
    let session = subject.session("s_1").await;
    append(
        &subject,
        Sketch::of(&session)
            .ask("go")
            .say("gone-agent", "", "done")
            .finish()
            .batch(),
    )
    .await;
    assert_eq!(subject.log(&session).await[1].author, "gone-agent");
    let exchanges = subject
        .store
        .open(&session)
        .await
        .expect("it opens")
        .exchanges;
    assert_eq!(
        exchanges[0]
            .answer
            .as_ref()
            .map(|answer| answer.author.as_str()),
        Some("gone-agent")
    );
}

async fn append(subject: &Subject, batch: Batch) {
    subject
        .store
        .append(batch)
        .await
        .expect("a batch can be appended");
}
