//! Results of tools are masked before the model or the log gets them.

use crate::approvals::ask;
use crate::bench::{Bench, Shared, finished, local, log};
use lango_core::{Tool, ToolError};
use lango_secrets::SecretValue;
use lango_testkit::canary::{echo, find_encoding};
use lango_testkit::model::{ScriptedModel, call, delegate_and_finish, say};
use lango_testkit::tool::CountingTool;
use serde_json::json;
use std::sync::Arc;

const VALUE: &str = "gh-canary/\"+\\&<%41-0c77";

#[tokio::test]
async fn results_and_errors_of_tools_are_masked_before_they_are_truncated() {
    for fails in [false, true] {
        // The middle of a long output is cut out inside a secret value.
        for before in [0, 10, 48 * 1024 - 10] {
            let tool = CountingTool::new("fs_read").with_run(move |_| {
                let (head, tail) = ("x".repeat(before), "y".repeat(before));
                let text = format!("{head}{}{tail}", echo(VALUE));
                if fails {
                    Err(ToolError::new(text))
                } else {
                    Ok(text)
                }
            });
            let bench = Bench::new(vec![Arc::new(tool) as Arc<dyn Tool>]);
            bench.masks.add("GH", &SecretValue::new(VALUE));
            let model = Arc::new(ScriptedModel::replies([
                delegate_and_finish("operator", "read it"),
                call("fs_read", json!({})),
                say("done"),
            ]));
            let runner = bench.runner(Shared(Arc::clone(&model)));
            let mut conversation = runner.start(local());
            finished(ask(&mut conversation, "go").await);
            for event in log(&bench, conversation.session()).await {
                let event = serde_json::to_string(&event).unwrap();
                assert_eq!(find_encoding(event.as_bytes(), VALUE), None, "{event}");
                assert!(!event.contains("gh-canary"), "{event}");
            }
            let asked = model.requests();
            assert_eq!(asked.len(), 3);
            for request in asked {
                let request = serde_json::to_string(&request).unwrap();
                assert_eq!(find_encoding(request.as_bytes(), VALUE), None, "{request}");
                assert!(!request.contains("gh-canary"), "{request}");
            }
        }
    }
}
