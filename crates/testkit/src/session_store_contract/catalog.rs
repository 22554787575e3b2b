//! Cases about the list of sessions: order, limits, titles, and isolation between users.

use super::{LogBuilder, StoreUnderTest};
use lango_core::{
    Outcome, SessionId, SessionQuery, SessionStatus, SessionSummary, Timestamp, UsageQuery, UserId,
};

/// Sessions are ordered by the time of their last event, latest first, and then by id.
pub async fn the_most_recently_used_session_is_listed_first(subject: StoreUnderTest) {
    let mut builders = Vec::new();
    for id in ["s_b", "s_a", "s_c"] {
        builders.push(LogBuilder::new(&subject.session(id).await));
    }
    assert_eq!(
        ids(&list(&subject, "local", 10).await),
        ["s_a", "s_b", "s_c"]
    );
    let [b, a, c] = builders.try_into().expect("three sessions");
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

pub async fn a_list_respects_its_limit(subject: StoreUnderTest) {
    for number in 0..5 {
        subject.session(&format!("s_{number}")).await;
    }
    assert_eq!(list(&subject, "local", 3).await.len(), 3);
    assert_eq!(list(&subject, "local", 0).await.len(), 0);
    assert_eq!(list(&subject, "local", usize::MAX).await.len(), 5);
    assert_eq!(ids(&find(&subject, "local", "s_", 2).await), ["s_0", "s_1"]);
}

/// Neither the list nor a search by id returns the sessions of another user.
pub async fn a_user_does_not_see_the_sessions_of_another(subject: StoreUnderTest) {
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

/// Matches are ordered by id; no character of the prefix is a wildcard.
pub async fn a_session_is_found_by_a_prefix_of_its_id(subject: StoreUnderTest) {
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

/// The title is the first line of the first message, cut to 80 characters; later messages do not change it.
pub async fn a_session_is_titled_by_its_first_message(subject: StoreUnderTest) {
    let titled = subject.session("s_1").await;
    assert_eq!(title(&subject, &titled).await, "");
    store(
        &subject,
        LogBuilder::new(&titled)
            .exchange("list the files\nand count them", "3")
            .exchange("more", "4"),
    )
    .await;
    assert_eq!(title(&subject, &titled).await, "list the files");
    let long = subject.session("s_2").await;
    store(&subject, LogBuilder::new(&long).ask(&"ü".repeat(81))).await;
    assert_eq!(title(&subject, &long).await, "ü".repeat(80));
}

fn ids(sessions: &[SessionSummary]) -> Vec<&str> {
    sessions.iter().map(|session| session.id.as_str()).collect()
}

async fn list(subject: &StoreUnderTest, user: &str, limit: usize) -> Vec<SessionSummary> {
    subject
        .catalog
        .list(&UserId::from(user), SessionQuery::recent(limit))
        .await
        .expect("sessions can be listed")
}

async fn find(
    subject: &StoreUnderTest,
    user: &str,
    prefix: &str,
    limit: usize,
) -> Vec<SessionSummary> {
    subject
        .catalog
        .find(&UserId::from(user), prefix, limit)
        .await
        .expect("sessions can be found")
}

async fn title(subject: &StoreUnderTest, session: &SessionId) -> String {
    let found = find(subject, "local", session.as_str(), 1).await;
    found.first().expect("the session exists").title.clone()
}

async fn store(subject: &StoreUnderTest, mut builder: LogBuilder) {
    subject
        .store
        .append(builder.batch())
        .await
        .expect("a batch can be appended");
}

/// Each page continues where the previous one ended, even between sessions with the same time, and no session is
/// repeated.
pub async fn sessions_are_listed_in_pages(subject: StoreUnderTest) {
    for number in 0..7 {
        let session = subject.session(&format!("s_{number}")).await;
        if number % 2 == 0 {
            store(&subject, LogBuilder::new(&session).exchange("hello", "hi")).await;
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

/// The status of a session is that of its last turn. The list can be filtered by status and by text.
pub async fn sessions_are_found_by_status_and_text(subject: StoreUnderTest) {
    let running = subject.session("s_running").await;
    store(&subject, LogBuilder::new(&running).ask("Count THE files")).await;
    let waiting = subject.session("s_waiting").await;
    let asking = LogBuilder::new(&waiting).ask("run it").request("a_1", None);
    store(&subject, asking).await;
    let answered = subject.session("s_idle").await;
    store(
        &subject,
        LogBuilder::new(&answered).exchange("hello 50%", "hi"),
    )
    .await;
    let failed = subject.session("s_failed").await;
    let outcome = Outcome::Failed {
        error: "no model".into(),
        setup: false,
        fault: None,
    };
    store(&subject, LogBuilder::new(&failed).ask("hello").end(outcome)).await;
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

/// A title that the user chose is kept. Users can rename only their own sessions.
pub async fn a_session_can_be_renamed_by_its_user(subject: StoreUnderTest) {
    let session = subject.session("s_1").await;
    let mut builder = LogBuilder::new(&session).exchange("hello", "hi");
    subject.store.append(builder.batch()).await.expect("stored");
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
    store(&subject, builder.exchange("again", "hi again")).await;
    assert_eq!(title(&subject, &session).await, "Greetings");
}

/// A call without a price makes the cost of its row unknown.
pub async fn usage_is_summed_by_day_agent_and_model(subject: StoreUnderTest) {
    let session = subject.session("s_1").await;
    let builder = LogBuilder::new(&session)
        .ask("hello")
        .spend("root", "m/1", (10, 4, 2), Some(5))
        .spend("operator", "m/1", (100, 0, 20), Some(50))
        .spend("operator", "m/1", (1, 0, 1), None)
        .spend("operator", "m/2", (7, 0, 7), Some(7));
    store(&subject, builder).await;
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

async fn search(subject: &StoreUnderTest, query: SessionQuery) -> Vec<SessionSummary> {
    let listed = subject.catalog.list(&UserId::from("local"), query);
    listed.await.expect("sessions can be listed")
}
