//! Cases about finding sessions by their folder, and messages by their text.

use super::{LogBuilder, StoreUnderTest};
use lango_core::{MessageHit, MessageHits, MessageQuery, SessionQuery, UserId};

/// Folders are compared exactly, whatever characters they contain. The user's own text about folders does not matter.
pub async fn sessions_are_found_by_the_folder_of_their_last_turn(subject: StoreUnderTest) {
    let folders = ["/w", "/w/deep", "/quo\"te\\and\ttab", "/größe/日本"];
    for (number, folder) in folders.iter().enumerate() {
        let session = subject.session(&format!("s_{number}")).await;
        let log = LogBuilder::new(&session).ask("hello").in_folder(folder);
        store(&subject, log).await;
    }
    let elsewhere = subject.session("s_moved").await;
    let moved = LogBuilder::new(&elsewhere)
        .ask("first")
        .in_folder("/w")
        .say("test-root", "", "yes")
        .finish()
        .ask(r#"x","topology":"d","folder":"/w","#)
        .in_folder("/else");
    store(&subject, moved).await;
    let without = subject.session("s_without").await;
    let log = LogBuilder::new(&without).ask(r#""topology":"d","folder":"/w""#);
    store(&subject, log).await;
    for (number, folder) in folders.iter().enumerate() {
        let found = in_folder(&subject, folder).await;
        let expected = (format!("s_{number}"), Some((*folder).to_owned()));
        assert_eq!(found, [expected]);
    }
    let found = in_folder(&subject, "/else").await;
    assert_eq!(found[0].0, "s_moved");
    assert!(in_folder(&subject, "/W").await.is_empty());
    let found = subject.catalog.find(&"local".into(), "s_without", 1).await;
    assert_eq!(found.expect("found")[0].folder, None);
}

/// A message is found by any part of its text, ignoring the case of ASCII letters; nothing in the text is syntax.
pub async fn messages_are_found_by_their_text(subject: StoreUnderTest) {
    let session = subject.session("s_1").await;
    let log = LogBuilder::new(&session)
        .exchange("Where is the KEY?", "in the\n\"drawer\" at 50%_off\\now")
        .ask("again, größer")
        .delegate("f_1", "operator", "find the key", false)
        .say("operator", "f_1", "a sub-agent found the needle")
        .say("test-root", "", "there")
        .finish();
    store(&subject, log).await;
    for (text, expected) in [
        ("the key", &[1][..]),
        ("e\n\"D", &[2]),
        ("50%_o", &[2]),
        ("0_o", &[]),
        ("f\\n", &[2]),
        ("größ", &[4]),
        ("IN THE", &[2]),
        ("nothing", &[]),
        // Parts of the stored JSON, and messages that are neither a question nor an answer.
        ("settings", &[]),
        ("user.message", &[]),
        ("needle", &[]),
    ] {
        let hits = search(&subject, "local", text, 10).await;
        let seqs: Vec<u64> = hits.iter().map(|hit| hit.seq).collect();
        assert_eq!(seqs, expected, "{text:?}");
    }
    let hits = search(&subject, "local", "drawer", 10).await;
    let [hit] = &hits[..] else { panic!("{hits:?}") };
    assert_eq!(hit.text, "in the\n\"drawer\" at 50%_off\\now");
    assert_eq!((hit.author.as_str(), hit.time.0), ("test-root", 1002));
    assert_eq!(hit.title, "Where is the KEY?");
}

/// The messages of the most recently used session come first.
pub async fn a_search_is_limited_to_recent_sessions_and_to_one_user(subject: StoreUnderTest) {
    for (user, id, turns) in [("ann", "s_1", 1), ("ann", "s_2", 2), ("bob", "s_3", 3)] {
        let session = subject.session_of(user, id).await;
        let turn = |log: LogBuilder, _| log.exchange("ping", "ping");
        let log = (0..turns).fold(LogBuilder::new(&session), turn);
        store(&subject, log).await;
    }
    let found = |hits: Vec<MessageHit>| {
        let hits = hits.into_iter();
        hits.map(|hit| (hit.session.to_string(), hit.seq))
            .collect::<Vec<_>>()
    };
    let expected = [("s_2", 5), ("s_2", 4), ("s_2", 2), ("s_2", 1)];
    let expected = expected.map(|(session, seq)| (session.to_owned(), seq));
    let recent = search_in(&subject, "ann", "ping", 1).await;
    assert!(recent.skipped_sessions);
    assert_eq!(found(recent.messages), expected);
    let all = search_in(&subject, "ann", "ping", 2).await;
    assert_eq!((all.messages.len(), all.skipped_sessions), (6, false));
    let query = MessageQuery {
        text: "ping".to_owned(),
        sessions: 2,
        limit: 3,
    };
    let limited = subject.catalog.search_messages(&"ann".into(), query).await;
    let limited = limited.expect("searched").messages;
    assert_eq!(found(limited), expected[..3]);
    assert!(search(&subject, "eve", "ping", 9).await.is_empty());
}

/// A line break is stored as `\\n`, whose letter is not part of the message.
pub async fn a_limited_search_finds_messages_behind_those_with_escapes(subject: StoreUnderTest) {
    let session = subject.session_of("local", "s_1").await;
    let broken = |log: LogBuilder, _| log.exchange("\n", "\n");
    let log = LogBuilder::new(&session).exchange("one", "two");
    store(&subject, (0..5).fold(log, broken)).await;
    let query = MessageQuery {
        text: "n".to_owned(),
        sessions: 1,
        limit: 2,
    };
    let found = subject.catalog.search_messages(&"local".into(), query);
    let found = found.await.expect("searched").messages;
    let seqs: Vec<u64> = found.iter().map(|hit| hit.seq).collect();
    assert_eq!(seqs, [1]);
}

async fn in_folder(subject: &StoreUnderTest, folder: &str) -> Vec<(String, Option<String>)> {
    let query = SessionQuery {
        folder: Some(folder.to_owned()),
        ..SessionQuery::recent(10)
    };
    let listed = subject.catalog.list(&UserId::from("local"), query).await;
    let listed = listed.expect("sessions can be listed").into_iter();
    listed
        .map(|session| (session.id.to_string(), session.folder))
        .collect()
}

async fn search(
    subject: &StoreUnderTest,
    user: &str,
    text: &str,
    sessions: usize,
) -> Vec<MessageHit> {
    search_in(subject, user, text, sessions).await.messages
}

async fn search_in(
    subject: &StoreUnderTest,
    user: &str,
    text: &str,
    sessions: usize,
) -> MessageHits {
    let query = MessageQuery {
        text: text.to_owned(),
        sessions,
        limit: 100,
    };
    let found = subject.catalog.search_messages(&UserId::from(user), query);
    found.await.expect("messages can be searched")
}

async fn store(subject: &StoreUnderTest, mut log: LogBuilder) {
    let stored = subject.store.append(log.batch()).await;
    stored.expect("events can be stored");
}
