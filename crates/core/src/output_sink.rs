//! The way from a running tool to the user interface.

use std::fmt;
use std::sync::Arc;

/// Shows the output of a tool call while it runs. If the call is stopped, the end of what was pushed becomes part of its
/// result; otherwise the model does not see it, and it is not stored. The default sink discards everything, and so does
/// every sink once its call has ended.
#[derive(Clone, Default)]
pub struct OutputSink(Option<Arc<ShowFn>>);

type ShowFn = dyn Fn(&str) + Send + Sync;

impl OutputSink {
    /// Creates a sink that passes everything to this function, which must not block.
    pub fn new(show: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(show)))
    }

    /// Shows the next piece of the output. A carriage return in it starts the last line again. Never waits: if there is
    /// more than can be shown, only the end is. Secrets that lango knows are masked, also if a value is split over several
    /// pieces.
    pub fn push(&self, text: &str) {
        if let Some(show) = &self.0 {
            show(text);
        }
    }

    /// Whether everything is discarded.
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }
}

/// Two sinks are equal if they are clones of the same, or both discard everything.
impl PartialEq for OutputSink {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        }
    }
}

impl Eq for OutputSink {}

impl fmt::Debug for OutputSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_none() {
            "OutputSink(none)"
        } else {
            "OutputSink"
        })
    }
}
