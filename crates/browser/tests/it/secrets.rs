//! Secrets are typed only into password fields of the site that they are bound to.

use crate::act::handle;
use crate::support::Bench;
use lango_testkit::secrets::MemorySecrets;
use serde_json::{Value, json};
use std::sync::Arc;

const VALUE: &str = "canary-typed-1";
const FORM: &str = "<label>Word <input type=password id=word></label><label>Search <input id=search></label>\
    <label>Note <textarea id=note></textarea></label>";

/// Creates a bench with a secret that is bound to an address.
async fn bound_to(address: impl Fn(u16) -> String) -> Bench {
    let bench = Bench::new().await;
    let secrets = MemorySecrets::new(VALUE);
    let secrets = secrets.with_field("WORD", "browser_act", "text", &address(bench.site.port));
    bench.sessions.set_secrets(Arc::new(secrets));
    bench
}

async fn value_of(bench: &Bench, id: &str) -> Value {
    let page = bench.page();
    let script = format!("document.getElementById('{id}').value");
    let frame = page.main_frame();
    let value = page.evaluate(page.session(), &frame, &script);
    value.await.unwrap()
}

async fn type_into(bench: &Bench, label: &str, text: &str) -> Result<String, String> {
    let seen = bench.text("browser_observe", json!({ "full": true })).await;
    let step = json!({ "action": "type", "handle": handle(&seen, label), "text": text });
    let done = bench.run("browser_act", json!({ "steps": [step] })).await;
    let done = done
        .map(|output| output.text)
        .map_err(|error| error.message);
    let shown = format!("{done:?}");
    assert!(!shown.contains(VALUE), "{shown}");
    done
}

#[tokio::test]
async fn a_bound_secret_is_typed_into_a_password_field_and_then_screenshots_are_refused() {
    let bench = bound_to(|port| format!("http://site.test:{port}")).await;
    bench.show(FORM).await;
    bench.text("browser_screenshot", json!({})).await;
    let done = type_into(&bench, "textbox \"Word\"", "secret:WORD")
        .await
        .unwrap();
    assert!(done.contains("type \"secret:WORD\" into"), "{done}");
    assert_eq!(value_of(&bench, "word").await, VALUE);
    let seen = bench.text("browser_observe", json!({ "full": true })).await;
    assert!(!seen.contains(VALUE), "{seen}");
    let refused = bench.error("browser_screenshot", json!({})).await;
    assert!(refused.contains("a secret was typed"), "{refused}");
    // A text that merely contains the secret's name is typed as it is.
    type_into(&bench, "textbox \"Search\"", "my secret:WORD")
        .await
        .unwrap();
    assert_eq!(value_of(&bench, "search").await, "my secret:WORD");
}

#[tokio::test]
async fn fields_that_can_be_read_back_do_not_accept_secrets() {
    let bench = bound_to(|port| format!("http://site.test:{port}")).await;
    bench.show(FORM).await;
    for (label, id) in [
        ("textbox \"Search\"", "search"),
        ("textbox \"Note\"", "note"),
    ] {
        let refused = type_into(&bench, label, "secret:WORD").await.unwrap_err();
        assert!(
            refused.contains("only be typed into a password field"),
            "{refused}"
        );
        assert_eq!(value_of(&bench, id).await, "");
    }
}

#[tokio::test]
async fn another_site_scheme_or_port_gets_the_literal_text() {
    let others: [fn(u16) -> String; 3] = [
        |port| format!("http://other.test:{port}"),
        |port| format!("https://site.test:{port}"),
        |_| "http://site.test:1".to_owned(),
    ];
    for other in others {
        let bench = bound_to(other).await;
        bench.show(FORM).await;
        let done = type_into(&bench, "textbox \"Word\"", "secret:WORD")
            .await
            .unwrap();
        assert!(done.contains("so this literal text was typed"), "{done}");
        assert_eq!(value_of(&bench, "word").await, "secret:WORD");
    }
}
