//! Forgotten memories disappear from the rows, the lists, searches and the prompt, and do not come back.

use super::{TestEnvironment, eager, echoing, run, run_in};
use lango_core::SessionStore;
use lango_knowledge::{MemorySettings, memory_tools};
use lango_store::Generation;
use lango_testkit::session_store_contract::LogBuilder;
use serde_json::json;
use std::sync::Arc;

#[tokio::test]
async fn a_forgotten_memory_is_in_no_row_list_or_prompt() {
    let environment = TestEnvironment::new();
    let owner = environment.session("ada", "s_1").await;
    let memory = environment.memory(None, eager());
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
    let reply = run(
        &memory,
        &owner,
        "memory_forget",
        json!({ "query": "PIN 4711" }),
    )
    .await;
    assert_eq!(
        reply.unwrap(),
        "Forgot 2: o_1, m_1. The log of the conversation is not changed."
    );
    let reply = run(&memory, &owner, "memory_forget", json!({ "id": "m_2" })).await;
    assert_eq!(
        reply.unwrap(),
        "Forgot 1: m_2. The log of the conversation is not changed."
    );
    let again = run(&memory, &owner, "memory_forget", json!({ "id": "m_2" })).await;
    assert_eq!(again.unwrap(), "No memory matches.");
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
    let remaining = environment
        .store
        .saved_memories(&owner.user, 10)
        .await
        .unwrap();
    assert_eq!(remaining.len(), 1);
    // Ids are not reused.
    let next = run(&memory, &owner, "memory_save", json!({ "text": "new" })).await;
    assert_eq!(next.unwrap(), "Saved as `m_4`.");
}

#[tokio::test]
async fn forgetting_an_observation_deletes_its_reflections_and_the_rest_is_condensed_again() {
    let environment = TestEnvironment::new();
    let owner = environment.session("ada", "s_1").await;
    let never = MemorySettings {
        reflection_token_threshold: 1,
        ..eager()
    };
    let memory = environment.memory(Some(echoing()), never);
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
    // The second generation is condensed from both.
    memory.work_due(&owner.user, &owner.session).await.unwrap();
    assert_eq!(environment.all(&owner, Generation::Second).await.len(), 2);
    let first = environment.all(&owner, Generation::Observation).await[0]
        .id
        .to_string();
    run(&memory, &owner, "memory_forget", json!({ "id": first }))
        .await
        .unwrap();
    let count = |rows: Vec<lango_store::MemoryRecord>| rows.len();
    assert_eq!(
        count(environment.all(&owner, Generation::Observation).await),
        3
    );
    assert_eq!(count(environment.all(&owner, Generation::First).await), 1);
    assert_eq!(count(environment.all(&owner, Generation::Second).await), 1);
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
async fn forgetting_a_reflection_deletes_its_parts() {
    let environment = TestEnvironment::new();
    let owner = environment.session("ada", "s_1").await;
    let memory = environment.memory(Some(echoing()), eager());
    for text in ["#1", "#2"] {
        run(&memory, &owner, "observe_note", json!({ "text": text }))
            .await
            .unwrap();
    }
    run(&memory, &owner, "reflect_now", json!({}))
        .await
        .unwrap();
    let reply = run(&memory, &owner, "memory_forget", json!({ "id": "r_3" })).await;
    assert_eq!(
        reply.unwrap(),
        "Forgot 3: o_1, o_2, r_3. The log of the conversation is not changed."
    );
    let context = memory.context(&owner.user, &owner.session).await.unwrap();
    assert_eq!(context, None);
}

#[tokio::test]
async fn an_approval_lists_what_is_deleted_and_covers_nothing_else() {
    let environment = TestEnvironment::new();
    let owner = environment.session("ada", "s_1").await;
    let memory = environment.memory(Some(echoing()), eager());
    for text in ["#1 tea is\ngood", "#2"] {
        run(&memory, &owner, "observe_note", json!({ "text": text }))
            .await
            .unwrap();
    }
    run(&memory, &owner, "reflect_now", json!({}))
        .await
        .unwrap();
    let saved = json!({ "text": "tea at five" });
    run(&memory, &owner, "memory_save", saved).await.unwrap();
    let tools = memory_tools(memory.clone());
    let forget = tools
        .iter()
        .find(|tool| tool.spec().name == "memory_forget")
        .unwrap();
    let call = Arc::new(json!({ "query": "tea" }));
    let mut caller = super::caller(&owner, "t_1");
    caller.inspection = forget.inspect(&caller, call.clone()).await;
    let notes: Vec<&str> = caller.inspection.notes.iter().map(|note| &**note).collect();
    assert_eq!(
        notes,
        [
            "permanently deletes 3 memories:",
            "r_3  - seen #1 #2",
            "o_1  #1 tea is good",
            "m_1  tea at five"
        ]
    );
    let added = json!({ "text": "tea with milk" });
    run(&memory, &owner, "memory_save", added).await.unwrap();
    let refused = forget.run(&caller, call.clone()).await.unwrap_err();
    assert!(refused.message.contains("changed"), "{refused}");
    assert_eq!(
        environment
            .store
            .saved_memories(&owner.user, 9)
            .await
            .unwrap()
            .len(),
        2
    );
    caller.inspection = forget.inspect(&caller, call.clone()).await;
    let done = forget.run(&caller, call).await.unwrap().text;
    assert!(done.starts_with("Forgot 4: o_1, r_3, m_1, m_2."), "{done}");
    // Nothing is deleted without an inspection.
    let id = Arc::new(json!({ "id": "o_2" }));
    let unseen = super::caller(&owner, "t_1");
    assert!(forget.run(&unseen, id).await.is_err());
}

#[tokio::test]
async fn turns_that_contain_forgotten_text_are_not_observed_later() {
    let environment = TestEnvironment::new();
    let owner = environment.session("ada", "s_1").await;
    let memory = environment.memory(Some(echoing()), eager());
    environment
        .talk(&owner, &[("my pin is #4711", "ok"), ("#2", "ok")])
        .await;
    let mut builder: LogBuilder = super::end_of(&environment.store, &owner).await;
    builder = builder.ask("forget my pin #4711");
    environment.store.append(builder.batch()).await.unwrap();
    let query = json!({ "query": "pin" });
    let reply = run_in(&memory, &owner, "t_7", "memory_forget", query).await;
    assert_eq!(reply.unwrap(), "No memory matches.");
    builder = builder.say("root", "", "forgotten").finish();
    environment.store.append(builder.batch()).await.unwrap();
    environment
        .talk(&owner, &[(&format!("#3 {}", "word ".repeat(30)), "")])
        .await;
    let report = memory.work_due(&owner.user, &owner.session).await.unwrap();
    assert_eq!(report.turns, 4);
    assert_eq!(
        super::tools::text_of(&environment, &owner).await,
        "- seen #2 #3"
    );
}
