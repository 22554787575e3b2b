//! Builds a tool from a declaration and a function with one argument type.
//!
//! The argument type defines the arguments: the model sees its JSON schema (the doc comments of its fields are the
//! descriptions), and the function receives a parsed value of the type. To add a tool, write that type, the function
//! and one declaration.

use crate::{
    BoxFuture, Caller, Effect, Inspection, PreviewRequest, Risk, RuleSubject, Tool, ToolError,
    ToolOutput, ToolSpec, Trust,
};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;

/// The properties of a tool other than its arguments.
#[derive(Debug, Clone, Copy)]
pub struct ToolDeclaration {
    /// The name. Its prefix decides which agent owns the tool.
    pub name: &'static str,
    /// What the tool does, for the model.
    pub description: &'static str,
    pub effect: Effect,
    pub risk: Risk,
    /// What approval rules match against.
    pub subject: RuleSubject,
}

impl ToolDeclaration {
    /// Builds a tool from an asynchronous function.
    pub fn with_code<A, F, R, O>(self, code: F) -> Arc<dyn Tool>
    where
        A: JsonSchema + DeserializeOwned + 'static,
        F: Fn(Caller, A) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, ToolError>> + Send + 'static,
        O: Into<ToolOutput>,
    {
        self.with_parts(code, None, None)
    }

    /// Builds a tool like [`Self::with_code`], with an optional preview for the user who approves a call (what it would
    /// change, or why it would fail) and an optional inspection before the gate decides.
    pub fn with_parts<A, F, R, O>(
        self,
        code: F,
        preview: Option<PreviewFn<A>>,
        inspect: Option<InspectFn<A>>,
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
        declared_tool(spec, code, preview, inspect)
    }
}

/// Builds a tool from a complete specification, whose parameters must be the schema of `A`.
pub fn declared_tool<A, F, R, O>(
    spec: ToolSpec,
    code: F,
    preview: Option<PreviewFn<A>>,
    inspect: Option<InspectFn<A>>,
) -> Arc<dyn Tool>
where
    A: DeserializeOwned + 'static,
    F: Fn(Caller, A) -> R + Send + Sync + 'static,
    R: Future<Output = Result<O, ToolError>> + Send + 'static,
    O: Into<ToolOutput>,
{
    Arc::new(DeclaredTool {
        spec,
        code,
        preview,
        inspect,
    })
}

/// A function that describes what a call would change, without changing anything.
pub type PreviewFn<A> =
    Box<dyn Fn(A, PreviewRequest) -> BoxFuture<'static, Result<String, ToolError>> + Send + Sync>;

/// A function that inspects what a call would touch.
pub type InspectFn<A> = Box<dyn Fn(Caller, A) -> BoxFuture<'static, Inspection> + Send + Sync>;

struct DeclaredTool<A, F> {
    spec: ToolSpec,
    code: F,
    preview: Option<PreviewFn<A>>,
    inspect: Option<InspectFn<A>>,
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
        request: PreviewRequest,
    ) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let preview = self.preview.as_ref()?;
            let started = parse_arguments(&self.spec, &arguments)
                .map(|arguments| preview(arguments, request));
            let shown = match started {
                Ok(started) => started.await,
                Err(error) => Err(error),
            };
            Some(shown.unwrap_or_else(|error| format!("This call will fail: {error}\n")))
        })
    }
}

/// Parses the arguments of a call. The error tells the model what is wrong.
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

/// Returns the JSON schema of `A` without parts that are useless to a model: the dialect, the Rust name and references.
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
