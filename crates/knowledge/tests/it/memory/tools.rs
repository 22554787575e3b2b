//! The tools of memory with fixed inputs and outputs.

use super::{TestEnvironment, eager, echoing, run};
use lango_core::{Effect, Risk};
use lango_knowledge::memory_tools;
use lango_store::{Generation, MemoryOwner};
use serde_json::json;

/// Returns the observations of a session as one text.
pub(super) async fn text_of(environment: &TestEnvironment, owner: &MemoryOwner) -> String {
    let rows = environment.all(owner, Generation::Observation).await;
    let texts: Vec<&str> = rows.iter().map(|row| &*row.text).collect();
    texts.join("\n")
}

#[tokio::test]
async fn a_saved_memory_is_recalled_in_another_session_of_the_user() {
    let environment = TestEnvironment::new();
    let (one, two) = (
        environment.session("ada", "s_1").await,
        environment.session("ada", "s_2").await,
    );
    let memory = environment.memory(None, eager());
    let tea = json!({ "text": " Ada drinks green tea. ", "tags": ["Drinks", "tea", "tea"] });
    let saved = run(&memory, &one, "memory_save", tea.clone()).await;
    assert_eq!(saved.unwrap(), "Saved as `m_1`.");
    let again = run(&memory, &two, "memory_save", tea).await;
    assert_eq!(
        again.unwrap(),
        "This was already saved as `m_1`; its tags were updated."
    );
    let cat = json!({ "text": "Ada's cat drinks milk" });
    run(&memory, &two, "memory_save", cat).await.unwrap();
    let found = run(
        &memory,
        &two,
        "memory_recall",
        json!({ "query": "which TEA? drink%" }),
    )
    .await;
    assert_eq!(
        found.unwrap(),
        "{\"id\":\"m_1\",\"date\":\"2026-03-01\",\"tags\":[\"drinks\",\"tea\"],\"by\":\"note of chronicler\",\
         \"trust\":\"trusted\",\"text\":\"Ada drinks green tea.\"}\n\
         {\"id\":\"m_2\",\"date\":\"2026-03-01\",\"by\":\"note of chronicler\",\"trust\":\"trusted\",\
         \"text\":\"Ada's cat drinks milk\"}"
    );
    let none = run(&memory, &two, "memory_recall", json!({ "query": "coffee" })).await;
    assert_eq!(none.unwrap(), "no memory contains any of these words");
}

#[tokio::test]
async fn notes_are_listed_and_condensed() {
    let environment = TestEnvironment::new();
    let owner = environment.session("ada", "s_1").await;
    let memory = environment.memory(Some(echoing()), eager());
    let empty = run(&memory, &owner, "memory_list_observations", json!({})).await;
    assert_eq!(empty.unwrap(), "this session has no observations yet");
    let none = run(&memory, &owner, "reflect_now", json!({})).await;
    assert_eq!(
        none.unwrap(),
        "All observations of this session are already condensed."
    );
    environment.talk(&owner, &[("hello", "hello")]).await;
    for (text, id) in [
        ("#1 is open", "o_1"),
        ("#2 is done", "o_2"),
        ("#1 is open", "o_1"),
    ] {
        let noted = run(&memory, &owner, "observe_note", json!({ "text": text })).await;
        assert_eq!(noted.unwrap(), format!("Noted as `{id}`."));
    }
    let listed = run(
        &memory,
        &owner,
        "memory_list_observations",
        json!({ "limit": 1 }),
    )
    .await;
    assert_eq!(
        listed.unwrap(),
        "{\"id\":\"o_2\",\"date\":\"2026-03-01\",\"turns\":\"1\",\"by\":\"note of chronicler\",\"trust\":\"trusted\",\
         \"text\":\"#2 is done\"}\n(there are more)"
    );
    let reply = run(&memory, &owner, "reflect_now", json!({})).await;
    assert_eq!(reply.unwrap(), "Made 1 reflection.");
    let reflections = run(&memory, &owner, "memory_list_reflections", json!({})).await;
    assert_eq!(
        reflections.unwrap(),
        "{\"id\":\"r_3\",\"date\":\"2026-03-01\",\"turns\":\"1\",\"generation\":1,\"by\":\"test/echo\",\
         \"trust\":\"trusted\",\"text\":\"- seen #1 #2\"}"
    );
}

#[tokio::test]
async fn an_invalid_call_says_why() {
    let environment = TestEnvironment::new();
    let owner = environment.session("ada", "s_1").await;
    let memory = environment.memory(None, eager());
    let wrong = [
        (
            "memory_save",
            json!({ "text": " " }),
            "the text is empty; say what to remember",
        ),
        (
            "memory_save",
            json!({ "text": "x".repeat(1201) }),
            "the text has 1201 bytes, but at most 1200 are allowed; shorten it",
        ),
        (
            "memory_save",
            json!({ "text": "x", "tags": ["y".repeat(41)] }),
            "a memory can have at most 8 tags of 40 bytes; use fewer or shorter ones",
        ),
        (
            "memory_recall",
            json!({ "query": "?*\"'" }),
            "the query contains no word; say what to search for",
        ),
        ("memory_forget", json!({}), "give either `id` or `query`"),
        (
            "memory_forget",
            json!({ "id": "7' OR 1" }),
            "`7' OR 1` is not the id of a memory; ids look like `o_1`, `r_2` or `m_3`",
        ),
    ];
    for (tool, arguments, why) in wrong {
        let error = run(&memory, &owner, tool, arguments).await.unwrap_err();
        assert_eq!(error.message, why);
    }
    let foreign = run(
        &memory,
        &owner,
        "memory_recall",
        json!({ "query": "x", "session": "s_2" }),
    );
    let error = foreign.await.unwrap_err();
    assert!(error.message.contains("unknown field `session`"), "{error}");
}

#[tokio::test]
async fn a_user_can_save_at_most_a_thousand_memories() {
    let environment = TestEnvironment::new();
    let owner = environment.session("ada", "s_1").await;
    let memory = environment.memory(None, eager());
    let saves = (0..1000).map(|number| {
        let (memory, owner) = (memory.clone(), owner.clone());
        tokio::spawn(async move {
            let text = json!({ "text": format!("number {number}") });
            run(&memory, &owner, "memory_save", text).await.unwrap()
        })
    });
    for save in saves.collect::<Vec<_>>() {
        save.await.unwrap();
    }
    let error = run(
        &memory,
        &owner,
        "memory_save",
        json!({ "text": "one more" }),
    )
    .await;
    assert_eq!(
        error.unwrap_err().message,
        "the limit of 1000 saved memories is reached; forget some first"
    );
}

#[tokio::test]
async fn the_tools_declare_their_effects() {
    let environment = TestEnvironment::new();
    let tools = memory_tools(environment.memory(None, eager()));
    let declared: Vec<(&str, Effect, Risk)> = tools
        .iter()
        .map(|tool| {
            (
                tool.spec().name.as_str(),
                tool.spec().effect,
                tool.spec().risk,
            )
        })
        .collect();
    assert_eq!(
        declared,
        [
            ("memory_list_observations", Effect::Pure, Risk::Safe),
            ("memory_list_reflections", Effect::Pure, Risk::Safe),
            ("memory_save", Effect::Idempotent, Risk::Safe),
            ("memory_recall", Effect::Pure, Risk::Safe),
            ("memory_forget", Effect::NonIdempotent, Risk::Moderate),
            ("observe_note", Effect::Idempotent, Risk::Safe),
            ("reflect_now", Effect::Idempotent, Risk::Safe),
        ]
    );
}
