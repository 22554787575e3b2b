//! How a tool comes to be: a declaration joined with a function of one argument type.
//!
//! The argument type says everything about the arguments: its JSON schema is what the model sees (the doc comments of
//! its fields are the descriptions), and the function receives it parsed. Adding a tool is writing that type, the
//! function, and one declaration.

use crate::{
    BoxFuture, Caller, Effect, Extent, Inspection, Risk, Subject, Tool, ToolError, ToolOutput,
    ToolSpec, Trust,
};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;

/// What a tool says of itself besides its arguments.
#[derive(Debug, Clone, Copy)]
pub struct Declaration {
    /// Its name; the prefix decides who owns it.
    pub name: &'static str,
    /// What it does, for the model.
    pub description: &'static str,
    /// What happens when it runs twice.
    pub effect: Effect,
    /// How much harm it can do.
    pub risk: Risk,
    /// What stands for its arguments where a rule speaks of them.
    pub subject: Subject,
}

impl Declaration {
    /// The tool whose code is an asynchronous function. It is told on whose behalf it runs.
    pub fn with_code<A, F, R, O>(self, code: F) -> Arc<dyn Tool>
    where
        A: JsonSchema + DeserializeOwned + 'static,
        F: Fn(Caller, A) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, ToolError>> + Send + 'static,
        O: Into<ToolOutput>,
    {
        self.with_parts(code, None, None)
    }

    /// The same, with what is shown to a person before it runs (what the call would change, or why it would fail), and
    /// with what is looked at before the gate decides.
    pub fn with_parts<A, F, R, O>(
        self,
        code: F,
        preview: Option<Preview<A>>,
        inspect: Option<Inspect<A>>,
    ) -> Arc<dyn Tool>
    where
        A: JsonSchema + DeserializeOwned + 'static,
        F: Fn(Caller, A) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, ToolError>> + Send + 'static,
        O: Into<ToolOutput>,
    {
        let spec = ToolSpec {
            name: self.name.into(),
            description: self.description.into(),
            parameters: schema_of::<A>().into(),
            effect: self.effect,
            risk: self.risk,
            escalation: None,
            subject: self.subject,
            trust: Trust::Trusted,
        };
        Arc::new(DeclaredTool {
            spec,
            code,
            preview,
            inspect,
        })
    }
}

/// Says what a call would change, and changes nothing.
pub type Preview<A> =
    Box<dyn Fn(A, Extent) -> BoxFuture<'static, Result<String, ToolError>> + Send + Sync>;

/// Looks at what a call would touch.
pub type Inspect<A> = Box<dyn Fn(Caller, A) -> BoxFuture<'static, Inspection> + Send + Sync>;

struct DeclaredTool<A, F> {
    spec: ToolSpec,
    code: F,
    preview: Option<Preview<A>>,
    inspect: Option<Inspect<A>>,
}

impl<A, F, R, O> Tool for DeclaredTool<A, F>
where
    A: DeserializeOwned,
    F: Fn(Caller, A) -> R + Send + Sync,
    R: Future<Output = Result<O, ToolError>> + Send + 'static,
    O: Into<ToolOutput>,
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
            let arguments = parse_arguments(&self.spec, &arguments)?;
            (self.code)(caller.clone(), arguments).await.map(Into::into)
        })
    }

    fn inspect<'a>(
        &'a self,
        caller: &'a Caller,
        arguments: Arc<Value>,
    ) -> BoxFuture<'a, Inspection> {
        Box::pin(async move {
            let Some(inspect) = self.inspect.as_ref() else {
                return Inspection::default();
            };
            let started = parse_arguments(&self.spec, &arguments)
                .map(|arguments| inspect(caller.clone(), arguments));
            match started {
                Ok(started) => started.await,
                Err(_) => Inspection::default(),
            }
        })
    }

    fn preview<'a>(
        &'a self,
        arguments: Arc<Value>,
        extent: Extent,
    ) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let preview = self.preview.as_ref()?;
            let started =
                parse_arguments(&self.spec, &arguments).map(|arguments| preview(arguments, extent));
            let shown = match started {
                Ok(started) => started.await,
                Err(error) => Err(error),
            };
            Some(shown.unwrap_or_else(|error| format!("This call will fail: {error}\n")))
        })
    }
}

/// The arguments of a call, or what is wrong with them.
pub fn parse_arguments<A: DeserializeOwned>(
    spec: &ToolSpec,
    arguments: &Value,
) -> Result<A, ToolError> {
    A::deserialize(arguments).map_err(|error| {
        let name = &spec.name;
        ToolError::trusted(format!(
            "the arguments do not fit `{name}`: {error}; see its schema"
        ))
    })
}

/// The schema of `A` without what a model has no use for: the dialect, the Rust name and references.
pub fn schema_of<A: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<A>();
    schema.remove("title");
    schema.remove("description");
    schema.to_value()
}
