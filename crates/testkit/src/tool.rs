//! Tools that return their arguments and count how often they ran.

use lango_core::{
    BoxFuture, Caller, Effect, Inspection, Risk, RuleSubject, Tool, ToolError, ToolName,
    ToolOutput, ToolSpec, Trust,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

type Run = Box<dyn Fn(&Value) -> Result<String, ToolError> + Send + Sync>;

/// A tool that counts its runs. By default it is pure, takes any object and returns its name and arguments.
pub struct CountingTool {
    spec: ToolSpec,
    run: Run,
    runs: AtomicUsize,
    returns: bool,
    inspection: Inspection,
}

impl CountingTool {
    pub fn new(name: &str) -> Self {
        let own_name = name.to_owned();
        Self {
            spec: spec(name),
            run: Box::new(move |arguments| Ok(format!("{own_name} ran with {arguments}"))),
            runs: AtomicUsize::new(0),
            returns: true,
            inspection: Inspection::default(),
        }
    }

    pub fn with_schema(mut self, schema: Value) -> Self {
        self.spec.parameters = schema.into();
        self
    }

    pub fn with_effect(mut self, effect: Effect) -> Self {
        self.spec.effect = effect;
        self
    }

    pub fn with_risk(mut self, risk: Risk) -> Self {
        self.spec.risk = risk;
        self
    }

    /// Sets the inspection result of all its calls.
    pub fn with_inspection(mut self, inspection: Inspection) -> Self {
        self.inspection = inspection;
        self
    }

    pub fn with_subject(mut self, subject: RuleSubject) -> Self {
        self.spec.subject = subject;
        self
    }

    /// Replaces the code that it runs.
    pub fn with_run(
        mut self,
        run: impl Fn(&Value) -> Result<String, ToolError> + Send + Sync + 'static,
    ) -> Self {
        self.run = Box::new(run);
        self
    }

    /// Makes every run start and never return.
    pub fn never_returning(mut self) -> Self {
        self.returns = false;
        self
    }

    /// Returns how often it was started.
    pub fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }
}

impl Tool for CountingTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'a>(
        &'a self,
        _caller: &'a Caller,
        arguments: Arc<Value>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            if !self.returns {
                std::future::pending::<()>().await;
            }
            (self.run)(&arguments).map(ToolOutput::from)
        })
    }

    fn inspect<'a>(
        &'a self,
        _caller: &'a Caller,
        _arguments: Arc<Value>,
    ) -> BoxFuture<'a, Inspection> {
        Box::pin(std::future::ready(self.inspection.clone()))
    }
}

/// Returns the context of a tool call by the agent `operator` of the user `local`.
pub fn caller() -> Caller {
    Caller {
        user: "local".into(),
        session: "s_1".into(),
        turn: "t_1".into(),
        agent: "operator".into(),
        call: "call_1".into(),
        trust: Trust::Trusted,
        inspection: Default::default(),
        output: Default::default(),
    }
}

/// Returns the spec of a tool that takes any object. The name decides the rest: a `payment_` tool is dangerous and has
/// an effect, an `exec_` tool is safe and has an effect, `fs_edit` changes something that can be undone, and all others
/// are safe and pure.
pub fn spec(name: &str) -> ToolSpec {
    let (effect, risk) = match name {
        _ if name.starts_with("payment_") => (Effect::NonIdempotent, Risk::Dangerous),
        _ if name.starts_with("exec_") => (Effect::NonIdempotent, Risk::Safe),
        "fs_edit" => (Effect::NonIdempotent, Risk::Moderate),
        _ => (Effect::Pure, Risk::Safe),
    };
    ToolSpec {
        name: ToolName::from(name),
        description: format!("Does what {name} says").into(),
        parameters: json!({ "type": "object" }).into(),
        effect,
        risk,
        escalation: None,
        subject: Default::default(),
        trust: Trust::Trusted,
    }
}

/// Returns the specs of several tools, as [`spec`] builds them.
pub fn specs(names: &[&str]) -> Vec<Arc<ToolSpec>> {
    names.iter().map(|name| Arc::new(spec(name))).collect()
}
