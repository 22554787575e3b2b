//! Bodies that pass through the proxy: counts their bytes, limits their idle time, and scans requests for placeholders.

use super::Shared;
use super::credentials::PlaceholderScan;
use crate::budget::Budget;
use crate::destination::Destination;
use crate::error::Refusal;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use lango_secrets::Origin;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// The counter and limits of a forwarded body. Clones share the byte count.
#[derive(Clone)]
pub(super) struct Meter {
    shared: Arc<Shared>,
    budget: Budget,
    destination: String,
    idle_time: Duration,
    bytes: Arc<AtomicU64>,
}

impl Meter {
    pub(super) fn new(
        shared: &Arc<Shared>,
        budget: &Budget,
        destination: &Destination,
        idle_time: Duration,
    ) -> Self {
        Self {
            shared: Arc::clone(shared),
            budget: budget.clone(),
            destination: destination.to_string(),
            idle_time,
            bytes: Arc::default(),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn attach(self, body: Incoming) -> MeteredBody {
        MeteredBody {
            body,
            idle: Box::pin(tokio::time::sleep(self.idle_time)),
            meter: self,
            is_counted: true,
        }
    }

    /// Attaches the limits to a body whose bytes count after decoding: see [`MeteredBody::count_decoded`].
    pub(super) fn attach_uncounted(self, body: Incoming) -> MeteredBody {
        MeteredBody {
            is_counted: false,
            ..self.attach(body)
        }
    }

    fn count(&self, length: usize) -> Result<(), Refusal> {
        self.bytes.fetch_add(length as u64, Ordering::Relaxed);
        let counted = self.budget.take_bytes(length, &self.destination);
        counted.inspect_err(|refusal| self.shared.record(refusal))
    }
}

/// A body that fails when the budget is used up or no byte arrives for too long.
pub(super) struct MeteredBody {
    body: Incoming,
    idle: Pin<Box<Sleep>>,
    meter: Meter,
    /// Whether bytes are counted when they arrive.
    is_counted: bool,
}

impl MeteredBody {
    /// Counts decoded bytes, unless they were counted on arrival.
    pub(super) fn count_decoded(&self, length: usize) -> Result<(), Refusal> {
        if self.is_counted {
            return Ok(());
        }
        self.meter.count(length)
    }
}

impl Body for MeteredBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) else {
            ready!(this.idle.as_mut().poll(context));
            return Poll::Ready(Some(Err("no data arrived for too long".into())));
        };
        let now = Instant::now();
        this.idle.as_mut().reset(now + this.meter.idle_time);
        let Some(frame) = frame else {
            return Poll::Ready(None);
        };
        let frame = frame?;
        let length = frame.data_ref().map_or(0, Bytes::len);
        let counted = if this.is_counted {
            this.meter.count(length)
        } else {
            Ok(())
        };
        Poll::Ready(Some(counted.map(|()| frame).map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of a request. With credentials it fails if it contains a placeholder, and its trailers are dropped.
pub(super) struct RequestBody {
    body: MeteredBody,
    scan: Option<(PlaceholderScan, Origin)>,
    /// Whether the scan may hold bytes back.
    has_held_bytes: bool,
    refusal: Arc<OnceLock<Refusal>>,
}

impl RequestBody {
    pub(super) fn new(body: MeteredBody, scan: Option<(PlaceholderScan, Origin)>) -> Self {
        Self {
            body,
            scan,
            has_held_bytes: false,
            refusal: Arc::default(),
        }
    }

    /// Returns the cell that receives the refusal if the body is refused.
    pub(super) fn refusal(&self) -> Arc<OnceLock<Refusal>> {
        Arc::clone(&self.refusal)
    }

    fn fail(&self, refusal: Refusal) -> BodyError {
        self.body.meter.shared.record(&refusal);
        // A body fails only once.
        let _ = self.refusal.set(refusal.clone());
        refusal.into()
    }

    /// Scans the next frame. Returns the bytes that can be sent, or `None` if there are none yet.
    fn scan(&mut self, frame: Option<Frame<Bytes>>) -> Result<Option<Bytes>, Refusal> {
        let Some((scan, origin)) = &mut self.scan else {
            return Ok(frame.and_then(|frame| frame.into_data().ok()));
        };
        let passed = match frame.map(Frame::into_data) {
            Some(Ok(data)) => {
                self.has_held_bytes = true;
                scan.push(&data, "the body", origin)?
            }
            Some(Err(frame)) => {
                for (name, value) in frame.trailers_ref().into_iter().flatten() {
                    let mut line = name.as_str().as_bytes().to_vec();
                    line.extend_from_slice(b": ");
                    line.extend_from_slice(value.as_bytes());
                    scan.check(&line, "a trailer", origin)?;
                }
                Vec::new()
            }
            None => {
                self.has_held_bytes = false;
                scan.finish("the body", origin)?
            }
        };
        Ok((!passed.is_empty()).then(|| passed.into()))
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        if this.scan.is_none() {
            return Pin::new(&mut this.body).poll_frame(context);
        }
        loop {
            let frame = ready!(Pin::new(&mut this.body).poll_frame(context)).transpose()?;
            let is_end = frame.is_none();
            let passed = this.scan(frame).map_err(|refusal| this.fail(refusal))?;
            match passed {
                Some(passed) => return Poll::Ready(Some(Ok(Frame::data(passed)))),
                None if is_end => return Poll::Ready(None),
                None => {}
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        !self.has_held_bytes && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
