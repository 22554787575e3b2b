//! All agents of a configuration together: what is there, what is not, and what comes later.

use super::script::{card, hear, patience, send, settings};
use super::support::{Server, json as answer, response};
use lango_a2a::client::{Binding, RemoteSettings, Remotes, connect_all};
use lango_core::RemoteAgent;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

fn named(name: &str, url: &str) -> RemoteSettings {
    RemoteSettings {
        name: name.into(),
        ..settings(url)
    }
}

async fn good() -> Server {
    Server::start(|seen| {
        let url = format!("http://{}", seen.header("host").unwrap());
        answer(200, &card(&url, Binding::JsonRpc, false))
    })
    .await
}

#[tokio::test]
async fn results_come_in_the_order_of_the_configuration_and_one_bad_card_spoils_no_other() {
    let (first, bad, last) = (
        good().await,
        Server::start(|_| response(500, &[], "")).await,
        good().await,
    );
    let settings = [
        named("a", &first.url),
        named("b", &bad.url),
        named("c", "nonsense"),
        named("d", &last.url),
    ];
    let results = connect_all(&settings, &patience()).await;
    let names: Vec<String> = results
        .iter()
        .map(|result| match result {
            Ok(agent) => format!("{} is there", agent.name()),
            Err(skipped) => format!("{} is not", skipped.name),
        })
        .collect();
    assert_eq!(names, ["a is there", "b is not", "c is not", "d is there"]);
    assert!(connect_all(&[], &patience()).await.is_empty());
}

#[tokio::test]
async fn what_comes_up_later_is_found_in_the_background_and_seen_by_its_generation() {
    let is_up = Arc::new(AtomicBool::new(false));
    let asked = Arc::new(AtomicUsize::new(0));
    let (up, count) = (Arc::clone(&is_up), Arc::clone(&asked));
    let late = Server::start(move |seen| {
        count.fetch_add(1, Ordering::SeqCst);
        if !up.load(Ordering::SeqCst) {
            return response(503, &[], "");
        }
        let url = format!("http://{}", seen.header("host").unwrap());
        answer(200, &card(&url, Binding::HttpJson, true))
    })
    .await;
    let early = good().await;
    let all = vec![named("late", &late.url), named("early", &early.url)];
    let mut remotes = Remotes::connect(all, patience()).await;
    let there = |remotes: &Remotes| -> Vec<String> {
        remotes
            .connected()
            .iter()
            .map(|agent| agent.name().to_string())
            .collect()
    };
    assert_eq!(there(&remotes), ["early"]);
    assert_eq!(remotes.skipped()[0].name, "late");
    assert_eq!(remotes.generation(), 0);
    let mut watch = remotes.watch();
    remotes.retry_in_background();
    remotes.retry_in_background();
    while asked.load(Ordering::SeqCst) < 4 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(remotes.generation(), 0);
    is_up.store(true, Ordering::SeqCst);
    watch.changed().await.unwrap();
    assert_eq!(remotes.generation(), 1);
    assert_eq!(there(&remotes), ["late", "early"]);
    assert!(remotes.skipped().is_empty());
    assert_eq!(
        early.seen().len(),
        1,
        "what is connected is not asked again"
    );
}

#[tokio::test]
async fn dropping_ends_the_background_task() {
    let never = Server::start(|_| response(503, &[], "")).await;
    let mut remotes = Remotes::connect(vec![named("never", &never.url)], patience()).await;
    remotes.retry_in_background();
    while never.seen().len() < 3 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let mut watch = remotes.watch();
    drop(remotes);
    assert!(
        watch.changed().await.is_err(),
        "the last holder of the set is gone"
    );
}

#[tokio::test]
async fn an_agent_that_moved_is_found_at_its_new_place_after_a_call_failed() {
    let new = good().await;
    let place = Arc::new(std::sync::Mutex::new(String::new()));
    let told = Arc::clone(&place);
    let home = Server::start(move |seen| match seen.method.as_str() {
        "GET" => answer(200, &card(&told.lock().unwrap(), Binding::JsonRpc, false)),
        _ => response(404, &[], ""),
    })
    .await;
    *place.lock().unwrap() = home.url.clone();
    let mut remotes = Remotes::connect(vec![named("mover", &home.url)], patience()).await;
    remotes.retry_in_background();
    let mut watch = remotes.watch();
    let old = remotes.connected().remove(0);
    // The card says what it said: nothing changes, and it is not asked for again and again.
    hear(&old, send("x")).await.1.unwrap_err();
    while home
        .seen()
        .iter()
        .filter(|seen| seen.method == "GET")
        .count()
        < 2
    {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // Time enough for another look, if there were a reason for one.
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(remotes.generation(), 0);
    *place.lock().unwrap() = new.url.clone();
    hear(&old, send("x")).await.1.unwrap_err();
    watch.changed().await.unwrap();
    let moved = remotes.connected().remove(0);
    assert_eq!(moved.interface_url(), format!("{}/a2a", new.url));
    let looks = home
        .seen()
        .iter()
        .filter(|seen| seen.method == "GET")
        .count();
    assert_eq!(looks, 3, "at the start, and once after each failed call");
}
