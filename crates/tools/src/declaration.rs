//! How a tool comes to be: a declaration joined with a function of one argument type.
//!
//! The argument type says everything about the arguments: its JSON schema is what the model sees (the doc comments of
//! its fields are the descriptions), and the function receives it parsed. Adding a tool is writing that type, the
//! function, and one declaration.

use lango_core::{BoxFuture, Caller, Effect, Risk, Subject, Tool, ToolError, ToolOutput, ToolSpec};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;

/// What a tool says of itself besides its arguments.
pub(crate) struct Declaration {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) effect: Effect,
    pub(crate) risk: Risk,
    pub(crate) subject: Subject,
}

impl Declaration {
    /// The tool whose code is an asynchronous function. It is told on whose behalf it runs.
    pub(crate) fn with_code<A, F, R>(self, code: F) -> Arc<dyn Tool>
    where
        A: JsonSchema + DeserializeOwned + 'static,
        F: Fn(Caller, A) -> R + Send + Sync + 'static,
        R: Future<Output = Result<String, ToolError>> + Send + 'static,
    {
        self.with_parts(code, None)
    }

    /// The tool whose code blocks its thread: it runs where that disturbs no one.
    pub(crate) fn with_blocking_code<A, F>(self, code: F) -> Arc<dyn Tool>
    where
        A: JsonSchema + DeserializeOwned + Send + 'static,
        F: Fn(A) -> Result<String, ToolError> + Send + Sync + 'static,
    {
        let code = on_its_own_thread(self.name, code);
        self.with_code(move |_caller, arguments| code(arguments))
    }

    /// The same for one that is shown to a person before it runs: `preview` says what the call would change, or why it
    /// would fail, and changes nothing.
    pub(crate) fn with_blocking_code_and_preview<A, F, P>(
        self,
        code: F,
        preview: P,
    ) -> Arc<dyn Tool>
    where
        A: JsonSchema + DeserializeOwned + Send + 'static,
        F: Fn(A) -> Result<String, ToolError> + Send + Sync + 'static,
        P: Fn(A) -> Result<String, ToolError> + Send + Sync + 'static,
    {
        let preview = Box::new(on_its_own_thread(self.name, preview));
        let code = on_its_own_thread(self.name, code);
        self.with_parts(move |_caller, arguments| code(arguments), Some(preview))
    }

    fn with_parts<A, F, R>(self, code: F, preview: Option<Preview<A>>) -> Arc<dyn Tool>
    where
        A: JsonSchema + DeserializeOwned + 'static,
        F: Fn(Caller, A) -> R + Send + Sync + 'static,
        R: Future<Output = Result<String, ToolError>> + Send + 'static,
    {
        let spec = ToolSpec {
            name: self.name.into(),
            description: self.description.into(),
            parameters: Arc::new(schema_of::<A>()),
            effect: self.effect,
            risk: self.risk,
            escalation: None,
            subject: self.subject,
        };
        Arc::new(DeclaredTool {
            spec,
            code,
            preview,
        })
    }
}

type Preview<A> = Box<dyn Fn(A) -> BoxFuture<'static, Result<String, ToolError>> + Send + Sync>;

struct DeclaredTool<A, F> {
    spec: ToolSpec,
    code: F,
    preview: Option<Preview<A>>,
}

impl<A, F, R> Tool for DeclaredTool<A, F>
where
    A: DeserializeOwned,
    F: Fn(Caller, A) -> R + Send + Sync,
    R: Future<Output = Result<String, ToolError>> + Send + 'static,
{
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'a>(
        &'a self,
        caller: &'a Caller,
        arguments: Arc<Value>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let arguments = parse(&self.spec, &arguments)?;
            (self.code)(caller.clone(), arguments)
                .await
                .map(ToolOutput::from)
        })
    }

    fn preview<'a>(&'a self, arguments: Arc<Value>) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let preview = self.preview.as_ref()?;
            let started = parse(&self.spec, &arguments).map(preview);
            let shown = match started {
                Ok(started) => started.await,
                Err(error) => Err(error),
            };
            Some(shown.unwrap_or_else(|error| format!("This call will fail: {error}\n")))
        })
    }
}

/// A future of code that blocks.
fn on_its_own_thread<A, F>(
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

/// The arguments of a call, or what is wrong with them.
pub(crate) fn parse<A: DeserializeOwned>(
    spec: &ToolSpec,
    arguments: &Value,
) -> Result<A, ToolError> {
    A::deserialize(arguments).map_err(|error| {
        let name = &spec.name;
        ToolError::new(format!(
            "the arguments do not fit `{name}`: {error}; see its schema"
        ))
    })
}

/// The schema of `A` without what a model has no use for: the dialect, the Rust name and references.
pub(crate) fn schema_of<A: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<A>();
    schema.remove("title");
    schema.remove("description");
    schema.to_value()
}
