//! The idle timeout ends silence but not slowness. A reply has no other time limit.

use crate::support::Wire;
use crate::support::{BOTH, call, request, settings};
use lango_core::ModelFault;
use lango_models::{Provider, ProviderModel, ProviderSettings, ProviderTimeouts};
use lango_testkit::model::say;
use lango_testkit::wire_server::{Fault, ScriptedAnswer, WireServer};
use std::time::{Duration, Instant};

const IDLE: Duration = Duration::from_millis(200);

fn model_with_idle_timeout(
    kind: Wire,
    url: &str,
    streaming: bool,
    idle: Duration,
) -> ProviderModel {
    let settings = ProviderSettings {
        stream: streaming,
        timeouts: ProviderTimeouts {
            idle,
            ..ProviderTimeouts::default()
        },
        ..settings(kind, url)
    };
    Provider::new(settings).model("m")
}

#[tokio::test]
async fn silence_times_out_wherever_it_starts() {
    let silences = [
        Fault::SilentBeforeHead,
        Fault::SilentBeforeBody,
        Fault::SilentAfter(100),
    ];
    for silence in silences {
        let cases = Wire::ALL.into_iter().flat_map(|kind| {
            BOTH.map(|streaming| assert_times_out(kind, streaming, silence.clone()))
        });
        futures_util::future::join_all(cases).await;
    }
}

async fn assert_times_out(kind: Wire, streaming: bool, silence: Fault) {
    let answer = ScriptedAnswer::from(say(&"A long answer. ".repeat(20))).with(silence.clone());
    let server = WireServer::scripted([answer]).await;
    let started = Instant::now();
    let model = model_with_idle_timeout(kind, server.url(), streaming, IDLE);
    let (_, end) = tokio::time::timeout(IDLE * 20, call(&model, request()))
        .await
        .expect("silence is ended");
    let silent = ModelFault::TimedOut { after_ms: 200 };
    assert_eq!(end, Err(silent), "{kind:?} {silence:?}");
    let took = started.elapsed();
    assert!(
        took >= IDLE && took < IDLE * 10,
        "{kind:?} {silence:?}: {took:?}"
    );
}

#[tokio::test]
async fn a_slow_stream_is_not_interrupted() {
    let waits = Wire::ALL.map(|kind| async move {
        // The whole reply takes longer than the idle timeout, but each byte comes within it.
        let idle = Duration::from_millis(500);
        let pause = Duration::from_millis(1);
        let answer = ScriptedAnswer::from(say("Slowly but surely.")).with(Fault::Drip(pause));
        let server = WireServer::scripted([answer]).await;
        let started = Instant::now();
        let (_, end) = call(
            &model_with_idle_timeout(kind, server.url(), true, idle),
            request(),
        )
        .await;
        assert_eq!(end.unwrap().text, "Slowly but surely.");
        assert!(
            started.elapsed() > idle,
            "{kind:?}: {:?}",
            started.elapsed()
        );
    });
    futures_util::future::join_all(waits).await;
}
