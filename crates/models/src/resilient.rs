//! A model with retries and fallbacks.
//!
//! After a transient fault it calls the same model again: after the delay that the provider asks for, or with
//! exponential backoff, plus jitter so that many turns do not retry at the same moment. After a permanent fault it
//! calls the next model immediately. Only the model call is repeated; streamed text is withdrawn first.

use futures_util::{StreamExt, stream};
use lango_core::{
    BoxStream, Model, ModelError, ModelEvent, ModelFault, ModelInfo, ModelRequest, Price,
};
use lango_net::backoff;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A model with its fallbacks.
pub struct ResilientModel {
    models: Vec<Arc<dyn Model>>,
    pause: Duration,
    /// The index of the fallback that replied last, and since when it is in use.
    active_fallback: Mutex<Option<(usize, Instant)>>,
}

impl ResilientModel {
    /// How often one model is called before the next one.
    const TRIES: u32 = 3;
    /// How long calls start with a fallback before the first model is tried again.
    const FALLBACK_PERIOD: Duration = Duration::from_secs(60);
    /// If a provider asks for a longer delay than this, the call is not retried there.
    const LONGEST_WAIT: Duration = Duration::from_secs(60);

    /// Creates a model that calls `first`, then `fallback` in order.
    pub fn new(first: Arc<dyn Model>, fallback: Vec<Arc<dyn Model>>) -> Self {
        let models = std::iter::once(first).chain(fallback).collect();
        Self {
            models,
            pause: PAUSE,
            active_fallback: Mutex::new(None),
        }
    }

    /// Returns the index of the model to call first. A model that failed a moment ago should not delay every call.
    fn first(&self) -> usize {
        let active_fallback = *self
            .active_fallback
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        active_fallback
            .filter(|(_, since)| since.elapsed() < Self::FALLBACK_PERIOD)
            .map_or(0, |(at, _)| at)
    }

    /// Sets the pause before the first retry.
    pub fn with_pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }
}

impl Model for ResilientModel {
    fn name(&self) -> &str {
        self.models[0].name()
    }

    /// Returns what holds for all models: the smallest context window and the highest price.
    fn info(&self) -> ModelInfo {
        let terms = || self.models.iter().map(|model| model.info());
        let prices: Option<Vec<Price>> = terms().map(|terms| terms.price).collect();
        ModelInfo {
            price: prices.and_then(|prices| prices.into_iter().reduce(Price::upper_bound)),
            context_tokens: terms().filter_map(|terms| terms.context_tokens).min(),
        }
    }

    fn call<'a>(&'a self, request: ModelRequest) -> BoxStream<'a, Result<ModelEvent, ModelError>> {
        let call = Call {
            chain: self,
            request,
            at: self.first(),
            tries: 0,
            wait: Duration::ZERO,
            stream: None,
            is_over: false,
        };
        stream::unfold(call, |mut call| async move {
            call.next().await.map(|item| (item, call))
        })
        .boxed()
    }
}

struct Call<'a> {
    chain: &'a ResilientModel,
    request: ModelRequest,
    /// The index of the current model.
    at: usize,
    /// How often the current model was called.
    tries: u32,
    wait: Duration,
    stream: Option<BoxStream<'a, Result<ModelEvent, ModelError>>>,
    is_over: bool,
}

impl<'a> Call<'a> {
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        if self.is_over {
            return None;
        }
        if self.stream.is_none() {
            tokio::time::sleep(self.wait).await;
            self.tries += 1;
            self.stream = Some(self.model().call(self.request.clone()));
        }
        let item = match &mut self.stream {
            Some(stream) => stream.next().await,
            None => None,
        };
        let cut_off = || ModelError {
            model: self.model().name().into(),
            fault: ModelFault::Incomplete,
            address: None,
        };
        match item.unwrap_or_else(|| Err(cut_off())) {
            Ok(ModelEvent::Reply(mut reply)) => {
                self.is_over = true;
                if self.at > 0 {
                    let mut active = self
                        .chain
                        .active_fallback
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner);
                    if active.is_none_or(|(at, since)| {
                        at != self.at || since.elapsed() >= ResilientModel::FALLBACK_PERIOD
                    }) {
                        *active = Some((self.at, Instant::now()));
                    }
                    reply.model = Some(self.model().name().into());
                }
                Some(Ok(ModelEvent::Reply(reply)))
            }
            Ok(event) => Some(Ok(event)),
            Err(error) => Some(self.recover(error)),
        }
    }

    fn model(&self) -> &'a dyn Model {
        &*self.chain.models[self.at]
    }

    /// Decides what follows a fault: the same model again, the next one, or the error.
    fn recover(&mut self, mut error: ModelError) -> Result<ModelEvent, ModelError> {
        self.stream = None;
        if let Some(wait) = retry_delay(&error.fault, self.tries, self.chain.pause) {
            self.wait = wait;
            let ModelError { model, fault, .. } = &error;
            let (summary, seconds) = (fault.summary(), wait.as_secs_f32());
            let reason = format!("model `{model}`: {summary}; retrying in {seconds:.1} s");
            return Ok(ModelEvent::Retrying { reason });
        }
        explain_long_wait(&mut error.fault);
        if self.at + 1 == self.chain.models.len() {
            self.is_over = true;
            return Err(error);
        }
        (self.at, self.tries, self.wait) = (self.at + 1, 0, Duration::ZERO);
        Ok(ModelEvent::Retrying {
            reason: format!("{error}; switching to `{}`", self.model().name()),
        })
    }
}

/// The pause before the first retry.
pub(crate) const PAUSE: Duration = Duration::from_millis(500);

/// Adds to a fault that lango does not wait as long as the provider asks to, and how long the user would have to.
fn explain_long_wait(fault: &mut ModelFault) {
    let (ModelFault::RateLimited {
        retry_after_ms: Some(ms),
        detail,
    }
    | ModelFault::Overloaded {
        retry_after_ms: Some(ms),
        detail,
    }) = fault
    else {
        return;
    };
    let wait = Duration::from_millis(*ms);
    if wait > ResilientModel::LONGEST_WAIT {
        let most = ResilientModel::LONGEST_WAIT.as_secs();
        let minutes = wait.as_millis().div_ceil(60_000);
        let time = match (minutes / 60, minutes % 60) {
            (0, minutes) => format!("{minutes} min"),
            (hours, 0) => format!("{hours} h"),
            (hours, minutes) => format!("{hours} h {minutes} min"),
        };
        detail.push_str(&format!(
            "; lango waits at most {most} s, so try again in {time}"
        ));
    }
}

/// Returns how long to wait before the next try after `tries` calls; `None` if it should not be retried.
pub(crate) fn retry_delay(fault: &ModelFault, tries: u32, pause: Duration) -> Option<Duration> {
    if !fault.is_transient() || tries >= ResilientModel::TRIES {
        return None;
    }
    let backoff = backoff(pause, tries);
    let requested = match fault {
        ModelFault::RateLimited { retry_after_ms, .. }
        | ModelFault::Overloaded { retry_after_ms, .. } => {
            retry_after_ms.map(Duration::from_millis)
        }
        _ => None,
    };
    let wait = requested.unwrap_or(backoff);
    (wait <= ResilientModel::LONGEST_WAIT).then(|| wait + backoff.mul_f64(0.5 * random()))
}

/// Returns a random number between 0 and 1.
fn random() -> f64 {
    let mut byte = [0_u8; 2];
    // Without a random source there is no jitter; nothing else depends on it.
    let _ = getrandom::fill(&mut byte);
    f64::from(u16::from_le_bytes(byte)) / f64::from(u16::MAX)
}
