//! Whose memory it is: two users, and two sessions of one user, never see each other's.

use super::{Desk, eager, echoing, run};
use lango_core::StoreError;
use lango_store::MemoryOwner;
use proptest::prelude::*;
use serde_json::json;

/// What the owners do.
#[derive(Debug, Clone)]
enum Act {
    Talk,
    Work,
    Save,
    Note,
    Reflect,
    Forget(u64),
    ForgetWords,
}

fn act() -> impl Strategy<Value = (usize, Act)> {
    let act = prop_oneof![
        3 => Just(Act::Talk),
        2 => Just(Act::Work),
        2 => Just(Act::Save),
        2 => Just(Act::Note),
        1 => Just(Act::Reflect),
        1 => (1_u64..30).prop_map(Act::Forget),
        1 => Just(Act::ForgetWords),
    ];
    (0_usize..4, act)
}

/// All that a session can be shown.
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

/// The marks of owner `n` begin with `#n`; what was saved says the user's name.
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
    fn nobody_sees_what_is_not_theirs(acts in proptest::collection::vec(act(), 1..30)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let desk = Desk::new();
            let mut owners = Vec::new();
            for (user, session) in [("ada", "s_1"), ("ada", "s_2"), ("bob", "s_3"), ("bob", "s_4")] {
                owners.push(desk.session(user, session).await);
            }
            let memory = desk.memory(Some(echoing()), eager());
            for (count, (number, act)) in acts.into_iter().enumerate() {
                let owner = &owners[number];
                let mark = (number + 1) * 1000 + count;
                let others: Vec<usize> = (0..4).filter(|other| *other != number).collect();
                let mut before = Vec::new();
                for other in &others {
                    before.push(rows_of(&desk, &owners[*other]).await);
                }
                match act {
                    Act::Talk => {
                        let words = format!("#{mark} {}", "word ".repeat(12));
                        desk.talk(owner, &[(&words, "yes")]).await;
                    }
                    Act::Work => {
                        memory.work_due(&owner.user, &owner.session).await.unwrap();
                    }
                    Act::Save => {
                        let text = json!({ "text": format!("kept {} {count}", owner.user) });
                        run(&memory, owner, "memory_save", text).await.unwrap();
                    }
                    Act::Note => {
                        let text = json!({ "text": format!("noted #{mark}") });
                        run(&memory, owner, "observe_note", text).await.unwrap();
                    }
                    Act::Reflect => {
                        run(&memory, owner, "reflect_now", json!({})).await.unwrap();
                    }
                    Act::Forget(id) => {
                        for kind in ["o", "r"] {
                            let id = json!({ "id": format!("{kind}_{id}") });
                            run(&memory, owner, "memory_forget", id).await.unwrap();
                        }
                    }
                    Act::ForgetWords => {
                        let query = json!({ "query": "noted" });
                        run(&memory, owner, "memory_forget", query).await.unwrap();
                    }
                }
                for (other, before) in others.into_iter().zip(before) {
                    assert_eq!(rows_of(&desk, &owners[other]).await, before);
                }
                for (number, owner) in owners.iter().enumerate() {
                    assert_own(&seen(&memory, owner).await, number, owner);
                }
            }
        });
    }
}

/// All rows of a session's memory.
async fn rows_of(desk: &Desk, owner: &MemoryOwner) -> Vec<lango_store::Recollection> {
    let mut rows = Vec::new();
    for generation in [
        lango_store::Generation::Observation,
        lango_store::Generation::First,
        lango_store::Generation::Second,
    ] {
        rows.extend(desk.all(owner, generation).await);
    }
    rows
}

#[tokio::test]
async fn anothers_id_or_session_is_as_if_it_were_not_there() {
    let desk = Desk::new();
    let ada = desk.session("ada", "s_1").await;
    let bob = desk.session("bob", "s_2").await;
    let memory = desk.memory(Some(echoing()), eager());
    run(&memory, &ada, "memory_save", json!({ "text": "secret" }))
        .await
        .unwrap();
    run(&memory, &ada, "observe_note", json!({ "text": "#1" }))
        .await
        .unwrap();
    run(&memory, &ada, "reflect_now", json!({})).await.unwrap();
    for id in ["m_1", "o_1", "r_2"] {
        let gone = run(&memory, &bob, "memory_forget", json!({ "id": id })).await;
        assert_eq!(gone.unwrap(), "Nothing that is remembered fits.");
    }
    // A user with the session of somebody else, whoever paired them.
    let mixed = MemoryOwner {
        user: bob.user.clone(),
        session: ada.session.clone(),
    };
    desk.talk(&ada, &[(&"word ".repeat(40), "")]).await;
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
    assert_eq!(listed, "nothing was observed in this session yet");
    let recalled = run(
        &memory,
        &ada,
        "memory_recall",
        json!({ "query": "secret seen" }),
    )
    .await;
    assert_eq!(recalled.unwrap().lines().count(), 2);
}
