//! The connections to all configured agents: which are connected, which are skipped, and which connect later.

use super::script::{ScriptedReply, card, deliver, done, run_call, send, settings, task, timeouts};
use super::support::{Action, Server, json as answer, response};
use lango_a2a::client::{Binding, RemoteConnections, RemoteSettings, RemoteTimeouts, SlowCards};
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

fn connected_names(remotes: &RemoteConnections) -> Vec<String> {
    let agents = remotes.connected();
    agents
        .iter()
        .map(|agent| agent.name().to_string())
        .collect()
}

/// Waits until the condition is true, for up to 30 seconds.
async fn wait_until(mut condition: impl FnMut() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let timeout = Duration::from_secs(30);
    tokio::time::timeout(timeout, waiting).await.unwrap();
}

async fn good_server() -> Server {
    Server::start(|request| {
        let url = format!("http://{}", request.header("host").unwrap());
        answer(200, &card(&url, Binding::JsonRpc, false))
    })
    .await
}

#[tokio::test]
async fn results_have_the_order_of_the_configuration_and_a_bad_card_affects_no_other() {
    let (first, bad, last) = (
        good_server().await,
        Server::start(|_| response(500, &[], "")).await,
        good_server().await,
    );
    let settings = [
        named("a", &first.url),
        named("b", &bad.url),
        named("c", "nonsense"),
        named("d", &last.url),
    ];
    let remotes = RemoteConnections::connect(
        settings.to_vec(),
        timeouts(),
        Egress::default(),
        SlowCards::default(),
    )
    .await;
    assert_eq!(connected_names(&remotes), ["a", "d"]);
    let skipped = remotes.skipped();
    let names: Vec<_> = skipped.iter().map(|one| one.name.to_string()).collect();
    assert_eq!(names, ["b", "c"]);
    let none = RemoteConnections::connect(
        Vec::new(),
        timeouts(),
        Egress::default(),
        SlowCards::default(),
    )
    .await;
    assert!(none.connected().is_empty() && none.skipped().is_empty());
}

#[tokio::test]
async fn an_agent_that_comes_up_later_is_connected_in_the_background() {
    let is_up = Arc::new(AtomicBool::new(false));
    let reads = Arc::new(AtomicUsize::new(0));
    let (up, count) = (Arc::clone(&is_up), Arc::clone(&reads));
    let late = Server::start(move |request| {
        count.fetch_add(1, Ordering::SeqCst);
        if !up.load(Ordering::SeqCst) {
            return response(503, &[], "");
        }
        let url = format!("http://{}", request.header("host").unwrap());
        answer(200, &card(&url, Binding::HttpJson, true))
    })
    .await;
    let early = good_server().await;
    let all = vec![named("late", &late.url), named("early", &early.url)];
    let mut remotes =
        RemoteConnections::connect(all, timeouts(), Egress::default(), SlowCards::default()).await;
    assert_eq!(connected_names(&remotes), ["early"]);
    assert_eq!(remotes.skipped()[0].name, "late");
    remotes.retry_in_background();
    remotes.retry_in_background();
    while reads.load(Ordering::SeqCst) < 4 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(connected_names(&remotes), ["early"]);
    is_up.store(true, Ordering::SeqCst);
    wait_until(|| connected_names(&remotes).len() == 2).await;
    assert_eq!(connected_names(&remotes), ["late", "early"]);
    assert!(remotes.skipped().is_empty());
    assert_eq!(
        early.requests().len(),
        1,
        "the card of a connected agent is not read again"
    );
}

#[tokio::test]
async fn dropping_ends_the_background_task() {
    let never = Server::start(|_| response(503, &[], "")).await;
    let mut remotes = RemoteConnections::connect(
        vec![named("never", &never.url)],
        timeouts(),
        Egress::default(),
        SlowCards::default(),
    )
    .await;
    remotes.retry_in_background();
    while never.requests().len() < 3 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    drop(remotes);
    // One read may still be in progress. There would be time for several more.
    let before = never.requests().len();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(never.requests().len() <= before + 1);
}

#[tokio::test]
async fn an_agent_that_moved_is_found_at_its_new_url_after_a_failed_call() {
    let new = good_server().await;
    let location = Arc::new(std::sync::Mutex::new(String::new()));
    let current = Arc::clone(&location);
    let home = Server::start(move |request| match request.method.as_str() {
        "GET" => answer(
            200,
            &card(&current.lock().unwrap(), Binding::JsonRpc, false),
        ),
        _ => response(404, &[], ""),
    })
    .await;
    *location.lock().unwrap() = home.url.clone();
    let mut remotes = RemoteConnections::connect(
        vec![named("mover", &home.url)],
        timeouts(),
        Egress::default(),
        SlowCards::default(),
    )
    .await;
    remotes.retry_in_background();
    let old = remotes.connected().remove(0);
    // The card has not changed, so the agent stays, and the card is not read again and again.
    run_call(&old, send("x")).await.1.unwrap_err();
    while home
        .requests()
        .iter()
        .filter(|request| request.method == "GET")
        .count()
        < 2
    {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // Enough time for another read, if there were a reason for one.
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(Arc::ptr_eq(&old, &remotes.connected()[0]));
    *location.lock().unwrap() = new.url.clone();
    run_call(&old, send("x")).await.1.unwrap_err();
    wait_until(|| !Arc::ptr_eq(&old, &remotes.connected()[0])).await;
    let moved = remotes.connected().remove(0);
    assert_eq!(moved.interface_url(), format!("{}/a2a", new.url));
    let reads = home
        .requests()
        .iter()
        .filter(|request| request.method == "GET")
        .count();
    assert_eq!(reads, 3, "at the start, and once after each failed call");
}

/// A resolver that resolves every name to this machine.
struct Loopback;

impl Resolver for Loopback {
    fn lookup<'a>(&'a self, _: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        Box::pin(std::future::ready(Ok(vec![[127, 0, 0, 1].into()])))
    }
}

#[tokio::test]
async fn an_interface_on_another_host_is_reached_at_the_address_that_the_guard_checked() {
    let server = Server::start(|request| {
        let host = request.header("host").unwrap();
        if request.path.ends_with(".json") {
            let url = format!("http://{}", host.replace("127.0.0.1", "agent.example"));
            return answer(200, &card(&url, Binding::JsonRpc, false));
        }
        assert!(host.starts_with("agent.example:"), "{host}");
        let done = ScriptedReply::Whole(task("COMPLETED", "", &[("a", "ok")]));
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
        RemoteConnections::connect(
            vec![named("a", &server.url)],
            timeouts(),
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
    assert_eq!(run_call(&agents[0], send("x")).await.1.unwrap(), done("ok"));
}

#[tokio::test]
async fn a_card_that_timed_out_is_read_in_the_background_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let slow_cards = SlowCards::at(folder.path().join("slow-cards"));
    let is_up = Arc::new(AtomicBool::new(false));
    let up = Arc::clone(&is_up);
    let server = Server::start(move |request| {
        if !up.load(Ordering::SeqCst) {
            return vec![Action::Hang];
        }
        let url = format!("http://{}", request.header("host").unwrap());
        answer(200, &card(&url, Binding::JsonRpc, false))
    })
    .await;
    let other = good_server().await;
    let connect = |card: Duration| {
        let all = vec![named("hung", &server.url), named("other", &other.url)];
        let timeouts = RemoteTimeouts { card, ..timeouts() };
        RemoteConnections::connect(all, timeouts, Egress::default(), slow_cards.clone())
    };
    let reason = |remotes: &RemoteConnections| remotes.skipped()[0].reason.to_string();
    let first = connect(Duration::from_millis(300)).await;
    assert_eq!(connected_names(&first), ["other"]);
    assert!(
        reason(&first).contains("within 300 ms"),
        "{}",
        reason(&first)
    );
    drop(first);

    // Waiting for the card would take a minute.
    let started = std::time::Instant::now();
    let second = connect(Duration::from_secs(60)).await;
    assert!(started.elapsed() < Duration::from_secs(30));
    assert_eq!(connected_names(&second), ["other"]);
    assert!(
        reason(&second).contains("in the background"),
        "{}",
        reason(&second)
    );
    drop(second);

    // Once the server answers, the agent is connected in the background. The next start waits for its card again.
    is_up.store(true, Ordering::SeqCst);
    let third = connect(Duration::from_secs(60)).await;
    wait_until(|| connected_names(&third) == ["hung", "other"]).await;
    assert!(third.generation() > 0);
    let remembered = std::fs::read_dir(folder.path().join("slow-cards")).unwrap();
    assert_eq!(remembered.count(), 0);
    let fourth = connect(Duration::from_secs(60)).await;
    assert_eq!(connected_names(&fourth), ["hung", "other"]);
}

#[tokio::test]
async fn the_start_waits_again_for_a_card_that_timed_out_long_ago() {
    let folder = tempfile::tempdir().unwrap();
    let slow_cards = SlowCards::at(folder.path().to_owned());
    let server = Server::start(|_| vec![Action::Hang]).await;
    let connect = || {
        let timeouts = RemoteTimeouts {
            card: Duration::from_millis(300),
            ..timeouts()
        };
        let all = vec![named("hung", &server.url)];
        RemoteConnections::connect(all, timeouts, Egress::default(), slow_cards.clone())
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
    assert!(reason.contains("within 300 ms"), "{reason}");
}
