//! Cases about the list of sessions: order, limits, titles, and that it ends at the user.

use super::{Sketch, Subject};
use lango_core::{
    Outcome, SessionId, SessionQuery, SessionStatus, SessionSummary, Timestamp, UsageQuery, UserId,
};

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
        .list(&UserId::from(user), SessionQuery::recent(limit))
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

/// Pages continue where the last one ended, also among sessions of one time; a page never repeats a session.
pub async fn sessions_are_listed_page_by_page(subject: Subject) {
    for number in 0..7 {
        let session = subject.session(&format!("s_{number}")).await;
        if number % 2 == 0 {
            store(&subject, Sketch::of(&session).exchange("hello", "hi")).await;
        }
    }
    let all = list(&subject, "local", 10).await;
    let mut paged = Vec::new();
    let mut after = None;
    loop {
        let query = SessionQuery {
            after: after.clone(),
            limit: 2,
            ..SessionQuery::default()
        };
        let page = search(&subject, query).await;
        let Some(last) = page.last() else { break };
        after = Some((last.updated, last.id.clone()));
        paged.extend(page);
    }
    assert_eq!(paged, all);
}

/// The status follows the last turn, and the list can be limited to one of them, or to a text.
pub async fn sessions_are_found_by_status_and_text(subject: Subject) {
    let running = subject.session("s_running").await;
    store(&subject, Sketch::of(&running).ask("Count THE files")).await;
    let waiting = subject.session("s_waiting").await;
    let asking = Sketch::of(&waiting).ask("run it").request("a_1", None);
    store(&subject, asking).await;
    let answered = subject.session("s_idle").await;
    store(&subject, Sketch::of(&answered).exchange("hello 50%", "hi")).await;
    let failed = subject.session("s_failed").await;
    let outcome = Outcome::Failed {
        error: "no model".into(),
        setup: false,
    };
    store(&subject, Sketch::of(&failed).ask("hello").end(outcome)).await;
    subject.session("s_new").await;
    for (status, expected) in [
        (SessionStatus::Running, &["s_running"][..]),
        (SessionStatus::Waiting, &["s_waiting"]),
        (SessionStatus::Failed, &["s_failed"]),
        (SessionStatus::Idle, &["s_idle", "s_new"]),
    ] {
        let found = search(
            &subject,
            SessionQuery {
                status: Some(status),
                ..any()
            },
        )
        .await;
        assert_eq!(ids(&found), expected);
        assert!(found.iter().all(|found| found.status == status));
    }
    for (text, expected) in [
        ("count the", &["s_running"][..]),
        ("50%", &["s_idle"]),
        ("%", &["s_idle"]),
        ("s_new", &["s_new"]),
        ("nothing like it", &[]),
    ] {
        let text = Some(text.to_owned());
        let found = search(
            &subject,
            SessionQuery {
                search: text,
                ..any()
            },
        )
        .await;
        assert_eq!(ids(&found), expected);
    }
    let found = find(&subject, "local", "s_running", 1).await;
    assert_eq!(
        (found[0].events, found[0].origin.as_deref()),
        (1, Some("person"))
    );
}

/// A title that the user chose stays, and only the user's own sessions can be renamed.
pub async fn a_session_can_be_renamed_by_its_user(subject: Subject) {
    let session = subject.session("s_1").await;
    let mut sketch = Sketch::of(&session).exchange("hello", "hi");
    subject.store.append(sketch.batch()).await.expect("stored");
    let rename = |user: &str, title: &str| {
        let (catalog, user, title) = (
            subject.catalog.clone(),
            UserId::from(user),
            title.to_owned(),
        );
        let session = session.clone();
        async move { catalog.rename(&user, &session, &title).await }
    };
    assert!(rename("bob", "mine").await.is_err());
    rename("local", "Greetings").await.expect("renamed");
    store(&subject, sketch.exchange("again", "hi again")).await;
    assert_eq!(title(&subject, &session).await, "Greetings");
}

/// Usage is summed by day, agent and model; a call without a price makes the cost unknown.
pub async fn usage_is_summed_by_day_agent_and_model(subject: Subject) {
    let session = subject.session("s_1").await;
    let sketch = Sketch::of(&session)
        .ask("hello")
        .spend("root", "m/1", (10, 4, 2), Some(5))
        .spend("operator", "m/1", (100, 0, 20), Some(50))
        .spend("operator", "m/1", (1, 0, 1), None)
        .spend("operator", "m/2", (7, 0, 7), Some(7));
    store(&subject, sketch).await;
    let usage = |user: &str, since| {
        let (catalog, user) = (subject.catalog.clone(), UserId::from(user));
        let since = Timestamp(since);
        let query = UsageQuery {
            user,
            since,
            limit: 10,
        };
        async move { catalog.usage(query).await.expect("summed") }
    };
    let rows = usage("local", 0).await;
    let seen: Vec<_> = rows
        .iter()
        .map(|row| {
            let tokens = (row.input_tokens, row.cached_tokens, row.output_tokens);
            (
                row.agent.as_str(),
                &*row.model,
                row.calls,
                tokens,
                row.cost_micros,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("operator", "m/1", 2, (101, 0, 21), None),
            ("operator", "m/2", 1, (7, 0, 7), Some(7)),
            ("root", "m/1", 1, (10, 4, 2), Some(5)),
        ]
    );
    assert!(rows.iter().all(|row| row.day == 0));
    assert!(usage("bob", 0).await.is_empty());
    assert!(usage("local", 1_000_000).await.is_empty());
}

fn any() -> SessionQuery {
    SessionQuery::recent(10)
}

async fn search(subject: &Subject, query: SessionQuery) -> Vec<SessionSummary> {
    let listed = subject.catalog.list(&UserId::from("local"), query);
    listed.await.expect("sessions can be listed")
}
