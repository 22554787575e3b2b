//! A model that is asked again, and then others in its place.
//!
//! A fault that may pass is waited out, as long as the provider asks or a little longer each time, with a random part so
//! that many turns do not come back at once. A fault that will not pass goes to the next model at once. Only the model call
//! is repeated; text that was shown is withdrawn first.

use futures_util::{StreamExt, stream};
use lango_core::{
    BoxStream, Model, ModelError, ModelEvent, ModelFault, ModelRequest, ModelTerms, Price,
};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A model with its understudies.
pub struct Resilient {
    models: Vec<Arc<dyn Model>>,
    pause: Duration,
    /// The understudy that stepped in last, and when.
    stepped_in: Mutex<Option<(usize, Instant)>>,
}

impl Resilient {
    /// Calls of one model before the next one's turn.
    const TRIES: u32 = 3;
    /// How long an understudy stays before the first is tried again.
    const STAY: Duration = Duration::from_secs(60);
    /// A provider that wants us to wait longer than this is given up.
    const LONGEST_WAIT: Duration = Duration::from_secs(60);

    /// `first` is asked first, then `fallback` in order.
    pub fn new(first: Arc<dyn Model>, fallback: Vec<Arc<dyn Model>>) -> Self {
        let models = std::iter::once(first).chain(fallback).collect();
        Self {
            models,
            pause: PAUSE,
            stepped_in: Mutex::new(None),
        }
    }

    /// Which model a call begins with: one that could not serve a moment ago is not waited for at every call.
    fn first(&self) -> usize {
        let stepped_in = *self
            .stepped_in
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        stepped_in
            .filter(|(_, since)| since.elapsed() < Self::STAY)
            .map_or(0, |(at, _)| at)
    }

    /// The same with another first pause.
    pub fn with_pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }
}

impl Model for Resilient {
    fn name(&self) -> &str {
        self.models[0].name()
    }

    /// What holds for all of them: the smallest window, and the dearest price.
    fn terms(&self) -> ModelTerms {
        let terms = || self.models.iter().map(|model| model.terms());
        let prices: Option<Vec<Price>> = terms().map(|terms| terms.price).collect();
        ModelTerms {
            price: prices.and_then(|prices| prices.into_iter().reduce(Price::dearest)),
            context_tokens: terms().filter_map(|terms| terms.context_tokens).min(),
        }
    }

    fn call<'a>(&'a self, request: ModelRequest) -> BoxStream<'a, Result<ModelEvent, ModelError>> {
        let call = Call {
            of: self,
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
    of: &'a Resilient,
    request: ModelRequest,
    /// Which model.
    at: usize,
    /// How often it was called.
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
            fault: ModelFault::CutOff,
        };
        match item.unwrap_or_else(|| Err(cut_off())) {
            Ok(ModelEvent::Reply(mut reply)) => {
                self.is_over = true;
                if self.at > 0 {
                    let stepped_in = Some((self.at, Instant::now()));
                    let mut last = self
                        .of
                        .stepped_in
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner);
                    if last.is_none_or(|(at, since)| {
                        at != self.at || since.elapsed() >= Resilient::STAY
                    }) {
                        *last = stepped_in;
                    }
                    reply.model = Some(self.model().name().into());
                }
                Some(Ok(ModelEvent::Reply(reply)))
            }
            Ok(event) => Some(Ok(event)),
            Err(error) => Some(self.after(error)),
        }
    }

    fn model(&self) -> &'a dyn Model {
        &*self.of.models[self.at]
    }

    /// What follows a fault: the same model again, the next one, or the end.
    fn after(&mut self, error: ModelError) -> Result<ModelEvent, ModelError> {
        self.stream = None;
        if let Some(wait) = worth_waiting(&error.fault, self.tries, self.of.pause) {
            self.wait = wait;
            let reason = format!("{error}; again in {:.1} s", wait.as_secs_f32());
            return Ok(ModelEvent::Retrying { reason });
        }
        if self.at + 1 == self.of.models.len() {
            self.is_over = true;
            return Err(error);
        }
        (self.at, self.tries, self.wait) = (self.at + 1, 0, Duration::ZERO);
        Ok(ModelEvent::Retrying {
            reason: format!("{error}; now `{}`", self.model().name()),
        })
    }
}

/// The first pause before something is asked again.
pub(crate) const PAUSE: Duration = Duration::from_millis(500);

/// How long to wait before asking again after `tries` calls; nothing if that is not worth it.
pub(crate) fn worth_waiting(fault: &ModelFault, tries: u32, pause: Duration) -> Option<Duration> {
    if !fault.is_passing() || tries >= Resilient::TRIES {
        return None;
    }
    let own = pause * 2_u32.pow(tries.saturating_sub(1));
    let asked = match fault {
        ModelFault::RateLimited { retry_after_ms, .. }
        | ModelFault::Overloaded { retry_after_ms, .. } => {
            retry_after_ms.map(Duration::from_millis)
        }
        _ => None,
    };
    let wait = asked.unwrap_or(own);
    (wait <= Resilient::LONGEST_WAIT).then(|| wait + own.mul_f64(0.5 * random()))
}

/// Between 0 and 1.
fn random() -> f64 {
    let mut byte = [0_u8; 2];
    // Without a random source everybody waits the same; nothing else depends on it.
    let _ = getrandom::fill(&mut byte);
    f64::from(u16::from_le_bytes(byte)) / f64::from(u16::MAX)
}
