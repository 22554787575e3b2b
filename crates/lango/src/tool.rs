//! Tools of your own: one function with typed arguments.

use lango_core::{
    AgentName, Caller, Effect, Risk, RuleSubject, Text, Tool, ToolError, ToolName, ToolOutput,
    ToolSpec, Trust, declared_tool, schema_of,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use std::fmt;
use std::sync::Arc;

/// Creates a tool from an asynchronous function with one argument type.
///
/// The model sees the JSON schema of the type, with the doc comments of its fields as descriptions; the function gets a
/// parsed value. By default the tool runs without approval, and a call that was interrupted by a crash is not repeated.
///
/// ```
/// # use lango::{JsonSchema, ToolError, tool};
/// #[derive(serde::Deserialize, JsonSchema)]
/// struct Order {
///     /// The number of the order, such as `A-17`.
///     number: String,
/// }
///
/// let status = tool("search_order", "Returns the status of an order", |order: Order| async move {
///     match order.number.as_str() {
///         "A-17" => Ok("shipped".to_owned()),
///         other => Err(ToolError::new(format!("there is no order {other}"))),
///     }
/// });
/// ```
pub fn tool<A, F, R, O>(
    name: impl Into<String>,
    description: impl Into<String>,
    code: F,
) -> CustomTool
where
    A: JsonSchema + DeserializeOwned + Send + 'static,
    F: Fn(A) -> R + Send + Sync + 'static,
    R: Future<Output = Result<O, ToolError>> + Send + 'static,
    O: Into<ToolOutput> + 'static,
{
    tool_with_caller(name, description, move |_caller, arguments| code(arguments))
}

/// Creates a tool like [`tool`], whose function also gets the [`Caller`]: the user, the session, and an idempotency key.
pub fn tool_with_caller<A, F, R, O>(
    name: impl Into<String>,
    description: impl Into<String>,
    code: F,
) -> CustomTool
where
    A: JsonSchema + DeserializeOwned + Send + 'static,
    F: Fn(Caller, A) -> R + Send + Sync + 'static,
    R: Future<Output = Result<O, ToolError>> + Send + 'static,
    O: Into<ToolOutput> + 'static,
{
    let spec = ToolSpec {
        name: ToolName::new(name.into()),
        description: Text::from(description.into()),
        parameters: schema_of::<A>().into(),
        effect: Effect::NonIdempotent,
        risk: Risk::Safe,
        escalation: None,
        subject: RuleSubject::default(),
        trust: Trust::Trusted,
    };
    CustomTool {
        spec,
        owner: None,
        capability: None,
        build: Box::new(move |spec| declared_tool(spec, code, None, None)),
    }
}

type BuildTool = Box<dyn FnOnce(ToolSpec) -> Arc<dyn Tool> + Send>;

/// A tool that is not installed yet. Pass it to [`Builder::tool`](crate::Builder::tool).
pub struct CustomTool {
    pub(crate) spec: ToolSpec,
    pub(crate) owner: Option<AgentName>,
    pub(crate) capability: Option<Text>,
    build: BuildTool,
}

impl CustomTool {
    /// Names the agent that owns the tool. Without it, the prefix of the tool's name decides.
    #[must_use]
    pub fn owner(self, agent: impl Into<String>) -> Self {
        let agent: String = agent.into();
        Self {
            owner: Some(AgentName::new(agent)),
            ..self
        }
    }

    /// Says what an agent can do with the tool, for the orchestrator's routing table, such as `order look-up`. It is used
    /// with [`owner`](Self::owner); without it, the routing table has the description.
    #[must_use]
    pub fn capability(self, text: impl Into<Text>) -> Self {
        Self {
            capability: Some(text.into()),
            ..self
        }
    }

    /// Asks the [`Approver`](crate::Approver) before each call.
    #[must_use]
    pub fn needs_approval(self) -> Self {
        self.risk(Risk::Moderate)
    }

    /// Declares that the tool changes nothing, so that an interrupted call can be repeated.
    #[must_use]
    pub fn pure(self) -> Self {
        self.effect(Effect::Pure)
    }

    /// Sets the effect, which decides whether an interrupted call may be repeated.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        self.spec.effect = effect;
        self
    }

    /// Sets the risk. A tool that is not [`Risk::Safe`] needs an approval, or a rule that allows it.
    #[must_use]
    pub fn risk(mut self, risk: Risk) -> Self {
        self.spec.risk = risk;
        self
    }

    pub(crate) fn build(self) -> Arc<dyn Tool> {
        (self.build)(self.spec)
    }
}

impl fmt::Debug for CustomTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomTool")
            .field("name", &self.spec.name)
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}
