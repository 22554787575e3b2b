//! Retries and fallbacks.

use crate::support::Wire;
use crate::support::{BOTH, call, model, request};
use lango_core::{Model, ModelError, ModelEvent, ModelFault, ModelReply};
use lango_models::ResilientModel;
use lango_testkit::model::{ScriptedModel, failure, say};
use lango_testkit::wire_server::{Fault, ScriptedAnswer, WireServer};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

/// Returns a model that fails with each of these faults and then answers, and the times of its calls.
fn failing(faults: Vec<ModelFault>) -> (Arc<ScriptedModel>, Arc<Mutex<Vec<Instant>>>) {
    let times = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&times);
    let model = ScriptedModel::new(move |_| -> Result<ModelReply, ModelError> {
        let mut times = recorded.lock().unwrap();
        times.push(Instant::now());
        faults
            .get(times.len() - 1)
            .map_or_else(|| Ok(say("at last")), |fault| Err(failure(fault.clone())))
    });
    (Arc::new(model), times)
}

fn rate_limited(retry_after_ms: u64) -> ModelFault {
    ModelFault::RateLimited {
        retry_after_ms: Some(retry_after_ms),
        detail: String::new(),
    }
}

fn overloaded() -> ModelFault {
    ModelFault::Overloaded {
        retry_after_ms: None,
        detail: String::new(),
    }
}

fn pauses(times: &Mutex<Vec<Instant>>) -> Vec<Duration> {
    let times = times.lock().unwrap();
    times.windows(2).map(|two| two[1] - two[0]).collect()
}

fn text(detail: &str) -> String {
    detail.to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_transient_fault_is_retried_with_growing_pauses() {
    let passing = [
        overloaded(),
        ModelFault::Incomplete,
        ModelFault::TimedOut { after_ms: 1 },
        ModelFault::Unreachable { detail: text("x") },
        ModelFault::Malformed { detail: text("x") },
        ModelFault::RateLimited {
            retry_after_ms: None,
            detail: text("x"),
        },
    ];
    for fault in passing {
        let (model, times) = failing(vec![fault.clone(); 2]);
        let (events, end) = call(&ResilientModel::new(model, vec![]), request()).await;
        assert_eq!(end.unwrap().text, "at last", "{fault:?}");
        let retries = events
            .iter()
            .filter(|event| matches!(event, ModelEvent::Retrying { .. }));
        assert_eq!(retries.count(), 2);
        let pauses = pauses(&times);
        let within = |pause: Duration, ms: u64| {
            pause.as_millis() as u64 >= ms && pause.as_millis() as u64 <= ms * 3 / 2 + 2
        };
        assert!(
            within(pauses[0], 500) && within(pauses[1], 1000),
            "{pauses:?}"
        );

        let (model, times) = failing(vec![fault.clone(); 9]);
        let (_, end) = call(&ResilientModel::new(model, vec![]), request()).await;
        assert_eq!(end, Err(fault));
        assert_eq!(times.lock().unwrap().len(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_honoured() {
    for asked in [0, 2_000, 60_000] {
        let (model, times) = failing(vec![rate_limited(asked)]);
        call(&ResilientModel::new(model, vec![]), request())
            .await
            .1
            .unwrap();
        let pause = pauses(&times)[0].as_millis() as u64;
        assert!(pause >= asked && pause <= asked + 252, "{asked}: {pause}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_after_of_more_than_a_minute_is_not_waited_for() {
    let (model, times) = failing(vec![rate_limited(60_001)]);
    let started = Instant::now();
    let (_, end) = call(&ResilientModel::new(model, vec![]), request()).await;
    let fault = end.unwrap_err().to_string();
    assert!(
        fault.ends_with("; lango waits at most 60 s, so try again in 2 min"),
        "{fault}"
    );
    assert_eq!(
        (times.lock().unwrap().len(), started.elapsed()),
        (1, Duration::ZERO)
    );
}

#[tokio::test(start_paused = true)]
async fn permanent_faults_are_not_retried() {
    let lasting = [
        ModelFault::BadKey { detail: text("x") },
        ModelFault::NoCredit { detail: text("x") },
        ModelFault::UnknownModel { detail: text("x") },
        ModelFault::ContextTooLong {
            detail: text("x"),
            limit_tokens: None,
        },
        ModelFault::Refused { detail: text("x") },
    ];
    for fault in lasting {
        let (model, times) = failing(vec![fault.clone()]);
        let (events, end) = call(&ResilientModel::new(model, vec![]), request()).await;
        assert_eq!((events.len(), end), (0, Err(fault.clone())));
        assert_eq!(times.lock().unwrap().len(), 1);

        let (model, times) = failing(vec![fault]);
        let (understudy, _) = failing(vec![]);
        let (events, end) = call(&ResilientModel::new(model, vec![understudy]), request()).await;
        assert_eq!(
            (times.lock().unwrap().len(), end.unwrap().text.as_str()),
            (1, "at last")
        );
        assert!(matches!(&events[0], ModelEvent::Retrying { .. }));
    }
}

#[tokio::test(start_paused = true)]
async fn every_fallback_has_its_own_tries_and_the_last_fault_is_reported() {
    let faults = |fault: ModelFault| failing(vec![fault; 9]);
    let (first, first_times) = faults(overloaded());
    let (second, second_times) = faults(ModelFault::Incomplete);
    let (third, third_times) = faults(ModelFault::BadKey {
        detail: text("last"),
    });
    let model = ResilientModel::new(first, vec![second, third]);
    let (events, end) = call(&model, request()).await;
    assert_eq!(
        end,
        Err(ModelFault::BadKey {
            detail: text("last")
        })
    );
    let counts = [first_times, second_times, third_times].map(|times| times.lock().unwrap().len());
    assert_eq!((counts, events.len()), ([3, 3, 1], 6));
}

#[tokio::test]
async fn the_model_that_replied_is_named_if_it_is_not_the_first() {
    let broken = WireServer::start(|_| Fault::status(503, "later").into()).await;
    let refusing = WireServer::start(|_| Fault::BadKey.into()).await;
    let working = WireServer::start(|_| say("Here.").into()).await;
    let first = Arc::new(model(Wire::OpenAi, broken.url(), true));
    let second: Arc<dyn Model> = Arc::new(model(Wire::Gemini, refusing.url(), true));
    let third: Arc<dyn Model> = Arc::new(model(Wire::Anthropic, working.url(), true));
    let resilient =
        ResilientModel::new(first, vec![second, third]).with_pause(Duration::from_millis(1));
    let (events, end) = call(&resilient, request()).await;
    let reply = end.unwrap();
    assert_eq!(
        (reply.text.as_str(), reply.model.as_deref()),
        ("Here.", Some("anthropic/m"))
    );
    assert_eq!(
        [broken, refusing, working].map(|server| server.requests().len()),
        [3, 1, 1]
    );
    let reasons: Vec<&str> = events
        .iter()
        .filter_map(|event| match event {
            ModelEvent::Retrying { reason } => Some(reason.as_str()),
            _ => None,
        })
        .collect();
    assert!(
        reasons[2].contains("gemini/m") && reasons[3].contains("anthropic/m"),
        "{reasons:?}"
    );
    assert_eq!(resilient.name(), "openai/m");

    let own = WireServer::start(|_| say("Mine.").into()).await;
    let alone = ResilientModel::new(Arc::new(model(Wire::OpenAi, own.url(), true)), vec![]);
    assert_eq!(call(&alone, request()).await.1.unwrap().model, None);
}

#[tokio::test]
async fn text_of_an_incomplete_stream_is_withdrawn_before_the_retry() {
    let answer = "The quick brown fox jumps over the lazy dog.";
    for kind in Wire::ALL {
        let cut = ScriptedAnswer::from(say(answer)).with(Fault::CutAfter(900));
        let server = WireServer::scripted([cut, say(answer).into()]).await;
        let first = Arc::new(model(kind, server.url(), true));
        let resilient = ResilientModel::new(first, vec![]).with_pause(Duration::from_millis(1));
        let (events, end) = call(&resilient, request()).await;
        assert_eq!(end.unwrap().text, answer);
        let at = events
            .iter()
            .position(|event| matches!(event, ModelEvent::Retrying { .. }))
            .unwrap();
        let before = crate::support::shown(&events[..at]);
        assert!(
            !before.is_empty() && before.len() < answer.len() && answer.starts_with(&before),
            "{kind:?}: {before}"
        );
        assert_eq!(crate::support::shown(&events[at + 1..]), answer);
    }
}

#[tokio::test]
async fn every_transient_fault_is_followed_by_the_complete_reply() {
    let faults = [
        Fault::status(500, "oops"),
        Fault::status(529, "overloaded"),
        Fault::rate_limited("0"),
        Fault::rate_limited("soon"),
        Fault::HangUp,
        Fault::CutAfter(0),
        Fault::CutAfter(200),
        Fault::Garbage,
        Fault::ErrorInside,
        Fault::HugeFrame,
        Fault::Html,
        Fault::EmptyBody,
        Fault::EmptyJson,
    ];
    let long = say(&"A long answer. ".repeat(20));
    let answers = |fault: &Fault| {
        let spoiled = ScriptedAnswer::from(long.clone()).with(fault.clone());
        [spoiled, long.clone().into()]
    };
    for kind in Wire::ALL {
        for streaming in BOTH {
            let server = WireServer::scripted(faults.iter().flat_map(answers)).await;
            let first = Arc::new(model(kind, server.url(), streaming));
            let resilient = ResilientModel::new(first, vec![]).with_pause(Duration::from_millis(1));
            for (at, fault) in faults.iter().enumerate() {
                let (_, end) = call(&resilient, request()).await;
                assert_eq!(
                    end.unwrap().text,
                    long.text,
                    "{kind:?} {streaming} {fault:?}"
                );
                let requests = server.requests();
                assert_eq!(requests.len(), 2 * at + 2, "{kind:?} {streaming} {fault:?}");
                assert_eq!(
                    requests[2 * at].body,
                    requests[2 * at + 1].body,
                    "the same is asked again"
                );
            }
        }
    }
}
