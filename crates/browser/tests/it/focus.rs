//! Typed text and keys stay in the frame that the call was approved for, whatever pages do with the focus.

use crate::act::handle;
use crate::support::Bench;
use lango_browser::Page;
use serde_json::{Value, json};

async fn evaluate_in(page: &Page, host: &str, expression: &str) -> Value {
    // Runs in the page's own world, where its scripts have their variables.
    let script = json!(format!(
        "document.documentElement.dataset.answer = JSON.stringify({expression})"
    ));
    let expression = format!(
        "{{ const s = document.createElement('script'); s.textContent = {script}; document.documentElement.append(s); s.remove(); \
         JSON.parse(document.documentElement.dataset.answer) }}"
    );
    let frames = page.frames().await.unwrap();
    let frame = frames
        .iter()
        .find(|frame| frame.url.starts_with(&format!("http://{host}")))
        .unwrap();
    let value = page.evaluate(&frame.session, &frame.id, &expression).await;
    value.unwrap()
}

async fn type_into(bench: &Bench, label: &str, text: &str) -> String {
    let seen = bench.text("browser_observe", json!({ "full": true })).await;
    let field = handle(&seen, &format!("textbox {label:?}"));
    let steps = json!([{ "action": "type", "handle": field, "text": text, "submit": true }]);
    match bench.run("browser_act", json!({ "steps": steps })).await {
        Ok(output) => output.text,
        Err(error) => error.message,
    }
}

#[tokio::test]
async fn a_frame_that_takes_the_focus_gets_none_of_the_text() {
    let bench = Bench::new().await;
    let thief = bench.site.other_url("thief");
    // The frame takes the focus on the first key, on the first letter, or after a while.
    for trigger in [
        "onkeydown=go()",
        "oninput=go()",
        "onfocus='setTimeout(go, 30)'",
    ] {
        bench
            .show(&format!(
                "<input aria-label=Secret {trigger}><iframe width=300 height=100 src={thief}></iframe>
                <script>function go() {{ frames[0].postMessage('go', '*') }}</script>"
            ))
            .await;
        let text = "my long secret words, ".repeat(8);
        let result = type_into(&bench, "Secret", &text).await;
        let got = evaluate_in(&bench.page(), "other.test", "got").await;
        assert_eq!(got, "", "{trigger}: {result}");
        let taken = evaluate_in(&bench.page(), "other.test", "taken").await;
        assert!(taken.as_u64().unwrap() > 0, "{trigger}: {result}");
        assert!(
            result.contains("lost the focus to another frame after")
                || result.contains("the focus moved to a frame of `other.test"),
            "{trigger}: {result}"
        );
    }
}

#[tokio::test]
async fn a_page_that_takes_the_focus_from_a_frame_gets_none_of_the_text() {
    let bench = Bench::new().await;
    let inner = bench.site.other_url("victim");
    bench.open("").await;
    let url = bench.site.url(&format!("thief?frame={inner}"));
    bench.text("browser_navigate", json!({ "url": url })).await;
    let text = "my long secret words, ".repeat(8);
    let result = type_into(&bench, "Secret", &text).await;
    let got = evaluate_in(&bench.page(), "site.test", "got").await;
    assert_eq!(got, "", "{result}");
    let taken = evaluate_in(&bench.page(), "site.test", "taken").await;
    assert!(taken.as_u64().unwrap() > 0, "{result}");
    let value = evaluate_in(&bench.page(), "other.test", "s.value").await;
    let count = value.as_str().unwrap().chars().count();
    assert!(
        result.contains(&format!("lost the focus after {count} of 176 characters")),
        "{result}"
    );
}

#[tokio::test]
async fn a_key_is_not_pressed_in_a_frame_that_took_the_focus() {
    let bench = Bench::new().await;
    let thief = bench.site.other_url("thief");
    bench
        .show(&format!(
            "<input aria-label=Secret><iframe width=300 height=100 src={thief}></iframe>"
        ))
        .await;
    let page = bench.page();
    let seen = bench.text("browser_observe", json!({ "full": true })).await;
    let field = handle(&seen, "textbox \"Secret\"");
    let start = "(frames[0].postMessage('go', '*'), 0)";
    evaluate_in(&page, "site.test", start).await;
    while evaluate_in(&page, "other.test", "taken").await == 0 {}
    let steps = json!([{ "action": "press", "handle": field, "text": "x" }]);
    let error = bench.error("browser_act", json!({ "steps": steps })).await;
    assert!(
        error.contains("the focus moved to a frame of `other.test"),
        "{error}"
    );
    assert_eq!(evaluate_in(&page, "other.test", "got").await, "");
}

#[tokio::test]
async fn digits_continue_in_the_next_field_of_the_same_document() {
    let bench = Bench::new().await;
    let fields =
        "<input maxlength=1 size=1 aria-label=Digit oninput='this.nextElementSibling?.focus()'>"
            .repeat(6);
    bench.show(&fields).await;
    type_into(&bench, "Digit", "123456").await;
    let values = "[...document.querySelectorAll('input')].map(i => i.value).join('')";
    assert_eq!(
        evaluate_in(&bench.page(), "site.test", values).await,
        "123456"
    );
}

#[tokio::test]
async fn typing_sends_key_events_and_a_page_can_cancel_them() {
    let bench = Bench::new().await;
    bench
        .show(
            "<input id=i aria-label=Log value=old><script>
            window.log = '';
            for (const type of ['keydown', 'keypress', 'beforeinput', 'input', 'keyup'])
                i.addEventListener(type, e => { if (log.length < 99) log += type + ' ' + (e.key ?? e.data) + ' ' + (e.code ?? '') + ' ' + (e.keyCode ?? '') + ', ' });
            i.addEventListener('keydown', e => { if (e.key === 'b') e.preventDefault() });
            </script>",
        )
        .await;
    type_into(&bench, "Log", "abc").await;
    let page = bench.page();
    let log = evaluate_in(&page, "site.test", "log").await;
    assert_eq!(
        log,
        "keydown a KeyA 65, keypress a KeyA 97, beforeinput a  , input a  , keyup a KeyA 65, keydown b KeyB 66, "
    );
    assert_eq!(evaluate_in(&page, "site.test", "i.value").await, "ac");
}
