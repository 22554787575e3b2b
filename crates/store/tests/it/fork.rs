//! Tests of forking sessions, on every database.

use crate::archive::{postgresql, session, sqlite};
use lango_core::{
    NewSession, SessionCatalog, SessionId, SessionQuery, SessionStore, Timestamp, TurnId, UserId,
};
use lango_store::Store;
use lango_store::archive::Fork;
use lango_testkit::session_store_contract::LogBuilder;
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
    a_fork_has_the_log_up_to_its_turn_with_new_hashes,
    a_running_turn_cannot_be_forked,
    a_fork_of_an_undone_turn_says_that_it_was_undone,
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

async fn a_fork_has_the_log_up_to_its_turn_with_new_hashes(store: &Arc<Store>) {
    let source = session(store, "s_1", 1000).await;
    let mut builder = (0..150).fold(LogBuilder::new(&source), |builder, number| {
        builder.exchange(&format!("question {number}"), &format!("answer {number}"))
    });
    store.append(builder.batch()).await.unwrap();
    // Each turn has three events, and is named after its first one.
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
    assert_eq!(store.read_head(&copy).await.unwrap().turns, 100);
}

async fn a_running_turn_cannot_be_forked(store: &Arc<Store>) {
    let source = session(store, "s_1", 1000).await;
    let mut builder = LogBuilder::new(&source).exchange("hello", "hi").ask("more");
    store.append(builder.batch()).await.unwrap();
    assert!(!store.fork_session(fork(&source, "t_4")).await.unwrap());
    assert!(store.fork_session(fork(&source, "t_none")).await.is_err());
    let listed = store
        .list(&UserId::from("local"), SessionQuery::recent(9))
        .await;
    assert_eq!(listed.unwrap().len(), 1);
}

async fn a_fork_of_an_undone_turn_says_that_it_was_undone(store: &Arc<Store>) {
    let source = session(store, "s_1", 1000).await;
    let mut builder = LogBuilder::new(&source)
        .exchange("one", "1")
        .exchange("two", "2")
        .undo("t_4", &["a.txt"])
        .exchange("three", "3");
    store.append(builder.batch()).await.unwrap();
    assert!(store.fork_session(fork(&source, "t_4")).await.unwrap());
    let copy = store.read_head(&SessionId::from("s_fork")).await.unwrap();
    assert_eq!((copy.next_seq, copy.unfinished), (8, None));
    let undone = copy.exchanges.iter().map(|turn| turn.undone.is_some());
    assert_eq!(undone.collect::<Vec<_>>(), [false, true]);
}
