//! Two users, and two sessions of one user, never see each other's memory.

use super::{TestEnvironment, eager, echoing, run};
use lango_core::StoreError;
use lango_store::MemoryOwner;
use proptest::prelude::*;
use serde_json::json;

/// An action of an owner.
#[derive(Debug, Clone)]
enum Action {
    Talk,
    Work,
    Save,
    Note,
    Reflect,
    Forget(u64),
    ForgetWords,
}

fn action() -> impl Strategy<Value = (usize, Action)> {
    let action = prop_oneof![
        3 => Just(Action::Talk),
        2 => Just(Action::Work),
        2 => Just(Action::Save),
        2 => Just(Action::Note),
        1 => Just(Action::Reflect),
        1 => (1_u64..30).prop_map(Action::Forget),
        1 => Just(Action::ForgetWords),
    ];
    (0_usize..4, action)
}

/// Returns everything that a session can see.
async fn seen(memory: &lango_knowledge::Memory, owner: &MemoryOwner) -> String {
    let mut seen = memory
        .context(&owner.user, &owner.session)
        .await
        .unwrap()
        .map(|context| context.text.to_string())
        .unwrap_or_default();
    let reads = [
        ("memory_list_observations", json!({ "limit": 50 })),
        ("memory_list_reflections", json!({ "limit": 50 })),
        (
            "memory_recall",
            json!({ "query": "seen kept noted ada bob 1 2 3 4", "limit": 50 }),
        ),
    ];
    for (tool, arguments) in reads {
        seen.push_str(&run(memory, owner, tool, arguments).await.unwrap());
    }
    seen
}

/// Checks that an owner sees only their own memory: marks of owner `n` start with `#n`, and saved memories contain the
/// user's name.
fn assert_own(seen: &str, number: usize, owner: &MemoryOwner) {
    let own = number as u64 + 1;
    for mark in super::marks(seen).into_keys() {
        assert_eq!(mark / 1000, own, "{owner:?} sees #{mark}: {seen}");
    }
    for user in ["ada", "bob"] {
        let is_seen = seen.contains(&format!("kept {user}"));
        assert!(
            !is_seen || owner.user == user,
            "{owner:?} sees {user}'s: {seen}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn an_owner_sees_only_their_own_memory(acts in proptest::collection::vec(action(), 1..30)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let environment = TestEnvironment::new();
            let mut owners = Vec::new();
            for (user, session) in [("ada", "s_1"), ("ada", "s_2"), ("bob", "s_3"), ("bob", "s_4")] {
                owners.push(environment.session(user, session).await);
            }
            let memory = environment.memory(Some(echoing()), eager());
            for (count, (number, action)) in acts.into_iter().enumerate() {
                let owner = &owners[number];
                let mark = (number + 1) * 1000 + count;
                let others: Vec<usize> = (0..4).filter(|other| *other != number).collect();
                let mut before = Vec::new();
                for other in &others {
                    before.push(rows_of(&environment, &owners[*other]).await);
                }
                match action {
                    Action::Talk => {
                        let words = format!("#{mark} {}", "word ".repeat(12));
                        environment.talk(owner, &[(&words, "yes")]).await;
                    }
                    Action::Work => {
                        memory.work_due(&owner.user, &owner.session).await.unwrap();
                    }
                    Action::Save => {
                        let text = json!({ "text": format!("kept {} {count}", owner.user) });
                        run(&memory, owner, "memory_save", text).await.unwrap();
                    }
                    Action::Note => {
                        let text = json!({ "text": format!("noted #{mark}") });
                        run(&memory, owner, "observe_note", text).await.unwrap();
                    }
                    Action::Reflect => {
                        run(&memory, owner, "reflect_now", json!({})).await.unwrap();
                    }
                    Action::Forget(id) => {
                        for kind in ["o", "r"] {
                            let id = json!({ "id": format!("{kind}_{id}") });
                            run(&memory, owner, "memory_forget", id).await.unwrap();
                        }
                    }
                    Action::ForgetWords => {
                        let query = json!({ "query": "noted" });
                        run(&memory, owner, "memory_forget", query).await.unwrap();
                    }
                }
                for (other, before) in others.into_iter().zip(before) {
                    assert_eq!(rows_of(&environment, &owners[other]).await, before);
                }
                for (number, owner) in owners.iter().enumerate() {
                    assert_own(&seen(&memory, owner).await, number, owner);
                }
            }
        });
    }
}

/// Returns all rows of a session's memory.
async fn rows_of(
    environment: &TestEnvironment,
    owner: &MemoryOwner,
) -> Vec<lango_store::MemoryRecord> {
    let mut rows = Vec::new();
    for generation in [
        lango_store::Generation::Observation,
        lango_store::Generation::First,
        lango_store::Generation::Second,
    ] {
        rows.extend(environment.all(owner, generation).await);
    }
    rows
}

#[tokio::test]
async fn the_id_or_session_of_another_user_seems_not_to_exist() {
    let environment = TestEnvironment::new();
    let ada = environment.session("ada", "s_1").await;
    let bob = environment.session("bob", "s_2").await;
    let memory = environment.memory(Some(echoing()), eager());
    run(&memory, &ada, "memory_save", json!({ "text": "secret" }))
        .await
        .unwrap();
    run(&memory, &ada, "observe_note", json!({ "text": "#1" }))
        .await
        .unwrap();
    run(&memory, &ada, "reflect_now", json!({})).await.unwrap();
    for id in ["m_1", "o_1", "r_2"] {
        let reply = run(&memory, &bob, "memory_forget", json!({ "id": id })).await;
        assert_eq!(reply.unwrap(), "No memory matches.");
    }
    // A user with the session of another user.
    let mixed = MemoryOwner {
        user: bob.user.clone(),
        session: ada.session.clone(),
    };
    environment.talk(&ada, &[(&"word ".repeat(40), "")]).await;
    let refused = memory
        .work_due(&mixed.user, &mixed.session)
        .await
        .unwrap_err();
    assert!(matches!(refused, StoreError::NotFound { .. }), "{refused}");
    let refused = memory
        .context(&mixed.user, &mixed.session)
        .await
        .unwrap_err();
    assert!(matches!(refused, StoreError::NotFound { .. }), "{refused}");
    for (tool, arguments) in [
        ("observe_note", json!({ "text": "x" })),
        ("memory_save", json!({ "text": "x" })),
        ("memory_forget", json!({ "query": "seen" })),
        ("reflect_now", json!({})),
    ] {
        let error = run(&memory, &mixed, tool, arguments).await.unwrap_err();
        assert_eq!(error.message, "there is no session `s_1`");
    }
    let listed = run(&memory, &mixed, "memory_list_observations", json!({}))
        .await
        .unwrap();
    assert_eq!(listed, "this session has no observations yet");
    let recalled = run(
        &memory,
        &ada,
        "memory_recall",
        json!({ "query": "secret seen" }),
    )
    .await;
    assert_eq!(recalled.unwrap().lines().count(), 2);
}
