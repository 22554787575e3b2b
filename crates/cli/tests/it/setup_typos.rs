//! What happens in `lango setup` after a name with a typo: it is asked for again, and nothing that was typed is lost.

use crate::lango::Lango;
use crate::models::Provider;
use crate::setup::config;
use crate::terminal::Terminal;
use lango_testkit::model::say;
use lango_testkit::wire_server::ScriptedAnswer;
use serde_json::json;

#[test]
fn a_mistyped_provider_or_model_is_asked_for_again() {
    let list = json!({ "data": [{ "id": "large" }, { "id": "small" }] });
    let provider = Provider::answering(move |request| match &*request.path {
        "/v1/models" => ScriptedAnswer::json(&list),
        _ => say("ok").into(),
    });
    let lango = Lango::new();
    let mut terminal = Terminal::start(&lango, 120, &["setup"], &[]);
    terminal.wait_for("number, name or URL (");
    terminal.press("openia\r");
    terminal.wait_for("there is no provider `openia`; did you mean `openai`?");
    terminal.wait_for("number, name or URL (");
    terminal.press(&format!("{}\r", provider.server.url()));
    terminal.wait_for("Enter if it needs none): ");
    terminal.press("\r");
    terminal.wait_for("model, by number or name (");
    terminal.press("lrge\r");
    terminal.wait_for("does not list `lrge`; did you mean `large`?");
    terminal.wait_for("model, by number or name (");
    terminal.press("custom/large\r");
    let (code, last) = terminal.end();
    assert_eq!(code, Some(0), "{last}");
    assert!(config(&lango).contains("model = \"custom/large\""));
}
