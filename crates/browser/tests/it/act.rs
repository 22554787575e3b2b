//! `browser_act`: the effects of actions on pages.

use crate::support::Bench;
use serde_json::{Value, json};

/// Returns the handle of the first line that contains a label.
pub(crate) fn handle(text: &str, label: &str) -> String {
    let line = text.lines().find(|line| line.contains(label));
    let line = line.unwrap_or_else(|| panic!("no {label} in\n{text}"));
    let before = &line[..line.find(label).unwrap()];
    before.trim().rsplit(' ').next().unwrap().to_owned()
}

async fn value_of(bench: &Bench, expression: &str) -> Value {
    let page = bench.page();
    let frame = page.main_frame();
    let value = page.evaluate(page.session(), &frame, expression).await;
    value.unwrap()
}

async fn act(bench: &Bench, steps: Value) -> String {
    bench.text("browser_act", json!({ "steps": steps })).await
}

async fn observe(bench: &Bench) -> String {
    bench.text("browser_observe", json!({ "full": true })).await
}

#[tokio::test]
async fn a_form_is_filled_in_and_sent() {
    let bench = Bench::new().await;
    bench.open("form").await;
    let seen = observe(&bench).await;
    let steps = json!([
        { "action": "type", "handle": handle(&seen, "textbox \"Mail\""), "text": "a@b.example" },
        { "action": "type", "handle": handle(&seen, "spinbutton \"Age\""), "text": "42" },
        { "action": "select", "handle": handle(&seen, "combobox \"Colour\""), "text": "blue" },
        { "action": "check", "handle": handle(&seen, "checkbox \"Agree\"") },
        { "action": "click", "handle": handle(&seen, "button \"Send\"") },
    ]);
    let text = act(&bench, steps).await;
    assert!(
        text.contains("[the page's address changed]") || text.contains("\"Sent\""),
        "{text}"
    );
    assert!(
        text.contains("mail=a%40b.example&age=42&colour=blue&agree=on"),
        "{text}"
    );
}

#[tokio::test]
async fn a_click_reaches_frames_of_other_sites_and_closed_shadow_trees() {
    let bench = Bench::new().await;
    bench.open("frames").await;
    let seen = observe(&bench).await;
    let far = seen.split("frame \"other.test\"").nth(1).unwrap();
    let steps = json!([{ "action": "click", "handle": handle(far, "button \"Press\"") }]);
    let tool = bench.tool("browser_act");
    let caller = crate::support::caller_of("s_1");
    let inspection = tool
        .inspect(&caller, json!({ "steps": steps }).into())
        .await;
    let site = inspection.site.unwrap();
    assert!(site.host.starts_with("other.test:"), "{site:?}");
    let text = act(&bench, steps).await;
    assert!(
        text.contains("~ ") && text.contains("button \"pressed\""),
        "{text}"
    );

    bench.show("<div id=host></div><script>host.attachShadow({ mode: 'closed' }).innerHTML = '<button onclick=\"document.title=1\">Shadow</button>'</script>").await;
    let seen = observe(&bench).await;
    act(
        &bench,
        json!([{ "action": "click", "handle": handle(&seen, "button \"Shadow\"") }]),
    )
    .await;
    assert_eq!(value_of(&bench, "document.title").await, "1");
}

#[tokio::test]
async fn text_is_typed_into_a_frame_of_another_site() {
    let bench = Bench::new().await;
    let inner = bench.site.other_url("form");
    bench
        .show(&format!(
            "<p>outer</p><iframe width=500 height=300 src={inner}></iframe>"
        ))
        .await;
    let seen = observe(&bench).await;
    let mail = handle(&seen, "textbox \"Mail\"");
    let text = act(&bench, json!([{ "action": "type", "handle": mail, "text": "x@y" }, { "action": "press", "text": "End" }])).await;
    assert!(text.contains("textbox \"Mail\" value=\"x@y\""), "{text}");
}

#[tokio::test]
async fn covered_and_disabled_elements_are_reported_with_the_reason() {
    let bench = Bench::new().await;
    bench
        .show(
            "<button id=b>Under</button><button disabled>Off</button>
            <div role=dialog aria-label=Cookies style='position:fixed;inset:0;background:white'><button onclick='this.parentElement.remove()'>OK</button></div>",
        )
        .await;
    let seen = observe(&bench).await;
    let under = handle(&seen, "button \"Under\"");
    let error = bench
        .error(
            "browser_act",
            json!({ "steps": [{ "action": "click", "handle": under }] }),
        )
        .await;
    let dialog = handle(&seen, "dialog \"Cookies\"");
    assert!(
        error.contains(&format!(
            "{under} button \"Under\" is covered by {dialog} dialog \"Cookies\""
        )),
        "{error}"
    );
    act(&bench, json!([{ "action": "click", "handle": handle(&seen, "button \"OK\"") }, { "action": "click", "handle": under }])).await;
    let error = bench
        .error(
            "browser_act",
            json!({ "steps": [{ "action": "click", "handle": handle(&seen, "button \"Off\"") }] }),
        )
        .await;
    assert!(error.contains("button \"Off\" is disabled"), "{error}");
}

#[tokio::test]
async fn the_handle_of_a_rerendered_element_is_stale() {
    let bench = Bench::new().await;
    bench
        .show("<div id=app><button onclick='render()'>Same</button></div><script>function render() { app.innerHTML = app.innerHTML }</script>")
        .await;
    let seen = observe(&bench).await;
    let old = handle(&seen, "button \"Same\"");
    let text = act(&bench, json!([{ "action": "click", "handle": old }])).await;
    assert!(text.contains(&format!("(was {old})")), "{text}");
    let error = bench
        .error(
            "browser_act",
            json!({ "steps": [{ "action": "click", "handle": old }] }),
        )
        .await;
    assert!(
        error.contains(&format!("the handle `{old}`")) && error.contains("browser_observe"),
        "{error}"
    );
}

#[tokio::test]
async fn contenteditable_text_is_replaced_or_appended_to() {
    let bench = Bench::new().await;
    bench
        .show("<div id=e contenteditable>old <b>text</b></div><textarea id=t>one</textarea>")
        .await;
    let seen = observe(&bench).await;
    let (rich, area) = (
        handle(&seen, "textbox value=\"old text\""),
        handle(&seen, "textbox value=\"one\""),
    );
    act(
        &bench,
        json!([{ "action": "type", "handle": rich, "text": "new" }]),
    )
    .await;
    assert_eq!(value_of(&bench, "e.innerText").await, "new");
    act(
        &bench,
        json!([{ "action": "type", "handle": area, "text": "\ntwo", "append": true }]),
    )
    .await;
    assert_eq!(value_of(&bench, "t.value").await, "one\ntwo");
    act(
        &bench,
        json!([{ "action": "type", "handle": area, "text": "" }]),
    )
    .await;
    assert_eq!(value_of(&bench, "t.value").await, "");
}

#[tokio::test]
async fn options_are_selected_by_label_and_an_unknown_one_lists_the_others() {
    let bench = Bench::new().await;
    bench
        .show(
            "<select id=s aria-label=Country><option value=de>Germany<option value=fr>France<option disabled>Mars</select>
            <select id=m multiple aria-label=Toppings><option>Salt<option>Pepper<option>Oil</select>
            <div role=combobox tabindex=0 aria-label=Size aria-expanded=false onclick='l.hidden=false'>choose</div>
            <ul id=l role=listbox hidden><li role=option onclick='document.title=1'>Small</li><li role=option onclick='document.title=2'>Large</li></ul>
            <script>s.onchange = () => s.title += 'changed '</script>",
        )
        .await;
    let seen = observe(&bench).await;
    let country = handle(&seen, "combobox \"Country\"");
    let text = act(
        &bench,
        json!([{ "action": "select", "handle": country, "text": "france" }]),
    )
    .await;
    assert!(text.contains("chose \"France\""), "{text}");
    assert_eq!(value_of(&bench, "s.value + s.title").await, "frchanged ");
    for (option, problem) in [
        (
            "Spain",
            "has no option \"Spain\"; it has \"Germany\", \"France\"",
        ),
        ("Mars", "has the option \"Mars\" disabled"),
    ] {
        let steps = json!({ "steps": [{ "action": "select", "handle": country, "text": option }] });
        let error = bench.error("browser_act", steps).await;
        assert!(error.contains(problem), "{error}");
    }
    let toppings = handle(&seen, "listbox \"Toppings\"");
    act(
        &bench,
        json!([{ "action": "select", "handle": toppings, "values": ["Salt", "Oil"] }]),
    )
    .await;
    assert_eq!(
        value_of(&bench, "[...m.selectedOptions].map(o => o.value).join()").await,
        "Salt,Oil"
    );
    let size = handle(&seen, "combobox \"Size\"");
    act(
        &bench,
        json!([{ "action": "select", "handle": size, "text": "Large" }]),
    )
    .await;
    assert_eq!(value_of(&bench, "document.title").await, "2");
}

#[tokio::test]
async fn sliders_are_dragged_and_data_is_dropped() {
    let bench = Bench::new().await;
    bench
        .show(
            "<style>#knob { position: absolute; left: 0; width: 20px; height: 20px; background: red }</style>
            <div style='position:relative;height:30px'><div id=knob title=Knob></div></div>
            <div id=a draggable=true>Card</div><div id=b title=Bin tabindex=0 style='height:100px;width:100px'>drop here</div>
            <script>
            let down = null;
            knob.addEventListener('mousedown', e => { down = e.clientX });
            addEventListener('mousemove', e => { if (down !== null) knob.style.left = (e.clientX - down) + 'px' });
            addEventListener('mouseup', () => { down = null });
            a.addEventListener('dragstart', e => e.dataTransfer.setData('text/plain', 'card'));
            b.addEventListener('dragover', e => e.preventDefault());
            b.addEventListener('drop', e => { e.preventDefault(); b.textContent = 'got ' + e.dataTransfer.getData('text/plain') });
            </script>",
        )
        .await;
    let seen = observe(&bench).await;
    let knob = handle(&seen, "clickable \"Knob\"");
    act(
        &bench,
        json!([{ "action": "drag", "handle": knob, "x": 120 }]),
    )
    .await;
    assert_eq!(value_of(&bench, "knob.style.left").await, "120px");
    let (card, bin) = (
        handle(&seen, "element \"Card\""),
        handle(&seen, "element \"Bin\""),
    );
    let text = act(
        &bench,
        json!([{ "action": "drag", "handle": card, "to": bin }]),
    )
    .await;
    assert_eq!(
        value_of(&bench, "b.textContent").await,
        "got card",
        "{text}"
    );
}

#[tokio::test]
async fn a_workspace_file_is_uploaded() {
    let bench = Bench::new().await;
    std::fs::write(bench.inside("note.txt"), "from the workspace").unwrap();
    bench.open("upload").await;
    let seen = observe(&bench).await;
    let steps = json!([
        { "action": "upload", "handle": handle(&seen, "file"), "values": ["note.txt"] },
        { "action": "click", "handle": handle(&seen, "button \"Send\"") },
    ]);
    act(&bench, steps).await;
    let uploads = bench.site.uploads();
    let body = String::from_utf8_lossy(&uploads[0]);
    assert!(
        body.contains("note.txt") && body.contains("from the workspace"),
        "{body}"
    );
    let steps =
        json!({ "steps": [{ "action": "upload", "handle": "e1", "values": ["../secret"] }] });
    assert!(!bench.error("browser_act", steps).await.is_empty());
}

#[tokio::test]
async fn a_button_that_opens_a_file_chooser_gets_a_file() {
    let bench = Bench::new().await;
    std::fs::write(bench.inside("a.csv"), "1,2").unwrap();
    bench
        .show("<button onclick='f.click()'>Choose</button><input id=f type=file style='display:none' onchange='document.title = f.files[0].name'>")
        .await;
    let seen = observe(&bench).await;
    act(&bench, json!([{ "action": "upload", "handle": handle(&seen, "button \"Choose\""), "values": ["a.csv"] }])).await;
    assert_eq!(value_of(&bench, "document.title").await, "a.csv");
}

#[tokio::test]
async fn a_canvas_is_clicked_at_a_point_and_keys_are_real() {
    let bench = Bench::new().await;
    bench
        .show(
            "<canvas id=c width=200 height=100 style='border:1px solid'></canvas><input id=i aria-label=Keys>
            <script>c.onclick = e => document.title = e.offsetX + ',' + e.offsetY + ',' + e.shiftKey + ',' + e.isTrusted;
            i.onkeydown = e => i.name += e.code + (e.ctrlKey ? '*' : '') + ' ';</script>",
        )
        .await;
    let seen = observe(&bench).await;
    let canvas = handle(&seen, "canvas");
    act(
        &bench,
        json!([{ "action": "click", "handle": canvas, "x": 31, "y": 41, "modifiers": ["Shift"] }]),
    )
    .await;
    assert_eq!(value_of(&bench, "document.title").await, "30,40,true,true");
    let field = handle(&seen, "textbox \"Keys\"");
    act(
        &bench,
        json!([
            { "action": "type", "handle": field, "text": "ab" },
            { "action": "press", "text": "Control+A" },
            { "action": "press", "text": "Backspace" },
        ]),
    )
    .await;
    assert_eq!(
        value_of(&bench, "i.name").await,
        "KeyA KeyB KeyA* Backspace "
    );
    assert_eq!(value_of(&bench, "i.value").await, "");
}

#[tokio::test]
async fn scrolling_loads_more_and_reports_the_position() {
    let bench = Bench::new().await;
    bench
        .show(
            "<style>p { height: 80px }</style><div id=list></div><script>
            let count = 0;
            const more = () => { for (let i = 0; i < 20; i++) list.insertAdjacentHTML('beforeend', `<p>item ${++count}</p>`) };
            more();
            addEventListener('scroll', () => { if (innerHeight + scrollY > document.body.offsetHeight - 50) more() });
            </script>",
        )
        .await;
    let seen = observe(&bench).await;
    assert!(seen.contains("screen 1 of"), "{seen}");
    let tool = bench.tool("browser_act");
    let steps = json!({ "steps": [{ "action": "scroll", "screens": 20 }] });
    let inspection = tool
        .inspect(&crate::support::caller_of("s_1"), steps.into())
        .await;
    assert_eq!(inspection.site, None, "looking around contacts no site");
    let text = act(&bench, json!([{ "action": "scroll", "screens": 20 }])).await;
    assert!(text.contains("+ text \"item 2"), "{text}");
    let count = value_of(&bench, "document.querySelectorAll('p').length").await;
    assert!(count.as_u64().unwrap() > 20);
}

#[tokio::test]
async fn dialogs_are_answered_as_the_step_specifies() {
    let bench = Bench::new().await;
    bench.open("question").await;
    let seen = observe(&bench).await;
    let ask = handle(&seen, "button \"Ask\"");
    let text = act(&bench, json!([{ "action": "click", "handle": ask }])).await;
    assert!(text.contains("this was declined"), "{text}");
    let steps =
        json!([{ "action": "click", "handle": ask, "accept_dialog": true, "dialog_text": "Ada" }]);
    let text = act(&bench, steps).await;
    assert!(text.contains("this was accepted"), "{text}");
    assert_eq!(value_of(&bench, "document.title").await, "Ada");
}

#[tokio::test]
async fn dates_are_set_and_boxes_checked_once() {
    let bench = Bench::new().await;
    bench
        .show(
            "<input id=d type=date aria-label=Day><label><input id=c type=checkbox style='opacity:0;width:1px;height:1px'><span>Fancy</span></label>
            <div role=switch tabindex=0 aria-checked=false aria-label=Dark onclick=\"this.setAttribute('aria-checked', this.getAttribute('aria-checked') != 'true')\">x</div>",
        )
        .await;
    let seen = observe(&bench).await;
    let day = handle(&seen, "date \"Day\"");
    act(
        &bench,
        json!([{ "action": "type", "handle": day, "text": "2026-02-03" }]),
    )
    .await;
    assert_eq!(value_of(&bench, "d.value").await, "2026-02-03");
    let error = bench
        .error(
            "browser_act",
            json!({ "steps": [{ "action": "type", "handle": day, "text": "tomorrow" }] }),
        )
        .await;
    assert!(error.contains("does not accept \"tomorrow\""), "{error}");
    let fancy = handle(&seen, "checkbox \"Fancy\"");
    act(&bench, json!([{ "action": "check", "handle": fancy }])).await;
    assert_eq!(value_of(&bench, "c.checked").await, true);
    let text = act(&bench, json!([{ "action": "check", "handle": fancy }])).await;
    assert!(text.contains("it was already checked"), "{text}");
    let dark = handle(&seen, "switch \"Dark\"");
    let text = act(&bench, json!([{ "action": "check", "handle": dark }])).await;
    assert!(text.contains("switch \"Dark\" [checked]"), "{text}");
}

#[tokio::test]
async fn steps_stop_when_the_page_goes_to_another_site() {
    let bench = Bench::new().await;
    let other = bench.site.other_url("inner");
    bench
        .show(&format!("<a href={other}>Leave</a><button>Stay</button>"))
        .await;
    let seen = observe(&bench).await;
    let steps = json!([
        { "action": "click", "handle": handle(&seen, "link \"Leave\"") },
        { "action": "press", "text": "Enter" },
    ]);
    let text = act(&bench, steps).await;
    assert!(
        text.contains("[the page moved to another site; 1 steps were not carried out]"),
        "{text}"
    );
    assert!(text.contains("inner text"), "the new page is shown: {text}");
}

#[tokio::test]
async fn a_call_is_refused_if_the_page_changed_after_the_inspection() {
    let bench = Bench::new().await;
    bench.open("inner").await;
    let seen = observe(&bench).await;
    let arguments =
        json!({ "steps": [{ "action": "click", "handle": handle(&seen, "button \"Press\"") }] });
    let tool = bench.tool("browser_act");
    let mut caller = crate::support::caller_of("s_1");
    let error = tool
        .run(&caller, arguments.clone().into())
        .await
        .unwrap_err();
    assert!(
        error.message.contains("observe the page and call again"),
        "without an inspection: {error}"
    );
    caller.inspection = tool.inspect(&caller, arguments.clone().into()).await;
    let site = caller.inspection.site.as_mut().unwrap();
    assert!(
        site.summary.contains("click") && site.summary.contains("button \"Press\""),
        "{site:?}"
    );
    site.host = "shop.example".into();
    assert!(tool.run(&caller, arguments.into()).await.is_err());
}

#[tokio::test]
async fn the_result_of_a_failed_step_includes_the_steps_that_worked() {
    let bench = Bench::new().await;
    bench
        .show("<button onclick='document.title=1'>One</button><button disabled>Two</button>")
        .await;
    let seen = observe(&bench).await;
    let steps = json!([
        { "action": "click", "handle": handle(&seen, "button \"One\"") },
        { "action": "click", "handle": handle(&seen, "button \"Two\"") },
        { "action": "press", "text": "Enter" },
    ]);
    let text = act(&bench, steps).await;
    assert!(text.starts_with("click e"), "{text}");
    assert!(
        text.contains("[step 2 failed: ") && text.contains("[1 steps were not carried out]"),
        "{text}"
    );
    assert_eq!(value_of(&bench, "document.title").await, "1");
}
