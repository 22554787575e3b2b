//! Concurrent steps: the slower one drops its result, and nothing is stored twice.

use super::{Echo, TestEnvironment, all, eager, echoing, marks, memory, run};
use lango_core::Model;
use lango_store::Generation;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[tokio::test]
async fn a_step_that_is_overtaken_during_the_model_call_is_dropped() {
    let environment = TestEnvironment::new();
    let owner = environment.session("ada", "s_1").await;
    environment
        .talk(&owner, &[(&format!("#1 {}", "word ".repeat(30)), "")])
        .await;
    let other = environment.memory(Some(echoing()), eager());
    let meanwhile = {
        let owner = owner.clone();
        move || {
            let (other, owner) = (other.clone(), owner.clone());
            async move {
                other.work_due(&owner.user, &owner.session).await.unwrap();
            }
        }
    };
    let slow = environment.memory(Some(Arc::new(Echo(meanwhile))), eager());
    let report = slow.work_due(&owner.user, &owner.session).await.unwrap();
    assert_eq!((report.turns, report.dropped), (0, 1));
    assert_eq!(
        super::tools::text_of(&environment, &owner).await,
        "- seen #1"
    );
}

#[tokio::test]
async fn a_memory_forgotten_during_the_model_call_does_not_come_back() {
    let environment = TestEnvironment::new();
    let owner = environment.session("ada", "s_1").await;
    let plain = environment.memory(Some(echoing()), eager());
    for text in ["#1 pin", "#2 tea"] {
        run(&plain, &owner, "observe_note", json!({ "text": text }))
            .await
            .unwrap();
    }
    let once = Arc::new(AtomicBool::new(false));
    let meanwhile = {
        let owner = owner.clone();
        move || {
            let (plain, owner, once) = (plain.clone(), owner.clone(), Arc::clone(&once));
            async move {
                if !once.swap(true, Ordering::Relaxed) {
                    run(&plain, &owner, "memory_forget", json!({ "query": "pin" }))
                        .await
                        .unwrap();
                }
            }
        }
    };
    let slow = environment.memory(Some(Arc::new(Echo(meanwhile))), eager());
    run(&slow, &owner, "reflect_now", json!({})).await.unwrap();
    let context = slow
        .context(&owner.user, &owner.session)
        .await
        .unwrap()
        .unwrap()
        .text;
    assert_eq!(marks(&context).into_keys().collect::<Vec<_>>(), [2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_concurrent_processes_observe_every_turn_once() {
    let environment = TestEnvironment::new();
    let owner = environment.session("ada", "s_1").await;
    let second = environment.place.open();
    for number in 1..=40 {
        environment
            .talk(&owner, &[(&format!("#{number} {}", "word ".repeat(8)), "")])
            .await;
        let workers = [&environment.store, &environment.store, &second].map(|store| {
            let model: Arc<dyn Model> = echoing();
            let (memory, owner) = (memory(store, Some(model), eager()), owner.clone());
            tokio::spawn(async move { memory.work_due(&owner.user, &owner.session).await.unwrap() })
        });
        for worker in workers {
            worker.await.unwrap();
        }
    }
    let rows = all(&environment.store, &owner, Generation::Observation).await;
    let texts: String = rows.iter().map(|row| format!("{}\n", row.text)).collect();
    let seen = marks(&texts);
    assert!(
        seen.len() >= 38 && seen.values().all(|times| *times == 1),
        "{seen:?}"
    );
}
