//! Others at the same time: whoever is slower gives up its result, and nothing is there twice.

use super::{Desk, Echo, all, eager, echoing, marks, memory, run};
use lango_core::Model;
use lango_store::Generation;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[tokio::test]
async fn a_step_that_was_overtaken_while_the_model_thought_is_dropped() {
    let desk = Desk::new();
    let owner = desk.session("ada", "s_1").await;
    desk.talk(&owner, &[(&format!("#1 {}", "word ".repeat(30)), "")])
        .await;
    let other = desk.memory(Some(echoing()), eager());
    let meanwhile = {
        let owner = owner.clone();
        move || {
            let (other, owner) = (other.clone(), owner.clone());
            async move {
                other.work_due(&owner.user, &owner.session).await.unwrap();
            }
        }
    };
    let slow = desk.memory(Some(Arc::new(Echo(meanwhile))), eager());
    let report = slow.work_due(&owner.user, &owner.session).await.unwrap();
    assert_eq!((report.turns, report.dropped), (0, 1));
    assert_eq!(super::tools::text_of(&desk, &owner).await, "- seen #1");
}

#[tokio::test]
async fn what_is_forgotten_while_the_model_thinks_does_not_come_back() {
    let desk = Desk::new();
    let owner = desk.session("ada", "s_1").await;
    let plain = desk.memory(Some(echoing()), eager());
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
    let slow = desk.memory(Some(Arc::new(Echo(meanwhile))), eager());
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
async fn two_processes_that_work_at_once_observe_every_turn_once() {
    let desk = Desk::new();
    let owner = desk.session("ada", "s_1").await;
    let second = desk.place.open();
    for number in 1..=40 {
        desk.talk(&owner, &[(&format!("#{number} {}", "word ".repeat(8)), "")])
            .await;
        let workers = [&desk.store, &desk.store, &second].map(|store| {
            let model: Arc<dyn Model> = echoing();
            let (memory, owner) = (memory(store, Some(model), eager()), owner.clone());
            tokio::spawn(async move { memory.work_due(&owner.user, &owner.session).await.unwrap() })
        });
        for worker in workers {
            worker.await.unwrap();
        }
    }
    let rows = all(&desk.store, &owner, Generation::Observation).await;
    let texts: String = rows.iter().map(|row| format!("{}\n", row.text)).collect();
    let seen = marks(&texts);
    assert!(
        seen.len() >= 38 && seen.values().all(|times| *times == 1),
        "{seen:?}"
    );
}
