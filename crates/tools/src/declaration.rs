//! Tools whose code blocks its thread, and so runs where that disturbs no one.

use lango_core::{
    BoxFuture, Caller, Declaration, Extent, Inspect, Inspection, Preview, Tool, ToolError,
    ToolOutput,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// A declaration joined with code that blocks.
pub(crate) trait Blocking {
    /// The tool whose code blocks its thread.
    fn with_blocking_code<A, O, F>(self, code: F) -> Arc<dyn Tool>
    where
        A: JsonSchema + DeserializeOwned + Send + 'static,
        O: Into<ToolOutput> + Send + 'static,
        F: Fn(A) -> Result<O, ToolError> + Send + Sync + 'static;

    /// The same for one that is shown to a person before it runs.
    fn with_blocking_parts<A, F>(self, code: F, parts: BlockingParts<A>) -> Arc<dyn Tool>
    where
        A: JsonSchema + DeserializeOwned + Send + 'static,
        F: Fn(Caller, A) -> Result<String, ToolError> + Send + Sync + 'static;
}

/// What looks at a call before it runs, and changes nothing.
pub(crate) struct BlockingParts<A> {
    /// What the call would change, or why it would fail.
    pub(crate) preview: Box<dyn Fn(A, Extent) -> Result<String, ToolError> + Send + Sync>,
    /// What the call would touch.
    pub(crate) inspect: Option<Box<dyn Fn(A) -> Inspection + Send + Sync>>,
}

impl Blocking for Declaration {
    fn with_blocking_code<A, O, F>(self, code: F) -> Arc<dyn Tool>
    where
        A: JsonSchema + DeserializeOwned + Send + 'static,
        O: Into<ToolOutput> + Send + 'static,
        F: Fn(A) -> Result<O, ToolError> + Send + Sync + 'static,
    {
        let code = on_its_own_thread(self.name, code);
        self.with_code(move |_caller, arguments| code(arguments))
    }

    fn with_blocking_parts<A, F>(self, code: F, parts: BlockingParts<A>) -> Arc<dyn Tool>
    where
        A: JsonSchema + DeserializeOwned + Send + 'static,
        F: Fn(Caller, A) -> Result<String, ToolError> + Send + Sync + 'static,
    {
        let show = parts.preview;
        let show = on_its_own_thread(self.name, move |(arguments, extent)| {
            show(arguments, extent)
        });
        let preview: Preview<A> = Box::new(move |arguments, extent| show((arguments, extent)));
        let inspect = parts.inspect.map(|look| -> Inspect<A> {
            let look = on_its_own_thread(self.name, move |arguments| Ok(look(arguments)));
            Box::new(move |_caller, arguments| {
                let inspection = look(arguments);
                // What cannot be looked at is refused when the call runs.
                Box::pin(async move { inspection.await.unwrap_or_default() })
            })
        });
        let code = on_its_own_thread(self.name, move |(caller, arguments)| {
            code(caller, arguments)
        });
        self.with_parts(
            move |caller, arguments| code((caller, arguments)),
            Some(preview),
            inspect,
        )
    }
}

/// A future of code that blocks.
fn on_its_own_thread<I, O, F>(
    name: &'static str,
    code: F,
) -> impl Fn(I) -> BoxFuture<'static, Result<O, ToolError>> + Send + Sync
where
    I: Send + 'static,
    O: Send + 'static,
    F: Fn(I) -> Result<O, ToolError> + Send + Sync + 'static,
{
    let code = Arc::new(code);
    move |input| {
        let code = Arc::clone(&code);
        let work = tokio::task::spawn_blocking(move || code(input));
        Box::pin(async move {
            work.await.unwrap_or_else(|failure| {
                let message = format!("`{name}` broke down: {failure}; do without this call");
                Err(ToolError::new(message))
            })
        })
    }
}
