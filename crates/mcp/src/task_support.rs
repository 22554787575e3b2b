//! Finds the tools that a server runs only as tasks, which lango does not support. The MCP library drops a tool's field
//! `execution`, so lango moves it into `_meta` before the library parses the message.

use rmcp::model::Tool;
use serde_json::{Value, json};
use std::borrow::Cow;

/// The key in a tool's `_meta` that holds its `execution` field.
const EXECUTION: &str = "lango/execution";

/// A text that every message with a relevant `execution` field contains.
const TASK_SUPPORT: &[u8] = b"taskSupport";

/// Moves the `execution` of the tools in an answer into their `_meta`. Returns other messages unchanged.
pub(crate) fn move_execution(message: &[u8]) -> Cow<'_, [u8]> {
    let mut windows = message.windows(TASK_SUPPORT.len());
    if !windows.any(|window| window == TASK_SUPPORT) {
        return message.into();
    }
    let moved = || {
        let mut value: Value = serde_json::from_slice(message).ok()?;
        for tool in value.pointer_mut("/result/tools")?.as_array_mut()? {
            let Some(tool) = tool.as_object_mut() else {
                continue;
            };
            if let Some(execution) = tool.remove("execution")
                && let Some(meta) = tool.entry("_meta").or_insert(json!({})).as_object_mut()
            {
                meta.insert(EXECUTION.to_owned(), execution);
            }
        }
        serde_json::to_vec(&value).ok()
    };
    moved().map_or(message.into(), Cow::Owned)
}

/// Returns whether a tool runs only as a task.
pub(crate) fn is_task_required(tool: &Tool) -> bool {
    let meta = tool.meta.as_ref();
    let execution = meta.and_then(|meta| meta.0.get(EXECUTION));
    execution.is_some_and(|execution| execution["taskSupport"] == "required")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::ListToolsResult;

    #[test]
    fn only_required_task_support_is_found_and_other_messages_are_unchanged() {
        let tool = |execution: Value| {
            let message = json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": [
                { "name": "t", "inputSchema": { "type": "object" }, "execution": execution },
            ] } });
            let bytes = message.to_string().into_bytes();
            let moved: Value = serde_json::from_slice(&move_execution(&bytes)).unwrap();
            let result: ListToolsResult = serde_json::from_value(moved["result"].clone()).unwrap();
            is_task_required(&result.tools[0])
        };
        assert!(tool(json!({ "taskSupport": "required" })));
        for other in ["optional", "forbidden", "new"] {
            assert!(!tool(json!({ "taskSupport": other })));
        }
        assert!(!tool(json!(null)));
        assert!(!tool(json!({})));
        for text in [
            "",
            "{",
            r#"{"result":{"tools":[{"taskSupport":1e999}]}"#,
            "taskSupport",
        ] {
            assert_eq!(*move_execution(text.as_bytes()), *text.as_bytes());
        }
    }
}
