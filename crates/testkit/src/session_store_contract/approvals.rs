//! Cases about approval requests that wait for the user, and about grants.

use super::{LogBuilder, StoreUnderTest};
use lango_core::{
    ApprovalAnswer, ApprovalId, Approvals, Grant, SessionId, StoreError, Timestamp, UserId,
};

/// Any answer ends the wait; an answer for a single call leaves no grant.
pub async fn a_request_waits_until_it_is_answered(subject: StoreUnderTest) {
    let session = subject.session("s_1").await;
    let mut builder = LogBuilder::new(&session).ask("write").request("p_1", None);
    builder = builder.request("p_2", Some("a/*".into()));
    store(&subject, &mut builder).await;
    let waiting = approvals(&subject, "local").await.waiting;
    let seen: Vec<_> = waiting
        .iter()
        .map(|waiting| {
            (
                waiting.request.id.as_str(),
                waiting.asked,
                waiting.turn.as_str(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("p_1", Timestamp(1002), "t_1"),
            ("p_2", Timestamp(1003), "t_1")
        ]
    );
    assert_eq!(waiting[1].request.pattern.as_deref(), Some("a/*"));
    assert_eq!(waiting[0].session, session);
    let mut builder = builder
        .answer("p_1", ApprovalAnswer::Once)
        .answer("p_2", ApprovalAnswer::No { reason: None });
    store(&subject, &mut builder).await;
    assert_eq!(approvals(&subject, "local").await, Approvals::default());
}

/// A grant for a session applies to that session only; a grant for a folder to every session that works in the folder.
pub async fn a_grant_applies_to_its_session_or_its_folder(subject: StoreUnderTest) {
    let (one, other) = (subject.session("s_1").await, subject.session("s_2").await);
    let mut builder = LogBuilder::new(&one)
        .ask("write")
        .request("p_1", None)
        .request("p_2", None)
        .answer("p_1", in_session("a/*"))
        .answer("p_2", in_folder("b/*", "/work"));
    store(&subject, &mut builder).await;
    let granted = grants(&subject, &one, "/work").await;
    assert_eq!(ids(&granted), ["p_1", "p_2"]);
    assert_eq!((&*granted[0].pattern, &granted[0].folder), ("a/*", &None));
    assert_eq!(granted[1].folder.as_deref(), Some("/work"));
    assert_eq!(granted[1].given, Timestamp(1005));
    assert_eq!(
        (granted[1].agent.as_str(), granted[1].tool.as_str()),
        ("operator", "fs_write")
    );
    assert_eq!(ids(&grants(&subject, &one, "/else").await), ["p_1"]);
    assert_eq!(ids(&grants(&subject, &other, "/work").await), ["p_2"]);
    assert!(grants(&subject, &other, "/else").await.is_empty());
    let all = approvals(&subject, "local").await;
    assert_eq!(
        (ids(&all.granted), all.waiting.len()),
        (vec!["p_1", "p_2"], 0)
    );
}

/// A grant can be revoked once; a request that is still waiting cannot be revoked.
pub async fn a_revoked_grant_no_longer_applies(subject: StoreUnderTest) {
    let session = subject.session("s_1").await;
    let mut builder = LogBuilder::new(&session)
        .ask("write")
        .request("p_1", None)
        .request("p_2", None)
        .answer("p_1", in_session("a/*"));
    store(&subject, &mut builder).await;
    revoke(&subject, "local", "p_1")
        .await
        .expect("it was granted");
    assert!(grants(&subject, &session, "/work").await.is_empty());
    for id in ["p_1", "p_2", "p_9"] {
        let error = revoke(&subject, "local", id).await.expect_err(id);
        assert!(matches!(error, StoreError::NotGranted { .. }), "{error}");
    }
    assert_eq!(
        approvals(&subject, "local").await.waiting.len(),
        1,
        "it still waits"
    );
}

/// Grants are limited to the user, even grants for a shared folder.
pub async fn a_user_neither_sees_nor_uses_the_approvals_of_another(subject: StoreUnderTest) {
    let ann = subject.session_of("ann", "s_1").await;
    let bob = subject.session_of("bob", "s_2").await;
    let mut builder = LogBuilder::new(&ann)
        .ask("write")
        .request("p_1", None)
        .request("p_2", None)
        .answer("p_1", in_folder("*", "/work"));
    store(&subject, &mut builder).await;
    assert!(grants(&subject, &bob, "/work").await.is_empty());
    assert_eq!(approvals(&subject, "bob").await, Approvals::default());
    assert!(revoke(&subject, "bob", "p_1").await.is_err());
    assert_eq!(ids(&grants(&subject, &ann, "/work").await), ["p_1"]);
}

fn in_session(pattern: &str) -> ApprovalAnswer {
    ApprovalAnswer::Session {
        pattern: pattern.into(),
    }
}

fn in_folder(pattern: &str, folder: &str) -> ApprovalAnswer {
    ApprovalAnswer::Always {
        pattern: pattern.into(),
        folder: folder.into(),
    }
}

fn ids(grants: &[Grant]) -> Vec<&str> {
    grants.iter().map(|grant| grant.id.as_str()).collect()
}

async fn grants(subject: &StoreUnderTest, session: &SessionId, folder: &str) -> Vec<Grant> {
    let grants = subject.store.grants(session, folder).await;
    grants.expect("grants can be read")
}

async fn approvals(subject: &StoreUnderTest, user: &str) -> Approvals {
    let user = UserId::from(user);
    let approvals = subject.catalog.approvals(&user).await;
    approvals.expect("approvals can be read")
}

async fn revoke(subject: &StoreUnderTest, user: &str, id: &str) -> Result<(), StoreError> {
    let (user, id) = (UserId::from(user), ApprovalId::from(id));
    subject.catalog.revoke(&user, &id).await
}

async fn store(subject: &StoreUnderTest, builder: &mut LogBuilder) {
    let stored = subject.store.append(builder.batch()).await;
    stored.expect("a batch can be appended");
}
