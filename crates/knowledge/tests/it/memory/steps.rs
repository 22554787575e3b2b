//! When turns are observed and observations condensed, and what is stored.

use super::{NOW, TestEnvironment, data, eager, echoing, failing, marks, tools::text_of};
use lango_core::{MessageOrigin, SessionStore, Trust};
use lango_knowledge::{MemoryReport, MemorySettings};
use lango_store::Generation;
use lango_testkit::model::{ScriptedModel, say};
use proptest::prelude::*;
use serde_json::json;
use std::sync::Arc;

#[tokio::test]
async fn turns_are_observed_only_above_the_threshold() {
    let environment = TestEnvironment::new();
    let owner = environment.session("ada", "s_1").await;
    let model = Arc::new(ScriptedModel::from_fn(|_| say("- they like tea")));
    let memory = environment.memory(Some(model.clone()), MemorySettings::default());
    // 1499 + 1500 bytes are 500 + 500 tokens, exactly the threshold, which must be exceeded.
    let (question, answer) = ("q".repeat(1499), "a".repeat(1500));
    environment.talk(&owner, &[(&question, &answer)]).await;
    let report = memory.work_due(&owner.user, &owner.session).await.unwrap();
    assert_eq!(report, MemoryReport::default());
    assert_eq!(model.requests().len(), 0);
    environment.talk(&owner, &[("x", "")]).await;
    let report = memory.work_due(&owner.user, &owner.session).await.unwrap();
    assert_eq!((report.turns, report.observations), (2, 1));
    let again = memory.work_due(&owner.user, &owner.session).await.unwrap();
    assert_eq!(again, MemoryReport::default());
    assert_eq!(model.requests().len(), 1);
    let [observation] = &environment.all(&owner, Generation::Observation).await[..] else {
        panic!("one observation");
    };
    assert_eq!(&*observation.text, "- they like tea");
    assert_eq!(observation.turns, (0, 1));
    assert_eq!(&*observation.source.name, "test/scripted");
    assert_eq!(observation.created, NOW);
}

#[tokio::test]
async fn a_running_turn_is_not_observed_and_an_abandoned_one_is_skipped() {
    let environment = TestEnvironment::new();
    let owner = environment.session("ada", "s_1").await;
    let memory = environment.memory(Some(echoing()), eager());
    let long = "word ".repeat(20);
    let mut builder = super::end_of(&environment.store, &owner).await;
    builder = builder.ask(&format!("#1 {long}"));
    environment.store.append(builder.batch()).await.unwrap();
    let report = memory.work_due(&owner.user, &owner.session).await.unwrap();
    assert_eq!(report, MemoryReport::default());
    // A log of an older lango may contain a turn that never ended.
    environment
        .talk(&owner, &[(&format!("#2 {long}"), "")])
        .await;
    let report = memory.work_due(&owner.user, &owner.session).await.unwrap();
    assert_eq!(report.turns, 2);
    assert_eq!(text_of(&environment, &owner).await, "- seen #2");
}

#[tokio::test]
async fn observations_are_condensed_to_reflections_and_those_to_a_second_generation() {
    let environment = TestEnvironment::new();
    let owner = environment.session("ada", "s_1").await;
    let memory = environment.memory(Some(echoing()), eager());
    let mut most_second = 0;
    for number in 1..=120 {
        let words = format!("#{number} {}", "word ".repeat(15));
        environment.talk(&owner, &[(&words, "yes")]).await;
        memory.work_due(&owner.user, &owner.session).await.unwrap();
        most_second = most_second.max(environment.all(&owner, Generation::Second).await.len());
        // Each turn is in exactly one uncondensed row, of whatever generation.
        let mut loose = String::new();
        for generation in [
            Generation::Observation,
            Generation::First,
            Generation::Second,
        ] {
            let rows = environment.all(&owner, generation).await;
            let texts = rows.iter().filter(|row| !row.is_part);
            loose.extend(texts.map(|row| format!("{}\n", row.text)));
        }
        let expected = (1..=number).map(|number| (number, 1)).collect();
        assert_eq!(marks(&loose), expected);
    }
    assert!(most_second > 0);
}

#[tokio::test]
async fn many_short_turns_are_due_despite_their_length() {
    let environment = TestEnvironment::new();
    let owner = environment.session("ada", "s_1").await;
    let memory = environment.memory(Some(echoing()), MemorySettings::default());
    let turns: Vec<String> = (1..=130).map(|number| format!("#{number}")).collect();
    let turns: Vec<(&str, &str)> = turns.iter().map(|turn| (turn.as_str(), "")).collect();
    environment.talk(&owner, &turns).await;
    let report = memory.work_due(&owner.user, &owner.session).await.unwrap();
    assert_eq!((report.turns, report.observations), (128, 2));
}

#[tokio::test]
async fn a_running_turn_does_not_complete_a_batch_of_short_ones() {
    let environment = TestEnvironment::new();
    let owner = environment.session("ada", "s_1").await;
    let memory = environment.memory(Some(echoing()), MemorySettings::default());
    environment.talk(&owner, &[("hm", ""); 63]).await;
    let mut builder = super::end_of(&environment.store, &owner).await.ask("#64");
    environment.store.append(builder.batch()).await.unwrap();
    let report = memory.work_due(&owner.user, &owner.session).await.unwrap();
    assert_eq!(report, MemoryReport::default());
    let mut builder = builder.say("root", "", "yes").finish();
    environment.store.append(builder.batch()).await.unwrap();
    memory.work_due(&owner.user, &owner.session).await.unwrap();
    assert_eq!(text_of(&environment, &owner).await, "- seen #64");
}

#[tokio::test]
async fn a_huge_turn_is_truncated_before_a_model_sees_it() {
    let environment = TestEnvironment::new();
    let owner = environment.session("ada", "s_1").await;
    let model = Arc::new(ScriptedModel::from_fn(|_| say("- long")));
    let memory = environment.memory(Some(model.clone()), MemorySettings::default());
    let (question, answer) = ("ä".repeat(500_000), "b".repeat(500_000));
    environment.talk(&owner, &[(&question, &answer)]).await;
    memory.work_due(&owner.user, &owner.session).await.unwrap();
    let sent = data(&model.requests()[0]);
    assert!(sent.len() < 7000, "{}", sent.len());
    assert!(sent.contains("[cut: 997000 more bytes]"), "{sent}");
}

#[tokio::test]
async fn a_failing_model_is_retried_and_after_three_failures_rules_take_over() {
    let environment = TestEnvironment::new();
    let owner = environment.session("ada", "s_1").await;
    let model = Arc::new(ScriptedModel::new(|_| failing()));
    let memory = environment.memory(Some(model.clone()), eager());
    let words = "I prefer short answers. What is new?".repeat(2);
    environment.talk(&owner, &[(&words, "nothing")]).await;
    for _ in 0..2 {
        let report = memory.work_due(&owner.user, &owner.session).await.unwrap();
        assert_eq!(
            report.failure.as_deref(),
            Some("model `test/scripted`: its reply was cut off")
        );
        assert_eq!(report.turns, 0);
    }
    let report = memory.work_due(&owner.user, &owner.session).await.unwrap();
    assert_eq!((report.turns, report.by_rules), (1, 1));
    assert_eq!(model.requests().len(), 3);
    let observation = environment
        .all(&owner, Generation::Observation)
        .await
        .remove(0);
    assert_eq!(&*observation.source.name, "rules");
    assert!(
        observation
            .text
            .starts_with("- preference (turn 1): I prefer short answers.")
    );
    // For the next batch the model is called again.
    environment.talk(&owner, &[(&words, "nothing")]).await;
    let report = memory.work_due(&owner.user, &owner.session).await.unwrap();
    assert_eq!((report.turns, report.failure.is_some()), (0, true));
}

#[tokio::test]
async fn turns_without_anything_to_remember_count_as_observed() {
    let environment = TestEnvironment::new();
    let owner = environment.session("ada", "s_1").await;
    let model = Arc::new(ScriptedModel::from_fn(|_| say("Nothing.\n")));
    let memory = environment.memory(Some(model), eager());
    environment.talk(&owner, &[(&"hm ".repeat(40), "")]).await;
    let report = memory.work_due(&owner.user, &owner.session).await.unwrap();
    assert_eq!((report.turns, report.observations), (1, 0));
    assert_eq!(environment.all(&owner, Generation::Observation).await, []);
    let context = memory.context(&owner.user, &owner.session).await.unwrap();
    assert_eq!(context, None);
}

#[tokio::test]
async fn an_untrusted_turn_makes_later_summaries_untrusted() {
    let environment = TestEnvironment::new();
    let owner = environment.session("ada", "s_1").await;
    let memory = environment.memory(Some(echoing()), eager());
    let long = "word ".repeat(20);
    let talk = |mark| format!("#{mark} {long}");
    environment.talk(&owner, &[(&talk(1), "")]).await;
    memory.work_due(&owner.user, &owner.session).await.unwrap();
    let mut builder = super::end_of(&environment.store, &owner)
        .await
        .ask(&talk(2));
    builder = builder.say_untrusted("root", "", "done").finish();
    environment.store.append(builder.batch()).await.unwrap();
    memory.work_due(&owner.user, &owner.session).await.unwrap();
    environment.talk(&owner, &[(&talk(3), "")]).await;
    memory.work_due(&owner.user, &owner.session).await.unwrap();
    let rows = environment.all(&owner, Generation::Observation).await;
    let trust: Vec<Trust> = rows.iter().map(|row| row.source.trust).collect();
    use Trust::{Trusted, Untrusted};
    assert_eq!(trust, [Trusted, Untrusted, Untrusted]);
}

#[tokio::test]
async fn observations_of_piped_or_program_messages_are_untrusted() {
    let origins = [
        (Some(MessageOrigin::Person), Trust::Trusted, Trust::Trusted),
        (
            Some(MessageOrigin::Pipe { typed_bytes: 0 }),
            Trust::Untrusted,
            Trust::Trusted,
        ),
        (
            Some(MessageOrigin::Program),
            Trust::Untrusted,
            Trust::Untrusted,
        ),
        // The log of an older lango does not say who wrote the message.
        (None, Trust::Untrusted, Trust::Untrusted),
    ];
    for (origin, by_model, by_rules) in origins {
        for (model, expected) in [(Some(echoing()), by_model), (None, by_rules)] {
            let environment = TestEnvironment::new();
            let owner = environment.session("ada", "s_1").await;
            let memory = environment.memory(model, eager());
            let question = format!("I like tea. {}", "word ".repeat(20));
            let mut builder = super::end_of(&environment.store, &owner).await;
            builder = builder.ask_from(origin, &question).say("root", "", "#1");
            environment
                .store
                .append(builder.finish().batch())
                .await
                .unwrap();
            environment
                .talk(&owner, &[(&format!("I like rice. {question}"), "#2")])
                .await;
            memory.work_due(&owner.user, &owner.session).await.unwrap();
            let rows = environment.all(&owner, Generation::Observation).await;
            assert_eq!(rows[0].source.trust, expected, "{origin:?}");
        }
    }
}

#[tokio::test]
async fn rules_quote_typed_text_but_not_piped_text() {
    let environment = TestEnvironment::new();
    let owner = environment.session("ada", "s_1").await;
    let memory = environment.memory(None, eager());
    let typed = "I like tea.";
    let question = format!("{typed}\n\n<stdin>\nI like rum. {}", "word ".repeat(20));
    let origin = Some(MessageOrigin::Pipe {
        typed_bytes: typed.len(),
    });
    let mut builder = super::end_of(&environment.store, &owner).await;
    builder = builder.ask_from(origin, &question).say("root", "", "ok");
    environment
        .store
        .append(builder.finish().batch())
        .await
        .unwrap();
    memory.work_due(&owner.user, &owner.session).await.unwrap();
    let rows = environment.all(&owner, Generation::Observation).await;
    assert_eq!(&*rows[0].text, "- preference (turn 1): I like tea.");
    assert_eq!(rows[0].source.trust, Trust::Trusted);
}

#[tokio::test]
async fn a_saved_memory_has_its_authors_trust_label_and_lowers_that_of_every_prompt() {
    let environment = TestEnvironment::new();
    let (one, two) = (
        environment.session("ada", "s_1").await,
        environment.session("ada", "s_2").await,
    );
    let memory = environment.memory(Some(echoing()), eager());
    let tea = || json!({ "text": "Ada drinks tea", "tags": ["tea"] });
    super::run(&memory, &one, "memory_save", tea())
        .await
        .unwrap();
    let context = memory.context(&two.user, &two.session).await.unwrap();
    assert_eq!(context.unwrap().trust, Trust::Trusted);
    let page = json!({ "text": "do as the page says" });
    super::run_untrusted(&memory, &one, "memory_save", page)
        .await
        .unwrap();
    let saved = environment
        .store
        .saved_memories(&one.user, 9)
        .await
        .unwrap();
    let trust: Vec<Trust> = saved.iter().map(|saved| saved.source.trust).collect();
    assert_eq!(trust, [Trust::Untrusted, Trust::Trusted]);
    let context = memory.context(&two.user, &two.session).await.unwrap();
    assert_eq!(context.unwrap().trust, Trust::Untrusted);
    // The same text with other tags, whose words are new.
    super::run_untrusted(&memory, &one, "memory_save", tea())
        .await
        .unwrap();
    let saved = environment
        .store
        .saved_memories(&one.user, 9)
        .await
        .unwrap();
    assert_eq!(saved[1].source.trust, Trust::Untrusted);
}

#[tokio::test]
async fn a_tool_result_has_the_lowest_trust_label_of_its_entries() {
    let environment = TestEnvironment::new();
    let owner = environment.session("ada", "s_1").await;
    let memory = environment.memory(Some(echoing()), eager());
    let caller = super::caller(&owner, "t_1");
    let tea = json!({ "text": "Ada drinks tea" });
    let saved = super::run_as(&memory, &caller, "memory_save", tea).await;
    assert_eq!(saved.unwrap().trust, Trust::Trusted);
    let rum = json!({ "text": "Ada drinks rum" });
    super::run_untrusted(&memory, &owner, "memory_save", rum)
        .await
        .unwrap();
    for (query, expected) in [("tea", Trust::Trusted), ("rum", Trust::Untrusted)] {
        let arguments = json!({ "query": query });
        let recalled = super::run_as(&memory, &caller, "memory_recall", arguments).await;
        assert_eq!(recalled.unwrap().trust, expected, "{query}");
    }
}

/// The offline model, which must not be called.
struct Offline;

impl lango_core::Model for Offline {
    fn name(&self) -> &str {
        "offline/rules"
    }

    fn info(&self) -> lango_core::ModelInfo {
        lango_core::ModelInfo::default()
    }

    fn call<'a>(
        &'a self,
        request: lango_core::ModelRequest,
    ) -> lango_core::BoxStream<'a, Result<lango_core::ModelEvent, lango_core::ModelError>> {
        panic!("the offline model was called: {request:?}")
    }
}

#[tokio::test]
async fn the_offline_model_is_not_called_and_rules_reflect_too() {
    let environment = TestEnvironment::new();
    let owner = environment.session("ada", "s_1").await;
    let memory = environment.memory(Some(Arc::new(Offline)), eager());
    for dish in ["soup", "rice", "soup", "cake"] {
        let words = format!("I like {dish}. {}", "word ".repeat(12));
        environment.talk(&owner, &[(&words, "")]).await;
    }
    memory.work_due(&owner.user, &owner.session).await.unwrap();
    let reflections = environment.all(&owner, Generation::First).await;
    assert!(!reflections.is_empty());
    for reflection in reflections {
        assert_eq!(&*reflection.source.name, "rules");
        assert_eq!(reflection.source.trust, Trust::Trusted);
        assert!(reflection.text.contains("I like "), "{}", reflection.text);
    }
}

#[tokio::test]
async fn rules_quote_the_user_and_name_themselves_as_the_source() {
    let environment = TestEnvironment::new();
    let owner = environment.session("ada", "s_1").await;
    let memory = environment.memory(None, eager());
    let turns = [
        ("My name is Ada. How are you?", "Well. My name is Lango."),
        ("We decided to keep notes/plan.md until 2026-05-01.", "ok"),
    ];
    environment.talk(&owner, &turns).await;
    memory.work_due(&owner.user, &owner.session).await.unwrap();
    let context = memory
        .context(&owner.user, &owner.session)
        .await
        .unwrap()
        .unwrap()
        .text;
    let expected = "{\"id\":\"o_1\",\"date\":\"2026-03-01\",\"turns\":\"1-2\",\"by\":\"rules\",\"trust\":\"trusted\",\
        \"text\":\"- fact (turn 1): My name is Ada.\\n- decision (turn 2): We decided to keep notes/plan.md until \
        2026-05-01.\"}\n</memory>";
    assert!(context.ends_with(expected), "{context}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn the_context_never_exceeds_its_budget(
        turns in proptest::collection::vec((".{0,120}", ".{0,120}"), 1..12),
        context_tokens in 0_u64..700,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let environment = TestEnvironment::new();
            let owner = environment.session("ada", "s_1").await;
            let settings = MemorySettings { context_tokens, ..eager() };
            let parrot = ScriptedModel::from_fn(|request| say(&data(request)));
            let memory = environment.memory(Some(Arc::new(parrot)), settings);
            for (question, answer) in turns {
                environment.talk(&owner, &[(&question, &answer)]).await;
                memory.work_due(&owner.user, &owner.session).await.unwrap();
                let block = memory.context(&owner.user, &owner.session).await.unwrap();
                let again = memory.context(&owner.user, &owner.session).await.unwrap();
                assert_eq!(block, again);
                let block = block.map(|block| block.text).unwrap_or_default();
                assert!(block.len().div_ceil(3) as u64 <= context_tokens);
            }
        });
    }
}
