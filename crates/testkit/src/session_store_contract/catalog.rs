//! Cases about the list of sessions: order, limits, titles, and that it ends at the user.

use super::{Sketch, Subject};
use lango_core::{SessionId, SessionSummary, Timestamp, UserId};

/// The order is that of the last event, and of the ids where two are equal.
pub async fn the_session_used_last_is_listed_first(subject: Subject) {
    let mut sketches = Vec::new();
    for id in ["s_b", "s_a", "s_c"] {
        sketches.push(Sketch::of(&subject.session(id).await));
    }
    assert_eq!(
        ids(&list(&subject, "local", 10).await),
        ["s_a", "s_b", "s_c"]
    );
    let [b, a, c] = sketches.try_into().expect("three sessions");
    store(&subject, c.exchange("one", "1").exchange("two", "2")).await;
    store(&subject, b.ask("one")).await;
    store(&subject, a.exchange("one", "1")).await;
    let sessions = list(&subject, "local", 10).await;
    assert_eq!(ids(&sessions), ["s_c", "s_a", "s_b"]);
    let seen: Vec<_> = sessions
        .iter()
        .map(|session| (session.created, session.updated, session.turns))
        .collect();
    let expected = [(1006, 2), (1003, 1), (1001, 1)];
    assert_eq!(
        seen,
        expected.map(|(updated, turns)| (Timestamp(1000), Timestamp(updated), turns))
    );
}

/// A limit is a limit.
pub async fn a_list_is_no_longer_than_asked(subject: Subject) {
    for number in 0..5 {
        subject.session(&format!("s_{number}")).await;
    }
    assert_eq!(list(&subject, "local", 3).await.len(), 3);
    assert_eq!(list(&subject, "local", 0).await.len(), 0);
    assert_eq!(list(&subject, "local", usize::MAX).await.len(), 5);
    assert_eq!(ids(&find(&subject, "local", "s_", 2).await), ["s_0", "s_1"]);
}

/// Neither the list nor a search crosses from one user to another.
pub async fn a_user_sees_no_session_of_another(subject: Subject) {
    subject.session_of("ann", "s_1").await;
    subject.session_of("bob", "s_2").await;
    subject.session_of("ann", "s_3").await;
    assert_eq!(ids(&list(&subject, "ann", 10).await), ["s_1", "s_3"]);
    assert_eq!(ids(&list(&subject, "bob", 10).await), ["s_2"]);
    assert_eq!(ids(&find(&subject, "bob", "s_", 10).await), ["s_2"]);
    assert!(find(&subject, "bob", "s_1", 10).await.is_empty());
    assert!(list(&subject, "an", 10).await.is_empty());
    assert!(list(&subject, "", 10).await.is_empty());
}

/// In the order of the ids; no character of a prefix has a second meaning.
pub async fn a_session_is_found_by_the_beginning_of_its_id(subject: Subject) {
    for id in ["s_ab", "s_a", "s_abc", "s_b", "sxa", "S_a", "s_aß", "s_%"] {
        subject.session(id).await;
    }
    for (prefix, expected) in [
        ("s_a", &["s_a", "s_ab", "s_abc", "s_aß"][..]),
        ("s_ab", &["s_ab", "s_abc"]),
        ("s_abc", &["s_abc"]),
        ("s_abcd", &[]),
        ("s_%", &["s_%"]),
        (
            "",
            &["S_a", "s_%", "s_a", "s_ab", "s_abc", "s_aß", "s_b", "sxa"],
        ),
    ] {
        assert_eq!(
            ids(&find(&subject, "local", prefix, 100).await),
            expected,
            "`{prefix}`"
        );
    }
}

/// The title is the first line of the first message, not too long, and stays.
pub async fn a_session_is_called_by_the_first_thing_that_was_said(subject: Subject) {
    let titled = subject.session("s_1").await;
    assert_eq!(title(&subject, &titled).await, "");
    store(
        &subject,
        Sketch::of(&titled)
            .exchange("list the files\nand count them", "3")
            .exchange("more", "4"),
    )
    .await;
    assert_eq!(title(&subject, &titled).await, "list the files");
    let long = subject.session("s_2").await;
    store(&subject, Sketch::of(&long).ask(&"ü".repeat(81))).await;
    assert_eq!(title(&subject, &long).await, "ü".repeat(80));
}

fn ids(sessions: &[SessionSummary]) -> Vec<&str> {
    sessions.iter().map(|session| session.id.as_str()).collect()
}

async fn list(subject: &Subject, user: &str, limit: usize) -> Vec<SessionSummary> {
    subject
        .catalog
        .list(&UserId::from(user), limit)
        .await
        .expect("sessions can be listed")
}

async fn find(subject: &Subject, user: &str, prefix: &str, limit: usize) -> Vec<SessionSummary> {
    subject
        .catalog
        .find(&UserId::from(user), prefix, limit)
        .await
        .expect("sessions can be found")
}

async fn title(subject: &Subject, session: &SessionId) -> String {
    let found = find(subject, "local", session.as_str(), 1).await;
    found.first().expect("the session is there").title.clone()
}

async fn store(subject: &Subject, mut sketch: Sketch) {
    subject
        .store
        .append(sketch.batch())
        .await
        .expect("a batch can be appended");
}
