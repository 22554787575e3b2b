//! A tool that remembers what it got.

use super::*;
use crate::source::SecretError;
use crate::value::SecretValue;
use lango_core::{Effect, Risk, Subject, Trust, UserId};
use serde_json::json;
use std::sync::Mutex;

#[derive(Debug)]
struct OneSecret(Binding);

impl SecretSource for OneSecret {
    fn bound<'a>(
        &'a self,
        _: &'a UserId,
        tool: &'a str,
    ) -> BoxFuture<'a, Result<Vec<BoundSecret>, SecretError>> {
        let own = (*self.0.tool == *tool).then(|| BoundSecret {
            name: SecretName::new("PASSWORD").unwrap(),
            binding: self.0.clone(),
        });
        Box::pin(std::future::ready(Ok(own.into_iter().collect())))
    }

    fn resolve<'a>(
        &'a self,
        _: &'a UserId,
        _: &'a BoundSecret,
    ) -> BoxFuture<'a, Result<Arc<SecretValue>, SecretError>> {
        let value = Arc::new(SecretValue::new("hunter22"));
        Box::pin(std::future::ready(Ok(value)))
    }
}

struct Recorder {
    spec: ToolSpec,
    got: Mutex<Vec<Value>>,
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
    }
}

async fn run(binding: Binding, arguments: Value) -> (Value, String) {
    let recorder = Arc::new(Recorder {
        spec: ToolSpec {
            name: "shop_login".into(),
            description: "".into(),
            parameters: Arc::new(json!({})),
            effect: Effect::Effect,
            risk: Risk::Moderate,
            escalation: None,
            subject: Subject::Arguments,
            trust: Trust::Untrusted,
        },
        got: Mutex::default(),
    });
    let tool = FieldTool::new(Arc::clone(&recorder) as _, Arc::new(OneSecret(binding)));
    let output = tool.run(&caller(), Arc::new(arguments)).await.unwrap();
    let got = recorder.got.lock().unwrap().remove(0);
    (got, output.text)
}

#[tokio::test]
async fn only_the_bound_argument_of_the_bound_tool_is_replaced() {
    let bound = || Binding::field("shop_login", "password", None).unwrap();
    let arguments = json!({
        "password": "secret:PASSWORD",
        "user": "secret:PASSWORD",
        "note": "my secret:PASSWORD",
        "deep": { "password": "secret:PASSWORD" },
        "list": ["secret:PASSWORD"],
        "other": "secret:OTHER",
    });
    let (got, text) = run(bound(), arguments).await;
    assert_eq!(
        got,
        json!({
            "password": "hunter22",
            "user": "secret:PASSWORD",
            "note": "my secret:PASSWORD",
            "deep": { "password": "secret:PASSWORD" },
            "list": ["secret:PASSWORD"],
            "other": "secret:OTHER",
        })
    );
    assert!(
        text.contains("secret:PASSWORD is not bound to `user`"),
        "{text}"
    );
    assert!(
        text.contains("secret:OTHER is not bound to `other`"),
        "{text}"
    );
    assert!(!text.contains("`password`"), "{text}");
}

#[tokio::test]
async fn a_binding_with_an_origin_or_another_tool_replaces_nothing() {
    let origin = Origin::parse("shop.example").unwrap();
    for binding in [
        Binding::field("shop_login", "password", Some(origin)).unwrap(),
        Binding::field("shop_logout", "password", None).unwrap(),
        Binding::program("shop_login", "password", "A").unwrap(),
    ] {
        let (got, text) = run(binding, json!({ "password": "secret:PASSWORD" })).await;
        assert_eq!(got["password"], "secret:PASSWORD");
        assert!(text.contains("literal text"), "{text}");
    }
}

#[test]
fn a_handle_is_exact() {
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
