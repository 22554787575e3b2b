//! Tools of a program's own.

use lango::{Error, JsonSchema, Lango, ToolError, tool, tool_with_caller};
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Order {
    /// The number of the order.
    number: String,
}

fn order_tool(name: &str) -> lango::CustomTool {
    tool(name, "Finds an order", |order: Order| async move {
        match order.number.as_str() {
            "A-17" => Ok("order A-17 was shipped".to_owned()),
            other => Err(ToolError::new(format!("there is no order {other}"))),
        }
    })
}

#[test]
fn the_schema_of_a_tool_comes_from_its_argument_type() {
    let lango = Lango::builder()
        .tool(order_tool("find_order").owner("librarian"))
        .build()
        .unwrap();
    let agent = lango.tree().agent("librarian").unwrap();
    let spec = &agent.tool("find_order").unwrap().spec;
    let parameters = &*spec.parameters;
    assert_eq!(parameters["required"], serde_json::json!(["number"]));
    let field = &parameters["properties"]["number"];
    assert_eq!(field["description"], "The number of the order.");
}

#[tokio::test]
async fn a_named_owner_runs_a_tool_whose_prefix_belongs_to_no_agent() {
    let lango = Lango::builder()
        .tool(
            order_tool("find_order")
                .owner("librarian")
                .capability("order look-up"),
        )
        .build()
        .unwrap();
    let owner = lango.tree().owner_of("find_order").unwrap();
    assert_eq!(owner.name, "librarian");
    assert!(
        owner.description.contains("order look-up"),
        "{}",
        owner.description
    );
    let report = lango
        .session()
        .run(r#"use find_order {"number": "A-17"}"#)
        .await
        .unwrap();
    assert_eq!(report.text(), "order A-17 was shipped");
    assert_eq!((report.tool_calls, report.rounds), (1, 1));
}

#[test]
fn a_tool_without_an_owner_and_a_known_prefix_is_an_error_that_names_it() {
    let error = Lango::builder()
        .tool(order_tool("find_order"))
        .build()
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("`find_order`") && text.contains("name the owner"),
        "{text}"
    );
}

#[test]
fn a_model_for_an_agent_that_does_not_exist_is_an_error_with_the_names() {
    let model: std::sync::Arc<dyn lango::Model> =
        std::sync::Arc::new(lango::connect_model("offline/rules").unwrap());
    let built = Lango::builder().agent_model("plannr", model).build();
    let text = built.unwrap_err().to_string();
    assert!(
        text.contains("`plannr`") && text.contains("planner"),
        "{text}"
    );
}

#[tokio::test]
async fn an_own_agent_owns_the_tools_with_its_prefix_and_a_rule_denies_one() {
    let billing = lango::AgentSpec::new("billing", "answers questions about invoices")
        .with_prefix("invoice_", "invoice look-up");
    let deny = lango::ApprovalRule::new(lango::RuleAction::Deny).for_tool("invoice_delete");
    let lango = Lango::builder()
        .agent(billing)
        .tool(order_tool("invoice_find"))
        .tool(order_tool("invoice_delete"))
        .rule(deny)
        .build()
        .unwrap();
    assert_eq!(
        lango.tree().owner_of("invoice_find").unwrap().name,
        "billing"
    );
    let session = lango.session();
    let report = session
        .run(r#"use invoice_find {"number": "A-17"}"#)
        .await
        .unwrap();
    assert_eq!(report.text(), "order A-17 was shipped");
    let report = session
        .run(r#"use invoice_delete {"number": "A-17"}"#)
        .await
        .unwrap();
    assert_eq!(report.tool_calls, 0, "{}", report.text());
}

#[tokio::test]
async fn errors_and_invalid_arguments_reach_the_model_as_results() {
    let lango = Lango::builder()
        .tool(order_tool("find_order").owner("operator"))
        .build()
        .unwrap();
    let session = lango.session();
    let report = session
        .run(r#"use find_order {"number": "B"}"#)
        .await
        .unwrap();
    assert!(
        report.text().contains("there is no order B"),
        "{}",
        report.text()
    );
    let report = session
        .run(r#"use find_order {"numbr": "A-17"}"#)
        .await
        .unwrap();
    assert!(report.text().contains("number"), "{}", report.text());
    assert_eq!(report.tool_calls, 0);
}

#[tokio::test]
async fn a_tool_that_wants_its_caller_gets_user_session_and_idempotency_key() {
    let who = tool_with_caller("search_me", "Who calls", |caller, _: Nothing| async move {
        Ok(format!(
            "{} {} {}",
            caller.user,
            caller.session,
            caller.key()
        ))
    });
    let lango = Lango::builder().user("ann").tool(who).build().unwrap();
    let session = lango.session();
    let report = session.run("use search_me {}").await.unwrap();
    let expected = format!("ann {} {}/", session.id(), report.turn);
    assert!(report.text().starts_with(&expected), "{}", report.text());
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[test]
fn wrong_owners_and_duplicate_names_are_errors_of_build() {
    let wrong = Lango::builder().tool(order_tool("find_order").owner("nobody"));
    assert!(matches!(wrong.build().unwrap_err(), Error::Agents(_)));
    let twice = Lango::builder()
        .tool(order_tool("search_order"))
        .tool(order_tool("search_order"));
    assert!(matches!(twice.build().unwrap_err(), Error::Agents(_)));
    let topology = Lango::builder().topology("special");
    assert!(matches!(topology.build().unwrap_err(), Error::Topology(_)));
}

#[tokio::test]
async fn file_tools_reach_their_folder_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("notes.md"), "buy rum\n").unwrap();
    let builder = Lango::builder().workspace(folder.path()).unwrap();
    let session = builder.build().unwrap().session();
    let report = session.run("read notes.md").await.unwrap();
    assert!(report.text().contains("buy rum"), "{}", report.text());
    let report = session
        .run(r#"use fs_read {"path": "/etc/hostname"}"#)
        .await
        .unwrap();
    assert!(report.text().contains("outside"), "{}", report.text());
}

#[tokio::test]
async fn a_deleted_file_goes_to_the_trash_of_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("old.txt"), "old").unwrap();
    let builder = Lango::builder().workspace(folder.path()).unwrap();
    let approver = lango::approve_with(|_| async { lango::ApprovalDecision::allow() });
    let session = builder.approver(approver).build().unwrap().session();
    let report = session
        .run(r#"use fs_delete {"path": "old.txt"}"#)
        .await
        .unwrap();
    assert!(!folder.path().join("old.txt").exists(), "{}", report.text());
    assert!(folder.path().join(".lango/trash").exists());
    // Agents cannot empty it.
    let report = session
        .run(r#"use fs_delete {"path": ".lango/trash"}"#)
        .await
        .unwrap();
    assert!(
        folder.path().join(".lango/trash").exists(),
        "{}",
        report.text()
    );
}

#[test]
fn a_folder_that_does_not_exist_is_no_workspace() {
    let error = Lango::builder()
        .workspace("/nonexistent/folder")
        .err()
        .unwrap();
    assert!(error.to_string().contains("/nonexistent/folder"), "{error}");
}
