//! All agents of a configuration together: what is there, what is not, and what comes later.

use super::script::{Said, card, deliver, done, hear, patience, send, settings, task};
use super::support::{Act, Server, json as answer, response};
use lango_a2a::client::{Binding, Patience, RemoteSettings, Remotes, SlowCards};
use lango_core::{BoxFuture, RemoteAgent};
use lango_net::{Egress, EgressLimits, EgressRules, HostPattern, Resolver};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

fn named(name: &str, url: &str) -> RemoteSettings {
    RemoteSettings {
        name: name.into(),
        ..settings(url)
    }
}

fn there(remotes: &Remotes) -> Vec<String> {
    let agents = remotes.connected();
    agents
        .iter()
        .map(|agent| agent.name().to_string())
        .collect()
}

/// Waits until it is so.
async fn until(mut is_so: impl FnMut() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let patience = Duration::from_secs(30);
    tokio::time::timeout(patience, waiting).await.unwrap();
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
    let remotes = Remotes::connect(
        settings.to_vec(),
        patience(),
        Egress::default(),
        SlowCards::default(),
    )
    .await;
    assert_eq!(there(&remotes), ["a", "d"]);
    let skipped = remotes.skipped();
    let names: Vec<_> = skipped.iter().map(|one| one.name.to_string()).collect();
    assert_eq!(names, ["b", "c"]);
    let none = Remotes::connect(
        Vec::new(),
        patience(),
        Egress::default(),
        SlowCards::default(),
    )
    .await;
    assert!(none.connected().is_empty() && none.skipped().is_empty());
}

#[tokio::test]
async fn what_comes_up_later_is_found_in_the_background() {
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
    let mut remotes =
        Remotes::connect(all, patience(), Egress::default(), SlowCards::default()).await;
    assert_eq!(there(&remotes), ["early"]);
    assert_eq!(remotes.skipped()[0].name, "late");
    remotes.retry_in_background();
    remotes.retry_in_background();
    while asked.load(Ordering::SeqCst) < 4 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(there(&remotes), ["early"]);
    is_up.store(true, Ordering::SeqCst);
    until(|| there(&remotes).len() == 2).await;
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
    let mut remotes = Remotes::connect(
        vec![named("never", &never.url)],
        patience(),
        Egress::default(),
        SlowCards::default(),
    )
    .await;
    remotes.retry_in_background();
    while never.seen().len() < 3 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    drop(remotes);
    // One look may be under way. Of those that would follow, several had time.
    let before = never.seen().len();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(never.seen().len() <= before + 1);
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
    let mut remotes = Remotes::connect(
        vec![named("mover", &home.url)],
        patience(),
        Egress::default(),
        SlowCards::default(),
    )
    .await;
    remotes.retry_in_background();
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
    assert!(Arc::ptr_eq(&old, &remotes.connected()[0]));
    *place.lock().unwrap() = new.url.clone();
    hear(&old, send("x")).await.1.unwrap_err();
    until(|| !Arc::ptr_eq(&old, &remotes.connected()[0])).await;
    let moved = remotes.connected().remove(0);
    assert_eq!(moved.interface_url(), format!("{}/a2a", new.url));
    let looks = home
        .seen()
        .iter()
        .filter(|seen| seen.method == "GET")
        .count();
    assert_eq!(looks, 3, "at the start, and once after each failed call");
}

/// Every name is this machine.
struct Loopback;

impl Resolver for Loopback {
    fn lookup<'a>(&'a self, _: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        Box::pin(std::future::ready(Ok(vec![[127, 0, 0, 1].into()])))
    }
}

#[tokio::test]
async fn an_interface_on_another_host_is_used_at_the_address_that_the_guard_checked() {
    let server = Server::start(|seen| {
        let host = seen.header("host").unwrap();
        if seen.path.ends_with(".json") {
            let url = format!("http://{}", host.replace("127.0.0.1", "agent.example"));
            return answer(200, &card(&url, Binding::JsonRpc, false));
        }
        assert!(host.starts_with("agent.example:"), "{host}");
        let done = Said::Whole(task("COMPLETED", "", &[("a", "ok")]));
        deliver(Binding::JsonRpc, done)
    })
    .await;
    let port = server.url.rsplit_once(':').unwrap().1.to_owned();
    let connect = |allow: Vec<HostPattern>| {
        let rules = EgressRules {
            allow,
            deny: Vec::new(),
        };
        let egress = Egress::with_resolver(rules, EgressLimits::default(), Arc::new(Loopback));
        Remotes::connect(
            vec![named("a", &server.url)],
            patience(),
            egress,
            SlowCards::default(),
        )
    };
    let refused = connect(Vec::new()).await;
    let why = refused.skipped()[0].reason.to_string();
    assert!(
        why.contains("its interface `http://agent.example:") && why.contains("`egress.allow`"),
        "{why}"
    );
    let pattern = |host: &str| format!("{host}:{port}").parse().unwrap();
    let allowed = connect(vec![pattern("agent.example"), pattern("127.0.0.1")]).await;
    let agents = allowed.connected();
    assert_eq!(hear(&agents[0], send("x")).await.1.unwrap(), done("ok"));
}

#[tokio::test]
async fn a_card_that_timed_out_is_not_waited_for_again_and_is_read_in_the_background() {
    let folder = tempfile::tempdir().unwrap();
    let slow_cards = SlowCards::at(folder.path().join("slow-cards"));
    let is_up = Arc::new(AtomicBool::new(false));
    let up = Arc::clone(&is_up);
    let server = Server::start(move |seen| {
        if !up.load(Ordering::SeqCst) {
            return vec![Act::Hang];
        }
        let url = format!("http://{}", seen.header("host").unwrap());
        answer(200, &card(&url, Binding::JsonRpc, false))
    })
    .await;
    let other = good().await;
    let connect = |card: Duration| {
        let all = vec![named("hung", &server.url), named("other", &other.url)];
        let patience = Patience { card, ..patience() };
        Remotes::connect(all, patience, Egress::default(), slow_cards.clone())
    };
    let reason = |remotes: &Remotes| remotes.skipped()[0].reason.to_string();
    let first = connect(Duration::from_millis(300)).await;
    assert_eq!(there(&first), ["other"]);
    assert!(
        reason(&first).contains("after 300 ms"),
        "{}",
        reason(&first)
    );
    drop(first);

    // Waiting for it would take a minute.
    let started = std::time::Instant::now();
    let second = connect(Duration::from_secs(60)).await;
    assert!(started.elapsed() < Duration::from_secs(30));
    assert_eq!(there(&second), ["other"]);
    assert!(
        reason(&second).contains("in the background"),
        "{}",
        reason(&second)
    );
    drop(second);

    // Once it answers, it is there without anybody waiting, and is waited for again.
    is_up.store(true, Ordering::SeqCst);
    let third = connect(Duration::from_secs(60)).await;
    until(|| there(&third) == ["hung", "other"]).await;
    assert!(third.generation() > 0);
    let remembered = std::fs::read_dir(folder.path().join("slow-cards")).unwrap();
    assert_eq!(remembered.count(), 0);
    let fourth = connect(Duration::from_secs(60)).await;
    assert_eq!(there(&fourth), ["hung", "other"]);
}

#[tokio::test]
async fn a_card_that_timed_out_long_ago_is_waited_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let slow_cards = SlowCards::at(folder.path().to_owned());
    let server = Server::start(|_| vec![Act::Hang]).await;
    let connect = || {
        let patience = Patience {
            card: Duration::from_millis(300),
            ..patience()
        };
        let all = vec![named("hung", &server.url)];
        Remotes::connect(all, patience, Egress::default(), slow_cards.clone())
    };
    drop(connect().await);
    let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap();
    let file = std::fs::File::options()
        .write(true)
        .open(file.unwrap().path());
    let long_ago = std::time::SystemTime::now() - SlowCards::MEMORY - Duration::from_secs(60);
    file.unwrap().set_modified(long_ago).unwrap();
    let again = connect().await;
    let reason = again.skipped()[0].reason.to_string();
    assert!(reason.contains("after 300 ms"), "{reason}");
}
