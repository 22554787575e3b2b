//! When turns are observed and observations condensed, and what is kept of them.

use super::{Desk, NOW, data, eager, echoing, failing, marks, tools::text_of};
use lango_core::{MessageOrigin, SessionStore, Trust};
use lango_knowledge::{MemoryReport, MemorySettings};
use lango_store::Generation;
use lango_testkit::model::{ScriptedModel, say};
use proptest::prelude::*;
use serde_json::json;
use std::sync::Arc;

#[tokio::test]
async fn turns_are_observed_when_they_pass_the_threshold_and_not_before() {
    let desk = Desk::new();
    let owner = desk.session("ada", "s_1").await;
    let model = Arc::new(ScriptedModel::from_fn(|_| say("- they like tea")));
    let memory = desk.memory(Some(model.clone()), MemorySettings::default());
    // 1499 + 1500 bytes are 500 + 500 tokens: the threshold, which must be passed.
    let (question, answer) = ("q".repeat(1499), "a".repeat(1500));
    desk.talk(&owner, &[(&question, &answer)]).await;
    let report = memory.work_due(&owner.user, &owner.session).await.unwrap();
    assert_eq!(report, MemoryReport::default());
    assert_eq!(model.asked().len(), 0);
    desk.talk(&owner, &[("x", "")]).await;
    let report = memory.work_due(&owner.user, &owner.session).await.unwrap();
    assert_eq!((report.turns, report.observations), (2, 1));
    let again = memory.work_due(&owner.user, &owner.session).await.unwrap();
    assert_eq!(again, MemoryReport::default());
    assert_eq!(model.asked().len(), 1);
    let [observation] = &desk.all(&owner, Generation::Observation).await[..] else {
        panic!("one observation");
    };
    assert_eq!(&*observation.text, "- they like tea");
    assert_eq!(observation.turns, (0, 1));
    assert_eq!(&*observation.source.name, "test/scripted");
    assert_eq!(observation.created, NOW);
}

#[tokio::test]
async fn a_turn_that_goes_on_is_not_observed_and_one_left_behind_is_passed_over() {
    let desk = Desk::new();
    let owner = desk.session("ada", "s_1").await;
    let memory = desk.memory(Some(echoing()), eager());
    let long = "word ".repeat(20);
    let mut sketch = super::end_of(&desk.store, &owner).await;
    sketch = sketch.ask(&format!("#1 {long}"));
    desk.store.append(sketch.batch()).await.unwrap();
    let report = memory.work_due(&owner.user, &owner.session).await.unwrap();
    assert_eq!(report, MemoryReport::default());
    // A log from before turns were closed may hold one that never ended.
    desk.talk(&owner, &[(&format!("#2 {long}"), "")]).await;
    let report = memory.work_due(&owner.user, &owner.session).await.unwrap();
    assert_eq!(report.turns, 2);
    assert_eq!(text_of(&desk, &owner).await, "- seen #2");
}

#[tokio::test]
async fn observations_become_reflections_and_those_a_second_generation() {
    let desk = Desk::new();
    let owner = desk.session("ada", "s_1").await;
    let memory = desk.memory(Some(echoing()), eager());
    let mut most_second = 0;
    for number in 1..=120 {
        let words = format!("#{number} {}", "word ".repeat(15));
        desk.talk(&owner, &[(&words, "yes")]).await;
        memory.work_due(&owner.user, &owner.session).await.unwrap();
        most_second = most_second.max(desk.all(&owner, Generation::Second).await.len());
        // Whatever the generation, each turn stands in exactly one loose row.
        let mut loose = String::new();
        for generation in [
            Generation::Observation,
            Generation::First,
            Generation::Second,
        ] {
            let rows = desk.all(&owner, generation).await;
            let texts = rows.iter().filter(|row| !row.is_part);
            loose.extend(texts.map(|row| format!("{}\n", row.text)));
        }
        let expected = (1..=number).map(|number| (number, 1)).collect();
        assert_eq!(marks(&loose), expected);
    }
    assert!(most_second > 0);
}

#[tokio::test]
async fn many_short_turns_are_due_though_they_are_short() {
    let desk = Desk::new();
    let owner = desk.session("ada", "s_1").await;
    let memory = desk.memory(Some(echoing()), MemorySettings::default());
    let turns: Vec<String> = (1..=130).map(|number| format!("#{number}")).collect();
    let turns: Vec<(&str, &str)> = turns.iter().map(|turn| (turn.as_str(), "")).collect();
    desk.talk(&owner, &turns).await;
    let report = memory.work_due(&owner.user, &owner.session).await.unwrap();
    assert_eq!((report.turns, report.observations), (128, 2));
}

#[tokio::test]
async fn a_turn_that_goes_on_does_not_fill_a_batch_of_short_ones() {
    let desk = Desk::new();
    let owner = desk.session("ada", "s_1").await;
    let memory = desk.memory(Some(echoing()), MemorySettings::default());
    desk.talk(&owner, &[("hm", ""); 63]).await;
    let mut sketch = super::end_of(&desk.store, &owner).await.ask("#64");
    desk.store.append(sketch.batch()).await.unwrap();
    let report = memory.work_due(&owner.user, &owner.session).await.unwrap();
    assert_eq!(report, MemoryReport::default());
    let mut sketch = sketch.say("root", "", "yes").finish();
    desk.store.append(sketch.batch()).await.unwrap();
    memory.work_due(&owner.user, &owner.session).await.unwrap();
    assert_eq!(text_of(&desk, &owner).await, "- seen #64");
}

#[tokio::test]
async fn a_huge_turn_is_cut_before_a_model_sees_it() {
    let desk = Desk::new();
    let owner = desk.session("ada", "s_1").await;
    let model = Arc::new(ScriptedModel::from_fn(|_| say("- long")));
    let memory = desk.memory(Some(model.clone()), MemorySettings::default());
    let (question, answer) = ("ä".repeat(500_000), "b".repeat(500_000));
    desk.talk(&owner, &[(&question, &answer)]).await;
    memory.work_due(&owner.user, &owner.session).await.unwrap();
    let sent = data(&model.asked()[0]);
    assert!(sent.len() < 7000, "{}", sent.len());
    assert!(sent.contains("[cut: 997000 more bytes]"), "{sent}");
}

#[tokio::test]
async fn a_model_that_fails_is_asked_again_and_the_third_time_rules_take_over() {
    let desk = Desk::new();
    let owner = desk.session("ada", "s_1").await;
    let model = Arc::new(ScriptedModel::new(|_| failing()));
    let memory = desk.memory(Some(model.clone()), eager());
    let words = "I prefer short answers. What is new?".repeat(2);
    desk.talk(&owner, &[(&words, "nothing")]).await;
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
    assert_eq!(model.asked().len(), 3);
    let observation = desk.all(&owner, Generation::Observation).await.remove(0);
    assert_eq!(&*observation.source.name, "rules");
    assert!(
        observation
            .text
            .starts_with("- preference (turn 1): I prefer short answers.")
    );
    // The next batch is the model's to fail again.
    desk.talk(&owner, &[(&words, "nothing")]).await;
    let report = memory.work_due(&owner.user, &owner.session).await.unwrap();
    assert_eq!((report.turns, report.failure.is_some()), (0, true));
}

#[tokio::test]
async fn what_is_not_worth_a_word_leaves_none_and_counts_as_observed() {
    let desk = Desk::new();
    let owner = desk.session("ada", "s_1").await;
    let model = Arc::new(ScriptedModel::from_fn(|_| say("Nothing.\n")));
    let memory = desk.memory(Some(model), eager());
    desk.talk(&owner, &[(&"hm ".repeat(40), "")]).await;
    let report = memory.work_due(&owner.user, &owner.session).await.unwrap();
    assert_eq!((report.turns, report.observations), (1, 0));
    assert_eq!(desk.all(&owner, Generation::Observation).await, []);
    let context = memory.context(&owner.user, &owner.session).await.unwrap();
    assert_eq!(context, None);
}

#[tokio::test]
async fn what_came_from_outside_marks_all_that_is_made_after_it() {
    let desk = Desk::new();
    let owner = desk.session("ada", "s_1").await;
    let memory = desk.memory(Some(echoing()), eager());
    let long = "word ".repeat(20);
    let talk = |mark| format!("#{mark} {long}");
    desk.talk(&owner, &[(&talk(1), "")]).await;
    memory.work_due(&owner.user, &owner.session).await.unwrap();
    let mut sketch = super::end_of(&desk.store, &owner).await.ask(&talk(2));
    sketch = sketch.say_untrusted("root", "", "done").finish();
    desk.store.append(sketch.batch()).await.unwrap();
    memory.work_due(&owner.user, &owner.session).await.unwrap();
    desk.talk(&owner, &[(&talk(3), "")]).await;
    memory.work_due(&owner.user, &owner.session).await.unwrap();
    let rows = desk.all(&owner, Generation::Observation).await;
    let trust: Vec<Trust> = rows.iter().map(|row| row.source.trust).collect();
    use Trust::{Trusted, Untrusted};
    assert_eq!(trust, [Trusted, Untrusted, Untrusted]);
}

#[tokio::test]
async fn what_is_made_of_a_piped_message_or_one_of_a_program_is_untrusted() {
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
        // A log of an older lango does not say who wrote it.
        (None, Trust::Untrusted, Trust::Untrusted),
    ];
    for (origin, by_model, by_rules) in origins {
        for (model, expected) in [(Some(echoing()), by_model), (None, by_rules)] {
            let desk = Desk::new();
            let owner = desk.session("ada", "s_1").await;
            let memory = desk.memory(model, eager());
            let question = format!("I like tea. {}", "word ".repeat(20));
            let mut sketch = super::end_of(&desk.store, &owner).await;
            sketch = sketch.ask_from(origin, &question).say("root", "", "#1");
            desk.store.append(sketch.finish().batch()).await.unwrap();
            desk.talk(&owner, &[(&format!("I like rice. {question}"), "#2")])
                .await;
            memory.work_due(&owner.user, &owner.session).await.unwrap();
            let rows = desk.all(&owner, Generation::Observation).await;
            assert_eq!(rows[0].source.trust, expected, "{origin:?}");
        }
    }
}

#[tokio::test]
async fn rules_quote_what_was_typed_and_not_what_was_piped() {
    let desk = Desk::new();
    let owner = desk.session("ada", "s_1").await;
    let memory = desk.memory(None, eager());
    let typed = "I like tea.";
    let question = format!("{typed}\n\n<stdin>\nI like rum. {}", "word ".repeat(20));
    let origin = Some(MessageOrigin::Pipe {
        typed_bytes: typed.len(),
    });
    let mut sketch = super::end_of(&desk.store, &owner).await;
    sketch = sketch.ask_from(origin, &question).say("root", "", "ok");
    desk.store.append(sketch.finish().batch()).await.unwrap();
    memory.work_due(&owner.user, &owner.session).await.unwrap();
    let rows = desk.all(&owner, Generation::Observation).await;
    assert_eq!(&*rows[0].text, "- preference (turn 1): I like tea.");
    assert_eq!(rows[0].source.trust, Trust::Trusted);
}

#[tokio::test]
async fn what_is_saved_has_the_label_of_its_author_and_lowers_that_of_every_prompt() {
    let desk = Desk::new();
    let (one, two) = (
        desk.session("ada", "s_1").await,
        desk.session("ada", "s_2").await,
    );
    let memory = desk.memory(Some(echoing()), eager());
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
    let saved = desk.store.saved_memories(&one.user, 9).await.unwrap();
    let trust: Vec<Trust> = saved.iter().map(|saved| saved.source.trust).collect();
    assert_eq!(trust, [Trust::Untrusted, Trust::Trusted]);
    let context = memory.context(&two.user, &two.session).await.unwrap();
    assert_eq!(context.unwrap().trust, Trust::Untrusted);
    // The same words with other tags: the tags are new words.
    super::run_untrusted(&memory, &one, "memory_save", tea())
        .await
        .unwrap();
    let saved = desk.store.saved_memories(&one.user, 9).await.unwrap();
    assert_eq!(saved[1].source.trust, Trust::Untrusted);
}

#[tokio::test]
async fn a_result_of_memory_has_the_lowest_label_of_the_entries_in_it() {
    let desk = Desk::new();
    let owner = desk.session("ada", "s_1").await;
    let memory = desk.memory(Some(echoing()), eager());
    let caller = super::caller(&owner, "t_1");
    let tea = json!({ "text": "Ada drinks tea" });
    let saved = super::run_as(&memory, &caller, "memory_save", tea).await;
    assert_eq!(saved.unwrap().trust, Trust::Trusted);
    let rum = json!({ "text": "Ada drinks rum" });
    super::run_untrusted(&memory, &owner, "memory_save", rum)
        .await
        .unwrap();
    for (query, expected) in [("tea", Trust::Trusted), ("rum", Trust::Untrusted)] {
        let asked = json!({ "query": query });
        let recalled = super::run_as(&memory, &caller, "memory_recall", asked).await;
        assert_eq!(recalled.unwrap().trust, expected, "{query}");
    }
}

/// The offline model, which must not be asked.
struct Offline;

impl lango_core::Model for Offline {
    fn name(&self) -> &str {
        "offline/rules"
    }

    fn terms(&self) -> lango_core::ModelTerms {
        lango_core::ModelTerms::default()
    }

    fn call<'a>(
        &'a self,
        request: lango_core::ModelRequest,
    ) -> lango_core::BoxStream<'a, Result<lango_core::ModelEvent, lango_core::ModelError>> {
        panic!("it was asked: {request:?}")
    }
}

#[tokio::test]
async fn the_offline_model_is_not_asked_and_its_rules_reflect_too() {
    let desk = Desk::new();
    let owner = desk.session("ada", "s_1").await;
    let memory = desk.memory(Some(Arc::new(Offline)), eager());
    for dish in ["soup", "rice", "soup", "cake"] {
        let words = format!("I like {dish}. {}", "word ".repeat(12));
        desk.talk(&owner, &[(&words, "")]).await;
    }
    memory.work_due(&owner.user, &owner.session).await.unwrap();
    let reflections = desk.all(&owner, Generation::First).await;
    assert!(!reflections.is_empty());
    for reflection in reflections {
        assert_eq!(&*reflection.source.name, "rules");
        assert_eq!(reflection.source.trust, Trust::Trusted);
        assert!(reflection.text.contains("I like "), "{}", reflection.text);
    }
}

#[tokio::test]
async fn rules_keep_the_persons_words_and_say_that_they_are_rules() {
    let desk = Desk::new();
    let owner = desk.session("ada", "s_1").await;
    let memory = desk.memory(None, eager());
    let turns = [
        ("My name is Ada. How are you?", "Well. My name is Lango."),
        ("We decided to keep notes/plan.md until 2026-05-01.", "ok"),
    ];
    desk.talk(&owner, &turns).await;
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
    fn the_context_keeps_its_budget_at_every_turn(
        turns in proptest::collection::vec((".{0,120}", ".{0,120}"), 1..12),
        context_tokens in 0_u64..700,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let desk = Desk::new();
            let owner = desk.session("ada", "s_1").await;
            let settings = MemorySettings { context_tokens, ..eager() };
            let parrot = ScriptedModel::from_fn(|request| say(&data(request)));
            let memory = desk.memory(Some(Arc::new(parrot)), settings);
            for (question, answer) in turns {
                desk.talk(&owner, &[(&question, &answer)]).await;
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
