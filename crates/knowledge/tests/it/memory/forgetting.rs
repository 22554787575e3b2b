//! What is forgotten is gone: from the rows, the lists, recall and the prompt, and it does not come back.

use super::{Desk, eager, echoing, run, run_in};
use lango_core::SessionStore;
use lango_knowledge::MemorySettings;
use lango_store::Generation;
use lango_testkit::session_store_contract::Sketch;
use serde_json::json;

#[tokio::test]
async fn a_forgotten_memory_is_in_no_row_no_list_and_no_prompt() {
    let desk = Desk::new();
    let owner = desk.session("ada", "s_1").await;
    let memory = desk.memory(None, eager());
    for text in [
        "the pin is 4711",
        "the pin of the bike is 12",
        "tea is good",
    ] {
        run(&memory, &owner, "memory_save", json!({ "text": text }))
            .await
            .unwrap();
        run(&memory, &owner, "observe_note", json!({ "text": text }))
            .await
            .unwrap();
    }
    let gone = run(
        &memory,
        &owner,
        "memory_forget",
        json!({ "query": "PIN 4711" }),
    )
    .await;
    assert_eq!(
        gone.unwrap(),
        "Forgot 2: o_1, m_1. The log of the conversation keeps what was said."
    );
    let gone = run(&memory, &owner, "memory_forget", json!({ "id": "m_2" })).await;
    assert_eq!(
        gone.unwrap(),
        "Forgot 1: m_2. The log of the conversation keeps what was said."
    );
    let again = run(&memory, &owner, "memory_forget", json!({ "id": "m_2" })).await;
    assert_eq!(again.unwrap(), "Nothing that is remembered fits.");
    let context = memory
        .context(&owner.user, &owner.session)
        .await
        .unwrap()
        .unwrap()
        .text;
    let listed = run(&memory, &owner, "memory_list_observations", json!({}))
        .await
        .unwrap();
    let recalled = run(&memory, &owner, "memory_recall", json!({ "query": "pin" }))
        .await
        .unwrap();
    for shown in [&context.to_string(), &listed, &recalled] {
        assert!(!shown.contains("4711"), "{shown}");
    }
    assert!(
        recalled.contains("o_2") && !recalled.contains("m_2"),
        "{recalled}"
    );
    let left = desk.store.saved_memories(&owner.user, 10).await.unwrap();
    assert_eq!(left.len(), 1);
    // A number is not used again for something else.
    let next = run(&memory, &owner, "memory_save", json!({ "text": "new" })).await;
    assert_eq!(next.unwrap(), "Saved as `m_4`.");
}

#[tokio::test]
async fn an_observation_takes_the_reflections_made_of_it_along_and_the_rest_is_reflected_anew() {
    let desk = Desk::new();
    let owner = desk.session("ada", "s_1").await;
    let never = MemorySettings {
        reflection_token_threshold: 1,
        ..eager()
    };
    let memory = desk.memory(Some(echoing()), never);
    for mark in 1..=4 {
        let text = format!("#{mark}");
        run(&memory, &owner, "observe_note", json!({ "text": text }))
            .await
            .unwrap();
        if mark % 2 == 0 {
            run(&memory, &owner, "reflect_now", json!({}))
                .await
                .unwrap();
        }
    }
    // The second generation is made of each of the two.
    memory.work_due(&owner.user, &owner.session).await.unwrap();
    assert_eq!(desk.all(&owner, Generation::Second).await.len(), 2);
    let first = desk.all(&owner, Generation::Observation).await[0]
        .id
        .to_string();
    run(&memory, &owner, "memory_forget", json!({ "id": first }))
        .await
        .unwrap();
    let count = |rows: Vec<lango_store::Recollection>| rows.len();
    assert_eq!(count(desk.all(&owner, Generation::Observation).await), 3);
    assert_eq!(count(desk.all(&owner, Generation::First).await), 1);
    assert_eq!(count(desk.all(&owner, Generation::Second).await), 1);
    run(&memory, &owner, "reflect_now", json!({}))
        .await
        .unwrap();
    let context = memory
        .context(&owner.user, &owner.session)
        .await
        .unwrap()
        .unwrap()
        .text;
    assert_eq!(
        super::marks(&context).into_keys().collect::<Vec<_>>(),
        [2, 3, 4]
    );
}

#[tokio::test]
async fn a_reflection_takes_what_it_was_made_of_along() {
    let desk = Desk::new();
    let owner = desk.session("ada", "s_1").await;
    let memory = desk.memory(Some(echoing()), eager());
    for text in ["#1", "#2"] {
        run(&memory, &owner, "observe_note", json!({ "text": text }))
            .await
            .unwrap();
    }
    run(&memory, &owner, "reflect_now", json!({}))
        .await
        .unwrap();
    let gone = run(&memory, &owner, "memory_forget", json!({ "id": "r_3" })).await;
    assert_eq!(
        gone.unwrap(),
        "Forgot 3: o_1, o_2, r_3. The log of the conversation keeps what was said."
    );
    let context = memory.context(&owner.user, &owner.session).await.unwrap();
    assert_eq!(context, None);
}

#[tokio::test]
async fn turns_that_hold_what_was_forgotten_are_not_observed_later() {
    let desk = Desk::new();
    let owner = desk.session("ada", "s_1").await;
    let memory = desk.memory(Some(echoing()), eager());
    desk.talk(&owner, &[("my pin is #4711", "ok"), ("#2", "ok")])
        .await;
    let mut sketch: Sketch = super::end_of(&desk.store, &owner).await;
    sketch = sketch.ask("forget my pin #4711");
    desk.store.append(sketch.batch()).await.unwrap();
    let query = json!({ "query": "pin" });
    let gone = run_in(&memory, &owner, "t_7", "memory_forget", query).await;
    assert_eq!(gone.unwrap(), "Nothing that is remembered fits.");
    sketch = sketch.say("root", "", "forgotten").finish();
    desk.store.append(sketch.batch()).await.unwrap();
    desk.talk(&owner, &[(&format!("#3 {}", "word ".repeat(30)), "")])
        .await;
    let report = memory.work_due(&owner.user, &owner.session).await.unwrap();
    assert_eq!(report.turns, 4);
    assert_eq!(super::tools::text_of(&desk, &owner).await, "- seen #2 #3");
}
