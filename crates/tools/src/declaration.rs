//! Tools whose code blocks its thread, and so runs where that disturbs no one.

use lango_core::{BoxFuture, Declaration, Tool, ToolError};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// A declaration joined with code that blocks.
pub(crate) trait Blocking {
    /// The tool whose code blocks its thread.
    fn with_blocking_code<A, F>(self, code: F) -> Arc<dyn Tool>
    where
        A: JsonSchema + DeserializeOwned + Send + 'static,
        F: Fn(A) -> Result<String, ToolError> + Send + Sync + 'static;

    /// The same for one that is shown to a person before it runs: `preview` says what the call would change, or why it
    /// would fail, and changes nothing.
    fn with_blocking_code_and_preview<A, F, P>(self, code: F, preview: P) -> Arc<dyn Tool>
    where
        A: JsonSchema + DeserializeOwned + Send + 'static,
        F: Fn(A) -> Result<String, ToolError> + Send + Sync + 'static,
        P: Fn(A) -> Result<String, ToolError> + Send + Sync + 'static;
}

impl Blocking for Declaration {
    fn with_blocking_code<A, F>(self, code: F) -> Arc<dyn Tool>
    where
        A: JsonSchema + DeserializeOwned + Send + 'static,
        F: Fn(A) -> Result<String, ToolError> + Send + Sync + 'static,
    {
        let code = on_its_own_thread(self.name, code);
        self.with_code(move |_caller, arguments| code(arguments))
    }

    fn with_blocking_code_and_preview<A, F, P>(self, code: F, preview: P) -> Arc<dyn Tool>
    where
        A: JsonSchema + DeserializeOwned + Send + 'static,
        F: Fn(A) -> Result<String, ToolError> + Send + Sync + 'static,
        P: Fn(A) -> Result<String, ToolError> + Send + Sync + 'static,
    {
        let preview = Box::new(on_its_own_thread(self.name, preview));
        let code = on_its_own_thread(self.name, code);
        self.with_parts(move |_caller, arguments| code(arguments), Some(preview))
    }
}

/// A future of code that blocks.
pub(crate) fn on_its_own_thread<A, F>(
    name: &'static str,
    code: F,
) -> impl Fn(A) -> BoxFuture<'static, Result<String, ToolError>> + Send + Sync
where
    A: Send + 'static,
    F: Fn(A) -> Result<String, ToolError> + Send + Sync + 'static,
{
    let code = Arc::new(code);
    move |arguments| {
        let code = Arc::clone(&code);
        let work = tokio::task::spawn_blocking(move || code(arguments));
        Box::pin(async move {
            work.await.unwrap_or_else(|failure| {
                let message = format!("`{name}` broke down: {failure}; do without this call");
                Err(ToolError::new(message))
            })
        })
    }
}
