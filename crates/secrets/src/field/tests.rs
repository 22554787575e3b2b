//! Tests with a tool that records the arguments it receives.

use super::*;
use crate::LiteralSecretNotice;
use crate::source::SecretError;
use crate::value::SecretValue;
use lango_core::{Effect, OutputSink, Risk, RuleSubject, Trust, UserId};
use serde_json::json;
use std::sync::Mutex;
use std::time::Duration;

#[derive(Debug)]
struct OneSecret {
    binding: Binding,
    reports: Arc<Mutex<Vec<String>>>,
}

impl SecretSource for OneSecret {
    fn bound_secrets<'a>(
        &'a self,
        _: &'a UserId,
        tool: &'a str,
    ) -> BoxFuture<'a, Result<Vec<BoundSecret>, SecretError>> {
        let own = (*self.binding.tool == *tool).then(|| BoundSecret {
            name: SecretName::new("PASSWORD").unwrap(),
            binding: self.binding.clone(),
        });
        Box::pin(std::future::ready(Ok(own.into_iter().collect())))
    }

    fn resolve<'a>(
        &'a self,
        _: &'a SecretUser,
        _: &'a BoundSecret,
    ) -> BoxFuture<'a, Result<Arc<SecretValue>, SecretError>> {
        let value = Arc::new(SecretValue::new("hunter22"));
        Box::pin(std::future::ready(Ok(value)))
    }

    fn load_masks<'a>(&'a self, _: &'a UserId, _: Duration) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn log_blocked<'a>(
        &'a self,
        _: &'a SecretUser,
        _: &'a SecretName,
        _: &'a str,
    ) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn status<'a>(
        &'a self,
        _: &'a UserId,
        name: &'a SecretName,
    ) -> BoxFuture<'a, Result<SecretStatus, SecretError>> {
        let status = match name.as_str() {
            "PASSWORD" => SecretStatus::Stored,
            _ => SecretStatus::Missing,
        };
        Box::pin(std::future::ready(Ok(status)))
    }

    fn locked_secrets<'a>(&'a self, _: &'a UserId, _: &'a str) -> BoxFuture<'a, Vec<BoundSecret>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    fn report(&self, problem: &str) {
        self.reports.lock().unwrap().push(problem.to_owned());
    }
}

struct Recorder {
    spec: ToolSpec,
    got: Mutex<Vec<Value>>,
    /// The problems that were reported to the user.
    reports: Arc<Mutex<Vec<String>>>,
}

impl Tool for Recorder {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'a>(
        &'a self,
        _: &'a Caller,
        arguments: Arc<Value>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.got.lock().unwrap().push(Value::clone(&arguments));
        Box::pin(std::future::ready(Ok(ToolOutput::trusted("done"))))
    }
}

fn caller() -> Caller {
    Caller {
        user: UserId::from("ann"),
        session: "s".into(),
        turn: "t".into(),
        agent: "operator".into(),
        call: "c".into(),
        trust: Trust::Trusted,
        inspection: Inspection::default(),
        output: OutputSink::default(),
    }
}

fn tool_with(binding: Binding, id: ServerToolId) -> (Arc<Recorder>, FieldTool) {
    let recorder = Arc::new(Recorder {
        spec: ToolSpec {
            name: "pay_b_login".into(),
            description: "".into(),
            parameters: json!({}).into(),
            effect: Effect::NonIdempotent,
            risk: Risk::Moderate,
            escalation: None,
            subject: RuleSubject::Arguments,
            trust: Trust::Untrusted,
        },
        got: Mutex::default(),
        reports: Arc::default(),
    });
    let source = Arc::new(OneSecret {
        binding,
        reports: Arc::clone(&recorder.reports),
    });
    let tool = FieldTool::new(Arc::clone(&recorder) as _, id, source);
    (recorder, tool)
}

fn id(server: &str, tool: &str) -> ServerToolId {
    ServerToolId {
        server: server.into(),
        tool: tool.into(),
    }
}

#[tokio::test]
async fn only_the_bound_argument_of_the_bound_tool_is_replaced() {
    let binding = Binding::server_field(&id("pay_b", "login"), "password").unwrap();
    let (recorder, tool) = tool_with(binding, id("pay_b", "login"));
    let arguments = Arc::new(json!({
        "password": "secret:PASSWORD",
        "note": "my secret:PASSWORD",
        "deep": { "password": "secret:PASSWORD" },
        "list": ["secret:PASSWORD"],
    }));
    let inspection = tool.inspect(&caller(), Arc::clone(&arguments)).await;
    assert_eq!(inspection, Inspection::default());
    let output = tool.run(&caller(), arguments).await.unwrap();
    let got = recorder.got.lock().unwrap().remove(0);
    assert_eq!(
        got,
        json!({
            "password": "hunter22",
            "note": "my secret:PASSWORD",
            "deep": { "password": "secret:PASSWORD" },
            "list": ["secret:PASSWORD"],
        })
    );
    assert_eq!(output.text, "done");
    assert!(recorder.reports.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_missing_secret_is_refused_before_the_user_is_asked() {
    let binding = Binding::server_field(&id("pay_b", "login"), "password").unwrap();
    let (recorder, tool) = tool_with(binding, id("pay_b", "login"));
    let arguments = Arc::new(json!({ "password": "secret:PASSWORD", "other": "secret:OTHER" }));
    let problem = "there is no secret `OTHER`; `lango secrets set OTHER` stores it";
    let inspection = tool.inspect(&caller(), Arc::clone(&arguments)).await;
    assert_eq!(inspection.refused.as_deref(), Some(problem));
    let error = tool.run(&caller(), arguments).await.unwrap_err();
    assert_eq!(error.message, problem);
    assert_eq!(*recorder.reports.lock().unwrap(), [problem]);
    assert!(recorder.got.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_secret_of_another_tool_argument_or_server_is_refused_before_the_user_is_asked() {
    let origin = Origin::parse("shop.example").unwrap();
    let own = id("pay_b", "login");
    for binding in [
        // Models see the same name, `pay_b_login`, for this tool.
        Binding::server_field(&id("pay", "b_login"), "password").unwrap(),
        Binding::server_field(&id("pay_b", "logout"), "password").unwrap(),
        Binding::server_field(&own, "user").unwrap(),
        Binding::field("mcp:pay_b", "password", Some(origin)).unwrap(),
        Binding::field("pay_b_login", "password", None).unwrap(),
        Binding::program("mcp:pay_b", "password", "A").unwrap(),
    ] {
        let shown = binding.to_string();
        let (recorder, tool) = tool_with(binding, own.clone());
        let arguments = Arc::new(json!({ "password": "secret:PASSWORD" }));
        let inspection = tool.inspect(&caller(), Arc::clone(&arguments)).await;
        let refused = inspection.refused.unwrap().to_string();
        assert!(
            refused.contains("--tool mcp:pay_b/login --field password"),
            "{refused}"
        );
        let error = tool.run(&caller(), arguments).await.unwrap_err();
        assert_eq!(error.message, refused);
        assert!(recorder.reports.lock().unwrap().contains(&refused));
        assert!(recorder.got.lock().unwrap().is_empty(), "{shown}");
    }
}

#[tokio::test]
async fn a_tool_that_does_not_resolve_secrets_says_so_for_stored_ones() {
    let binding = Binding::program("exec", "aws", "A").unwrap();
    let (recorder, _) = tool_with(binding.clone(), id("a", "b"));
    let source = OneSecret {
        binding,
        reports: Arc::default(),
    };
    let tool = LiteralSecretNotice::new(Arc::clone(&recorder) as _, Arc::new(source));
    for (content, has_remark) in [
        ("token = secret:PASSWORD.", true),
        ("secret:OTHER", false),
        ("my-secret:PASSWORD", false),
        ("plain", false),
    ] {
        let arguments = json!({ "path": "a", "edits": [{ "new": content }] });
        let output = tool.run(&caller(), Arc::new(arguments)).await.unwrap();
        let remark = "secret:PASSWORD is not resolved in arguments of pay_b_login";
        assert_eq!(output.text.contains(remark), has_remark, "{content}");
    }
}

#[test]
fn a_handle_must_match_exactly() {
    assert_eq!(secret_handle("secret:A").unwrap().as_str(), "A");
    for text in [
        "secret:",
        "secret: A",
        " secret:A",
        "secret:A ",
        "Secret:A",
        "secret:A\n",
        "A",
    ] {
        assert!(secret_handle(text).is_none(), "{text:?}");
    }
}
