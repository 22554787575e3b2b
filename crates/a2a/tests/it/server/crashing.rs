//! A server that dies at any point between taking a message and having told how it ended: the next one, or another, brings the
//! task to its end. Nothing is lost and nothing is done twice.

use super::support::{message, soon};
use super::world::{Copy, Point, Shelf, World, in_process, on_each, quick};
use lango_a2a::server::RunCause;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::runtime::Runtime;

const POINTS: [Point; 8] = [
    Point::BeforeHold,
    Point::Held,
    Point::Begun,
    Point::Stepped(0),
    Point::Stepped(2),
    Point::BeforeEnd,
    Point::Ended,
    Point::Told,
];

on_each! { sync
    whatever_a_death_broke_off_is_brought_to_its_end_by_the_next_start
    another_copy_takes_up_what_a_death_broke_off_and_its_listeners_hear_the_end
    a_conversation_goes_on_in_its_order_after_a_death
    many_tasks_are_taken_up_a_few_at_a_time_and_all_of_them_end
    a_server_that_stops_in_order_leaves_its_tasks_to_another
}

fn assert_done(task: &Value) {
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
    let artifacts = task["artifacts"].as_array().unwrap();
    assert_eq!(artifacts.len(), 1);
    assert_eq!(artifacts[0]["parts"][0]["text"], "0 1 2 ", "{task}");
}

/// Has a process die at a point with one message taken, and gives the task's id.
fn die(shelf: &Shelf, world: &Arc<World>, point: Point, params: &Value) -> Value {
    let process = Runtime::new().unwrap();
    let id = process.block_on(async {
        let copy = Copy::dying(shelf, world, point).await;
        copy.allow(3);
        let mut params = params.clone();
        params["configuration"] = json!({ "returnImmediately": true });
        let id = copy.result("SendMessage", params).await["task"]["id"].clone();
        soon(copy.agent.reached.notified()).await;
        id
    });
    // Nobody is told, nothing is tidied up.
    drop(process);
    id
}

fn whatever_a_death_broke_off_is_brought_to_its_end_by_the_next_start(shelf: Shelf) {
    for point in POINTS {
        let world = Arc::<World>::default();
        let params = json!({ "message": message("steps 3") });
        let id = die(&shelf, &world, point, &params);
        let process = Runtime::new().unwrap();
        process.block_on(async {
            let copy = Copy::start(&shelf, &world).await;
            copy.allow(3);
            assert_done(&copy.until(&id, "TASK_STATE_COMPLETED").await);
            // The client that lost its answer asks again.
            let again = copy.result("SendMessage", params).await;
            assert_eq!(again["task"]["id"], id);
            let params = json!({ "contextId": again["task"]["contextId"] });
            let list = copy.result("ListTasks", params).await;
            assert_eq!(list["totalSize"], 1);
            let starts: Vec<RunCause> = copy
                .agent
                .runs
                .lock()
                .unwrap()
                .iter()
                .map(|run| run.cause)
                .collect();
            let is_known = matches!(point, Point::Ended | Point::Told);
            let expected = if is_known {
                vec![]
            } else {
                vec![RunCause::Resumed]
            };
            assert_eq!(starts, expected, "{point:?}");
        });
        let steps: Vec<usize> = world
            .steps
            .lock()
            .unwrap()
            .iter()
            .map(|(_, step)| *step)
            .collect();
        assert_eq!(steps, [0, 1, 2], "{point:?}");
        assert_eq!(world.begun.lock().unwrap().len(), 1, "{point:?}");
    }
}

fn another_copy_takes_up_what_a_death_broke_off_and_its_listeners_hear_the_end(shelf: Shelf) {
    for point in POINTS {
        let world = Arc::<World>::default();
        let survivor = Runtime::new().unwrap();
        let copy = survivor.block_on(Copy::start(&shelf, &world));
        let params = json!({ "message": message("steps 3") });
        let dying = Runtime::new().unwrap();
        let id = dying.block_on(async {
            let copy = Copy::dying(&shelf, &world, point).await;
            copy.allow(3);
            let mut params = params.clone();
            params["configuration"] = json!({ "returnImmediately": true });
            let id = copy.result("SendMessage", params).await["task"]["id"].clone();
            soon(copy.agent.reached.notified()).await;
            id
        });
        survivor.block_on(async {
            let events = match copy.task(&id).await["status"]["state"].as_str() {
                Some("TASK_STATE_COMPLETED") => None,
                _ => Some(copy.subscribe(&id).await),
            };
            drop(tokio::task::spawn_blocking(move || drop(dying)).await);
            copy.allow(3);
            assert_done(&copy.until(&id, "TASK_STATE_COMPLETED").await);
            if let Some(events) = events {
                let events = events.rest().await;
                let last = events.last().unwrap();
                let state = match last.get("task") {
                    Some(task) => &task["status"]["state"],
                    None => &last["statusUpdate"]["status"]["state"],
                };
                assert_eq!(state, "TASK_STATE_COMPLETED", "{point:?} {events:?}");
            }
            let again = copy.result("SendMessage", params).await;
            assert_eq!(again["task"]["id"], id);
        });
        let steps: Vec<usize> = world
            .steps
            .lock()
            .unwrap()
            .iter()
            .map(|(_, step)| *step)
            .collect();
        assert_eq!(steps, [0, 1, 2], "{point:?}");
    }
}

fn a_conversation_goes_on_in_its_order_after_a_death(shelf: Shelf) {
    let world = Arc::<World>::default();
    let process = Runtime::new().unwrap();
    let ids: Vec<Value> = process.block_on(async {
        let copy = Copy::start(&shelf, &world).await;
        let mut ids = Vec::new();
        for number in 0..5 {
            let mut message = message(&format!("{number}: steps 1"));
            message["contextId"] = json!("one");
            let params = json!({
                "message": message, "configuration": { "returnImmediately": true },
            });
            ids.push(copy.result("SendMessage", params).await["task"]["id"].clone());
            // Their order is that of their times.
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
        copy.until(&ids[0], "TASK_STATE_WORKING").await;
        ids
    });
    drop(process);
    let process = Runtime::new().unwrap();
    process.block_on(async {
        let copy = Copy::start(&shelf, &world).await;
        copy.allow(5);
        for id in &ids {
            copy.until(id, "TASK_STATE_COMPLETED").await;
        }
        assert_eq!(
            world.most.load(Ordering::SeqCst),
            1,
            "one task of a conversation runs at a time"
        );
        assert_eq!(copy.agent.runs.lock().unwrap().len(), 5);
    });
    let begun: Vec<Value> = world
        .begun
        .lock()
        .unwrap()
        .iter()
        .map(|id| json!(id))
        .collect();
    assert_eq!(begun, ids);
}

fn many_tasks_are_taken_up_a_few_at_a_time_and_all_of_them_end(shelf: Shelf) {
    let world = Arc::<World>::default();
    let process = Runtime::new().unwrap();
    let ids: Vec<Value> = process.block_on(async {
        let copy = Copy::start(&shelf, &world).await;
        let mut ids = Vec::new();
        for _ in 0..60 {
            ids.push(copy.begin("steps 1").await["id"].clone());
        }
        ids
    });
    drop(process);
    world.most.store(0, Ordering::SeqCst);
    let process = Runtime::new().unwrap();
    process.block_on(async {
        let mut settings = quick();
        settings.limits.recovering = 7;
        let copy = Copy::with(&shelf, &world, None, settings, None).await;
        // New work has places of its own.
        let new = copy.begin("steps 0").await["id"].clone();
        copy.until(&new, "TASK_STATE_COMPLETED").await;
        copy.allow(60);
        for id in &ids {
            copy.until(id, "TASK_STATE_COMPLETED").await;
        }
        let again = copy.agent.runs.lock().unwrap();
        assert_eq!(
            again
                .iter()
                .filter(|run| run.cause == RunCause::Resumed)
                .count(),
            60
        );
    });
    let most = world.most.load(Ordering::SeqCst);
    assert!((7..=8).contains(&most), "{most} were at work at one time");
    assert_eq!(world.steps.lock().unwrap().len(), 60);
}

fn a_server_that_stops_in_order_leaves_its_tasks_to_another(shelf: Shelf) {
    in_process(stops_in_order(shelf));
}

async fn stops_in_order(shelf: Shelf) {
    let world = Arc::<World>::default();
    let first = Copy::start(&shelf, &world).await;
    first.allow(1);
    let running = first.begin("steps 3").await;
    first.stepped(1).await;
    let mut queued = message("steps 1");
    queued["contextId"] = running["contextId"].clone();
    let params = json!({ "message": queued, "configuration": { "returnImmediately": true } });
    let queued = first.result("SendMessage", params).await["task"]["id"].clone();
    soon(first.server.stop(Duration::ZERO)).await;

    let second = Copy::start(&shelf, &world).await;
    second.allow(3);
    let running = &running["id"];
    assert_done(&second.until(running, "TASK_STATE_COMPLETED").await);
    second.until(&queued, "TASK_STATE_COMPLETED").await;
    assert_eq!(world.steps.lock().unwrap().len(), 4);
    assert_eq!(world.begun.lock().unwrap().len(), 2);
}
