//! Cases about what waits for a person and what they granted.

use super::{Sketch, Subject};
use lango_core::{Answer, ApprovalId, Approvals, Grant, SessionId, StoreError, Timestamp, UserId};

/// Whatever the answer, it waits no longer; an answer for one call alone leaves nothing behind.
pub async fn a_request_waits_until_it_is_answered(subject: Subject) {
    let session = subject.session("s_1").await;
    let mut sketch = Sketch::of(&session).ask("write").request("p_1", None);
    sketch = sketch.request("p_2", Some("a/*".into()));
    store(&subject, &mut sketch).await;
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
    let mut sketch = sketch
        .answer("p_1", Answer::Once)
        .answer("p_2", Answer::No { reason: None });
    store(&subject, &mut sketch).await;
    assert_eq!(approvals(&subject, "local").await, Approvals::default());
}

/// One of the session holds there alone, one for a folder in every session that works there.
pub async fn an_answer_for_longer_holds_in_its_session_or_its_folder(subject: Subject) {
    let (one, other) = (subject.session("s_1").await, subject.session("s_2").await);
    let mut sketch = Sketch::of(&one)
        .ask("write")
        .request("p_1", None)
        .request("p_2", None)
        .answer("p_1", in_session("a/*"))
        .answer("p_2", in_folder("b/*", "/work"));
    store(&subject, &mut sketch).await;
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

/// Once, and only what was granted.
pub async fn a_grant_that_is_taken_back_holds_no_more(subject: Subject) {
    let session = subject.session("s_1").await;
    let mut sketch = Sketch::of(&session)
        .ask("write")
        .request("p_1", None)
        .request("p_2", None)
        .answer("p_1", in_session("a/*"));
    store(&subject, &mut sketch).await;
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

/// Approvals end at the user, folders included.
pub async fn nobody_sees_or_uses_the_approvals_of_another(subject: Subject) {
    let ann = subject.session_of("ann", "s_1").await;
    let bob = subject.session_of("bob", "s_2").await;
    let mut sketch = Sketch::of(&ann)
        .ask("write")
        .request("p_1", None)
        .request("p_2", None)
        .answer("p_1", in_folder("*", "/work"));
    store(&subject, &mut sketch).await;
    assert!(grants(&subject, &bob, "/work").await.is_empty());
    assert_eq!(approvals(&subject, "bob").await, Approvals::default());
    assert!(revoke(&subject, "bob", "p_1").await.is_err());
    assert_eq!(ids(&grants(&subject, &ann, "/work").await), ["p_1"]);
}

fn in_session(pattern: &str) -> Answer {
    Answer::Session {
        pattern: pattern.into(),
    }
}

fn in_folder(pattern: &str, folder: &str) -> Answer {
    Answer::Always {
        pattern: pattern.into(),
        folder: folder.into(),
    }
}

fn ids(grants: &[Grant]) -> Vec<&str> {
    grants.iter().map(|grant| grant.id.as_str()).collect()
}

async fn grants(subject: &Subject, session: &SessionId, folder: &str) -> Vec<Grant> {
    let grants = subject.store.grants(session, folder).await;
    grants.expect("grants can be read")
}

async fn approvals(subject: &Subject, user: &str) -> Approvals {
    let user = UserId::from(user);
    let approvals = subject.catalog.approvals(&user).await;
    approvals.expect("approvals can be read")
}

async fn revoke(subject: &Subject, user: &str, id: &str) -> Result<(), StoreError> {
    let (user, id) = (UserId::from(user), ApprovalId::from(id));
    subject.catalog.revoke(&user, &id).await
}

async fn store(subject: &Subject, sketch: &mut Sketch) {
    let stored = subject.store.append(sketch.batch()).await;
    stored.expect("a batch can be appended");
}
