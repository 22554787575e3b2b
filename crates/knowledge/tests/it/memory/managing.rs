//! A user lists, searches and forgets the memories of all their sessions.

use super::{TestEnvironment, eager, run};
use lango_core::UserId;
use lango_knowledge::{Memory, MemoryKind};
use lango_store::{Generation, MemoryId};
use serde_json::json;

/// An answer that is long enough for its turn to be observed.
const LONG: &str =
    "This answer has more than sixty bytes, so that the turn is due for an observation.";

async fn ids(memory: &Memory, user: &str) -> Vec<String> {
    let listed = memory.list(&UserId::from(user), 100).await.unwrap();
    let mut ids: Vec<String> = listed.into_iter().map(|memory| memory.id).collect();
    ids.sort();
    ids
}

#[tokio::test]
async fn a_user_sees_the_memories_of_all_their_sessions_and_of_no_one_else() {
    let environment = TestEnvironment::new();
    let memory = environment.memory(None, eager());
    for (user, session, text) in [
        ("ada", "s_1", "likes tea"),
        ("ada", "s_2", "likes rain"),
        ("bob", "s_3", "likes tea too"),
    ] {
        let owner = environment.session(user, session).await;
        for tool in ["memory_save", "observe_note"] {
            let made = run(&memory, &owner, tool, json!({ "text": text })).await;
            made.unwrap();
        }
    }
    let user = UserId::from("ada");
    assert_eq!(ids(&memory, "ada").await, ["m_1", "m_2", "o_1", "o_2"]);
    assert_eq!(ids(&memory, "eve").await, [""; 0]);
    assert_eq!(memory.list(&user, 3).await.unwrap().len(), 3);
    let found = memory.search(&user, "TEA like", 9).await.unwrap().unwrap();
    let kinds: Vec<_> = found
        .iter()
        .map(|memory| {
            (
                memory.id.as_str(),
                memory.kind,
                memory.session.as_ref().map(|session| session.as_str()),
            )
        })
        .collect();
    assert_eq!(
        kinds,
        [
            ("o_1", MemoryKind::Observation, Some("s_1")),
            ("m_1", MemoryKind::Saved, None)
        ]
    );
    assert_eq!(memory.search(&user, "?!", 9).await.unwrap(), None);
}

#[tokio::test]
async fn one_memory_is_forgotten_by_its_id_and_only_by_its_user() {
    let environment = TestEnvironment::new();
    let memory = environment.memory(None, eager());
    let owner = environment.session("ada", "s_1").await;
    for text in ["one", "two"] {
        for tool in ["memory_save", "observe_note"] {
            let made = run(&memory, &owner, tool, json!({ "text": text })).await;
            made.unwrap();
        }
    }
    run(&memory, &owner, "reflect_now", json!({}))
        .await
        .unwrap();
    // The reflection contains both observations.
    assert_eq!(ids(&memory, "ada").await, ["m_1", "m_2", "r_3"]);
    let forget = async |user: &str, id: MemoryId| {
        let forgotten = memory.forget_by_id(&UserId::from(user), id).await;
        forgotten.unwrap().unwrap()
    };
    let has = async |user: &str, id: MemoryId| memory.has(&UserId::from(user), id).await.unwrap();
    for id in [
        MemoryId::Saved(1),
        MemoryId::Observation(1),
        MemoryId::Reflection(3),
    ] {
        assert!(has("ada", id).await, "{id}");
        assert!(!has("bob", id).await, "{id}");
        assert_eq!(forget("bob", id).await, []);
    }
    assert!(!has("ada", MemoryId::Reflection(1)).await);
    assert!(!has("ada", MemoryId::Saved(3)).await);
    // An id of another kind with the same number is not meant.
    assert_eq!(forget("ada", MemoryId::Reflection(1)).await, []);
    assert_eq!(forget("ada", MemoryId::Observation(3)).await, []);
    assert_eq!(
        forget("ada", MemoryId::Saved(1)).await,
        [MemoryId::Saved(1)]
    );
    let both = [MemoryId::Observation(1), MemoryId::Reflection(3)];
    assert_eq!(forget("ada", MemoryId::Observation(1)).await, both);
    assert_eq!(ids(&memory, "ada").await, ["m_2", "o_2"]);
}

#[tokio::test]
async fn what_was_forgotten_altogether_does_not_come_back() {
    let environment = TestEnvironment::new();
    let memory = environment.memory(None, eager());
    let (ada, bob) = (
        environment.session("ada", "s_1").await,
        environment.session("bob", "s_2").await,
    );
    for owner in [&ada, &bob] {
        let saved = json!({ "text": "likes tea" });
        run(&memory, owner, "memory_save", saved).await.unwrap();
        environment
            .talk(owner, &[("I prefer tea to coffee", LONG)])
            .await;
        memory.work_due(&owner.user, &owner.session).await.unwrap();
    }
    environment
        .talk(&ada, &[("I prefer rain to sun", LONG)])
        .await;
    let before = ids(&memory, "ada").await.len() as u64;
    assert!(before >= 2, "{before}");
    assert_eq!(memory.forget_everything(&ada.user).await.unwrap(), before);
    assert_eq!(memory.forget_everything(&ada.user).await.unwrap(), 0);
    memory.work_due(&ada.user, &ada.session).await.unwrap();
    assert_eq!(ids(&memory, "ada").await, [""; 0]);
    assert!(!ids(&memory, "bob").await.is_empty());
    // Later turns are observed again.
    environment
        .talk(&ada, &[("I prefer trains to planes", LONG)])
        .await;
    memory.work_due(&ada.user, &ada.session).await.unwrap();
    let all = environment.all(&ada, Generation::Observation).await;
    let texts: Vec<&str> = all.iter().map(|memory| &*memory.text).collect();
    assert!(texts.len() == 1 && texts[0].contains("trains"), "{texts:?}");
}
