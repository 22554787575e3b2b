//! Silence is ended, slowness is not. The idle time-out is the only clock over a reply.

use crate::support::Kind;
use crate::support::{BOTH, call, request, settings};
use lango_core::ModelFault;
use lango_models::{Patience, Provider, ProviderModel, ProviderSettings};
use lango_testkit::model::say;
use lango_testkit::wire_server::{Answer, Fault, WireServer};
use std::time::{Duration, Instant};

const IDLE: Duration = Duration::from_millis(200);

fn impatient(kind: Kind, url: &str, streaming: bool, idle: Duration) -> ProviderModel {
    let settings = ProviderSettings {
        stream: streaming,
        patience: Patience {
            idle,
            ..Patience::default()
        },
        ..settings(kind, url)
    };
    Provider::new(settings).model("m")
}

#[tokio::test]
async fn silence_ends_at_the_idle_time_out_wherever_it_begins() {
    let silences = [
        Fault::SilentBeforeHead,
        Fault::SilentBeforeBody,
        Fault::SilentAfter(100),
    ];
    for silence in silences {
        let cases = Kind::ALL
            .into_iter()
            .flat_map(|kind| BOTH.map(|streaming| is_ended(kind, streaming, silence.clone())));
        futures_util::future::join_all(cases).await;
    }
}

async fn is_ended(kind: Kind, streaming: bool, silence: Fault) {
    let answer = Answer::from(say(&"A long answer. ".repeat(20))).with(silence.clone());
    let server = WireServer::scripted([answer]).await;
    let begun = Instant::now();
    let model = impatient(kind, server.url(), streaming, IDLE);
    let (_, end) = tokio::time::timeout(IDLE * 20, call(&model, request()))
        .await
        .expect("silence is ended");
    let silent = ModelFault::Silent { after_ms: 200 };
    assert_eq!(end, Err(silent), "{kind:?} {silence:?}");
    let took = begun.elapsed();
    assert!(
        took >= IDLE && took < IDLE * 10,
        "{kind:?} {silence:?}: {took:?}"
    );
}

#[tokio::test]
async fn a_slow_drip_is_not_cut_however_long_it_takes() {
    let waits = Kind::ALL.map(|kind| async move {
        // All of it takes longer than silence may last; no byte does.
        let idle = Duration::from_millis(500);
        let pause = Duration::from_millis(1);
        let answer = Answer::from(say("Slowly but surely.")).with(Fault::Drip(pause));
        let server = WireServer::scripted([answer]).await;
        let begun = Instant::now();
        let (_, end) = call(&impatient(kind, server.url(), true, idle), request()).await;
        assert_eq!(end.unwrap().text, "Slowly but surely.");
        assert!(begun.elapsed() > idle, "{kind:?}: {:?}", begun.elapsed());
    });
    futures_util::future::join_all(waits).await;
}
