//! Forks of sessions, the same over every database.

use crate::archive::{postgresql, session, sqlite};
use lango_core::{
    NewSession, SessionCatalog, SessionId, SessionQuery, SessionStore, Timestamp, TurnId, UserId,
};
use lango_store::Store;
use lango_store::archive::Fork;
use lango_testkit::session_store_contract::Sketch;
use std::sync::Arc;

macro_rules! over_every_database {
    ($($name:ident),+ $(,)?) => {
        mod on_sqlite {
            $(#[tokio::test] async fn $name() {
                let folder = tempfile::tempdir().unwrap();
                super::$name(&super::sqlite(&folder, "lango.db")).await;
            })+
        }
        mod on_postgresql {
            $(#[tokio::test] async fn $name() {
                super::$name(&super::postgresql()).await;
            })+
        }
    };
}

over_every_database!(
    a_fork_has_the_log_up_to_its_turn_and_a_chain_of_its_own,
    a_turn_that_runs_is_not_forked,
);

fn fork(source: &SessionId, turn: &str) -> Fork {
    Fork {
        session: NewSession {
            id: SessionId::from("s_fork"),
            user: UserId::from("local"),
            created: Timestamp(9000),
        },
        title: "the fork".to_owned(),
        source: source.clone(),
        turn: TurnId::from(turn),
    }
}

async fn a_fork_has_the_log_up_to_its_turn_and_a_chain_of_its_own(store: &Arc<Store>) {
    let source = session(store, "s_1", 1000).await;
    let mut sketch = (0..150).fold(Sketch::of(&source), |sketch, number| {
        sketch.exchange(&format!("question {number}"), &format!("answer {number}"))
    });
    store.append(sketch.batch()).await.unwrap();
    // Turns have three events each, and the id of their first one.
    assert!(store.fork_session(fork(&source, "t_298")).await.unwrap());
    let copy = SessionId::from("s_fork");
    let (of_source, of_copy) = (
        crate::log(store, &source).await,
        crate::log(store, &copy).await,
    );
    assert_eq!(of_copy.len(), 300);
    for (copied, original) in of_copy.iter().zip(&of_source) {
        assert_eq!((&copied.body, copied.seq), (&original.body, original.seq));
        assert_eq!(copied.session, copy);
    }
    assert_eq!(store.verify(&copy).await.unwrap(), 300);
    let listed = store
        .list(&UserId::from("local"), SessionQuery::recent(1))
        .await;
    let listed = &listed.unwrap()[0];
    assert_eq!(
        (listed.id.as_str(), listed.title.as_str()),
        ("s_fork", "the fork")
    );
    assert_eq!(store.open(&copy).await.unwrap().turns, 100);
}

async fn a_turn_that_runs_is_not_forked(store: &Arc<Store>) {
    let source = session(store, "s_1", 1000).await;
    let mut sketch = Sketch::of(&source).exchange("hello", "hi").ask("more");
    store.append(sketch.batch()).await.unwrap();
    assert!(!store.fork_session(fork(&source, "t_4")).await.unwrap());
    assert!(store.fork_session(fork(&source, "t_none")).await.is_err());
    let listed = store
        .list(&UserId::from("local"), SessionQuery::recent(9))
        .await;
    assert_eq!(listed.unwrap().len(), 1);
}
