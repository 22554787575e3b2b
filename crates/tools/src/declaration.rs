//! Tools with blocking code, which runs on the runtime's pool of blocking threads.

use lango_core::{
    BoxFuture, Caller, InspectFn, Inspection, PreviewFn, PreviewRequest, Tool, ToolDeclaration,
    ToolError, ToolOutput,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A call whose blocking code is running.
pub(crate) struct Call {
    pub(crate) caller: Caller,
    pub(crate) cancellation: Cancellation,
}

/// Whether a call was cancelled: the user stopped the turn, or the call timed out. Blocking code cannot be stopped from
/// outside, so it asks before it changes something.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cancellation(Arc<AtomicBool>);

impl Cancellation {
    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Cancels a call when its future is dropped.
struct CancelOnDrop(Cancellation);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Release);
    }
}

/// Builds a tool from a declaration and blocking code.
pub(crate) trait Blocking {
    fn with_blocking_code<A, O, F>(self, code: F) -> Arc<dyn Tool>
    where
        A: JsonSchema + DeserializeOwned + Send + 'static,
        O: Into<ToolOutput> + Send + 'static,
        F: Fn(A) -> Result<O, ToolError> + Send + Sync + 'static;

    /// Builds a tool whose calls can be previewed and inspected before they run.
    fn with_blocking_parts<A, O, F>(self, code: F, parts: BlockingParts<A>) -> Arc<dyn Tool>
    where
        A: JsonSchema + DeserializeOwned + Send + 'static,
        O: Into<ToolOutput> + Send + 'static,
        F: Fn(Call, A) -> Result<O, ToolError> + Send + Sync + 'static;
}

/// Functions that examine a call before it runs. They change nothing.
pub(crate) struct BlockingParts<A> {
    /// Describes what the call would change; fails if the call would fail.
    pub(crate) preview: Option<BlockingPreview<A>>,
    /// Reports what the call would touch.
    pub(crate) inspect: Option<BlockingInspect<A>>,
}

type BlockingInspect<A> = Box<dyn Fn(&Caller, A) -> Inspection + Send + Sync>;

type BlockingPreview<A> =
    Box<dyn Fn(A, &PreviewRequest) -> Result<String, ToolError> + Send + Sync>;

impl Blocking for ToolDeclaration {
    fn with_blocking_code<A, O, F>(self, code: F) -> Arc<dyn Tool>
    where
        A: JsonSchema + DeserializeOwned + Send + 'static,
        O: Into<ToolOutput> + Send + 'static,
        F: Fn(A) -> Result<O, ToolError> + Send + Sync + 'static,
    {
        let code = run_blocking(self.name, move |arguments, _| code(arguments));
        self.with_code(move |_caller, arguments| code(arguments))
    }

    fn with_blocking_parts<A, O, F>(self, code: F, parts: BlockingParts<A>) -> Arc<dyn Tool>
    where
        A: JsonSchema + DeserializeOwned + Send + 'static,
        O: Into<ToolOutput> + Send + 'static,
        F: Fn(Call, A) -> Result<O, ToolError> + Send + Sync + 'static,
    {
        let preview = parts.preview.map(|show| -> PreviewFn<A> {
            let show = run_blocking(self.name, move |(arguments, request), _| {
                show(arguments, &request)
            });
            Box::new(move |arguments, request: PreviewRequest| show((arguments, request)))
        });
        let inspect = parts.inspect.map(|inspect| -> InspectFn<A> {
            let inspect = run_blocking(self.name, move |(caller, arguments), _| {
                Ok(inspect(&caller, arguments))
            });
            Box::new(move |caller: Caller, arguments| {
                let inspection = inspect((caller, arguments));
                // If the inspection fails, the call is refused when it runs.
                Box::pin(async move { inspection.await.unwrap_or_default() })
            })
        });
        let code = run_blocking(self.name, move |(caller, arguments), cancellation| {
            let call = Call {
                caller,
                cancellation,
            };
            code(call, arguments)
        });
        self.with_parts(
            move |caller, arguments| code((caller, arguments)),
            preview,
            inspect,
        )
    }
}

/// Wraps blocking code in a function that returns a future. A panic becomes a tool error.
fn run_blocking<I, O, F>(
    name: &'static str,
    code: F,
) -> impl Fn(I) -> BoxFuture<'static, Result<O, ToolError>> + Send + Sync
where
    I: Send + 'static,
    O: Send + 'static,
    F: Fn(I, Cancellation) -> Result<O, ToolError> + Send + Sync + 'static,
{
    let code = Arc::new(code);
    move |input| {
        let code = Arc::clone(&code);
        let cancellation = Cancellation::default();
        let guard = CancelOnDrop(cancellation.clone());
        let work = tokio::task::spawn_blocking(move || code(input, cancellation));
        Box::pin(async move {
            let _guard = guard;
            work.await.unwrap_or_else(|failure| {
                let message = format!("`{name}` crashed: {failure}; continue without this call");
                Err(ToolError::new(message))
            })
        })
    }
}
