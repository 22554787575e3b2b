//! Tools that say what they were given and count how often they ran.

use lango_core::{
    BoxFuture, Caller, Effect, Inspection, Risk, Subject, Tool, ToolError, ToolName, ToolOutput,
    ToolSpec, Trust,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

type Run = Box<dyn Fn(&Value) -> Result<String, ToolError> + Send + Sync>;

/// A tool for tests.
pub struct CountingTool {
    spec: ToolSpec,
    run: Run,
    runs: AtomicUsize,
    returns: bool,
    inspection: Inspection,
}

impl CountingTool {
    /// A tool that takes any object and gives its name and arguments back.
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

    /// The same with another schema.
    pub fn with_schema(mut self, schema: Value) -> Self {
        self.spec.parameters = schema.into();
        self
    }

    /// The same with another effect.
    pub fn with_effect(mut self, effect: Effect) -> Self {
        self.spec.effect = effect;
        self
    }

    /// The same with another risk.
    pub fn with_risk(mut self, risk: Risk) -> Self {
        self.spec.risk = risk;
        self
    }

    /// The same, and it finds this out about every call.
    pub fn with_inspection(mut self, inspection: Inspection) -> Self {
        self.inspection = inspection;
        self
    }

    /// The same with another subject.
    pub fn with_subject(mut self, subject: Subject) -> Self {
        self.spec.subject = subject;
        self
    }

    /// The same with other code.
    pub fn with_run(
        mut self,
        run: impl Fn(&Value) -> Result<String, ToolError> + Send + Sync + 'static,
    ) -> Self {
        self.run = Box::new(run);
        self
    }

    /// The same, but it begins and never comes back.
    pub fn never_returning(mut self) -> Self {
        self.returns = false;
        self
    }

    /// How often it ran.
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

/// Somebody on whose behalf a tool runs.
pub fn caller() -> Caller {
    Caller {
        user: "local".into(),
        session: "s_1".into(),
        turn: "t_1".into(),
        agent: "operator".into(),
        call: "call_1".into(),
        trust: Trust::Trusted,
        inspection: Default::default(),
    }
}

/// The spec of a tool that takes any object. It is safe, unless it pays; what pays or runs something has an effect.
pub fn spec(name: &str) -> ToolSpec {
    let (effect, risk) = match name {
        _ if name.starts_with("payment_") => (Effect::Effect, Risk::Dangerous),
        _ if name.starts_with("exec_") => (Effect::Effect, Risk::Safe),
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

/// Specs of tools that take any object.
pub fn specs(names: &[&str]) -> Vec<Arc<ToolSpec>> {
    names.iter().map(|name| Arc::new(spec(name))).collect()
}
