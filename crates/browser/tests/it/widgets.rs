//! Custom widgets that are made for eyes and a mouse: drawings, sortable lists, grips, delayed suggestions.

use crate::act::handle;
use crate::support::Bench;
use serde_json::{Value, json};

async fn observe(bench: &Bench, html: &str) -> String {
    bench.show(html).await;
    bench.text("browser_observe", json!({ "full": true })).await
}

async fn act(bench: &Bench, step: Value) -> String {
    bench.text("browser_act", json!({ "steps": [step] })).await
}

async fn value_of(bench: &Bench, expression: &str) -> Value {
    let page = bench.page();
    let frame = page.main_frame();
    let value = page.evaluate(page.session(), &frame, expression).await;
    value.unwrap()
}

#[tokio::test]
async fn shapes_of_an_interactive_drawing_are_shown_with_colour_and_position() {
    let bench = Bench::new().await;
    let seen = observe(
        &bench,
        "<body style='margin:30px'><svg width=200 height=100 onclick='document.title=`${event.offsetX},${event.offsetY}`'>
         <circle cx=50 cy=40 r=10 fill=blue /><rect x=100 y=20 width=30 height=20 fill=none stroke=black />
         <line x1=0 y1=0 x2=10 y2=10 stroke=red /></svg>",
    )
    .await;
    assert!(seen.contains("circle fill=blue 20x20 at 40,30"), "{seen}");
    assert!(seen.contains("rect stroke=black"), "{seen}");
    assert!(seen.contains("line stroke=red"), "{seen}");
    let drawing = handle(&seen, "svg 200x100");
    act(
        &bench,
        json!({ "action": "click", "handle": drawing, "x": 50, "y": 41 }),
    )
    .await;
    assert_eq!(value_of(&bench, "document.title").await, "50,41");
}

#[tokio::test]
async fn shapes_next_to_an_interactive_one_are_targets_too() {
    let bench = Bench::new().await;
    let seen = observe(
        &bench,
        "<svg width=200 height=100><circle cx=50 cy=40 r=10 fill=blue onmousedown='1' /><rect x=100 y=20 width=30 height=20 fill=red /></svg>",
    )
    .await;
    assert!(seen.contains("rect fill=red"), "{seen}");
}

#[tokio::test]
async fn items_of_a_list_with_a_listener_have_handles_and_can_be_sorted() {
    let bench = Bench::new().await;
    let html = "<ul id=list onmousedown='pull(event)'><li>one</li><li>two</li><li>three</li></ul><script>
        // Inserts before or after the item under the pointer, depending on its half, like sorting libraries do.
        function pull(event) {
            const item = event.target;
            onmousemove = move => {
                const over = move.target;
                if (over === item || over.parentNode !== list) return;
                const box = over.getBoundingClientRect();
                const isDown = item.compareDocumentPosition(over) & Node.DOCUMENT_POSITION_FOLLOWING;
                const isPast = isDown ? move.clientY > box.top + box.height / 2 : move.clientY < box.top + box.height / 2;
                if (isPast) isDown ? over.after(item) : over.before(item);
            };
            onmouseup = () => onmousemove = null;
        }</script>";
    for (item, target, expected) in [
        ("one", "two", "two one three"),
        ("three", "one", "three one two"),
    ] {
        let seen = observe(&bench, html).await;
        let item = handle(&seen, &format!("item \"{item}\""));
        let target = handle(&seen, &format!("item \"{target}\""));
        let text = act(
            &bench,
            json!({ "action": "drag", "handle": item, "to": target }),
        )
        .await;
        assert!(text.contains("(moved"), "{text}");
        let order = value_of(
            &bench,
            "[...list.children].map(item => item.textContent).join(' ')",
        )
        .await;
        assert_eq!(order, expected);
    }
}

#[tokio::test]
async fn a_drag_starts_at_the_given_point() {
    let bench = Bench::new().await;
    let seen = observe(
        &bench,
        "<canvas id=c width=200 height=100 onmousedown='document.title=`${event.offsetX},${event.offsetY}`'
         onmouseup='document.title+=` ${event.offsetX},${event.offsetY}`'></canvas>",
    )
    .await;
    let canvas = handle(&seen, "canvas 200x100");
    let step =
        json!({ "action": "drag", "handle": canvas, "from_x": 20, "from_y": 30, "x": 50, "y": 5 });
    act(&bench, step).await;
    assert_eq!(value_of(&bench, "document.title").await, "20,30 70,35");
}

#[tokio::test]
async fn grips_are_recognized_by_their_cursor() {
    let bench = Bench::new().await;
    let seen = observe(
        &bench,
        "<div style='cursor:se-resize;width:12px;height:12px' class=corner></div><div style='cursor:move'>Title</div>",
    )
    .await;
    assert!(seen.contains("grip .corner"), "{seen}");
    assert!(seen.contains("grip \"Title\""), "{seen}");
}

#[tokio::test]
async fn text_is_highlighted_word_by_word_across_elements() {
    let bench = Bench::new().await;
    observe(
        &bench,
        "<p>Not this one.</p><p id=p>The quick <b>brown</b>\n fox jumps.</p><p>Nor this.</p>",
    )
    .await;
    let text = act(
        &bench,
        json!({ "action": "highlight", "text": "quick brown fox" }),
    )
    .await;
    assert!(text.contains("highlight \"quick brown fox\""), "{text}");
    assert_eq!(
        value_of(&bench, "getSelection().toString()").await,
        "quick brown fox"
    );
    let error = bench
        .error(
            "browser_act",
            json!({ "steps": [{ "action": "highlight", "text": "slow fox" }] }),
        )
        .await;
    assert!(error.contains("no text \"slow fox\""), "{error}");
}

#[tokio::test]
async fn waiting_for_a_text_ends_when_it_appears() {
    let bench = Bench::new().await;
    observe(
        &bench,
        "<p id=p>Working</p><script>setTimeout(() => p.textContent = 'All is done', 1500)</script>",
    )
    .await;
    let text = act(&bench, json!({ "action": "wait", "text": "is done" })).await;
    assert!(text.contains("\"All is done\""), "{text}");
    let text = act(
        &bench,
        json!({ "action": "wait", "text": "never", "seconds": 0.5 }),
    )
    .await;
    assert!(text.contains("did not appear within 0.5 s"), "{text}");
}

#[tokio::test]
async fn delayed_suggestions_are_in_the_result_of_typing() {
    let bench = Bench::new().await;
    let seen = observe(
        &bench,
        "<input aria-label=Country><ul id=list></ul><script>
         let timer; document.querySelector('input').oninput = () => { clearTimeout(timer); timer = setTimeout(() =>
         list.innerHTML = '<li onclick=1>Egypt</li>', 400); }</script>",
    )
    .await;
    let field = handle(&seen, "textbox \"Country\"");
    let text = act(
        &bench,
        json!({ "action": "type", "handle": field, "text": "Eg" }),
    )
    .await;
    assert!(text.contains("\"Egypt\""), "{text}");
}

#[tokio::test]
async fn a_delayed_menu_is_in_the_result_of_hovering() {
    let bench = Bench::new().await;
    let seen = observe(
        &bench,
        "<div role=menu><div role=menuitem tabindex=-1 aria-haspopup=true onmouseenter=\"setTimeout(() => sub.hidden = false, 300)\">File</div>
         <div role=menu id=sub hidden><div role=menuitem tabindex=-1>Save</div></div></div>",
    )
    .await;
    assert!(seen.contains("menuitem \"File\" [opens menu]"), "{seen}");
    let item = handle(&seen, "menuitem \"File\"");
    let text = act(&bench, json!({ "action": "hover", "handle": item })).await;
    assert!(text.contains("menuitem \"Save\""), "{text}");
}

#[tokio::test]
async fn a_page_that_never_stops_changing_costs_two_seconds_instead_of_ten() {
    let bench = Bench::new().await;
    bench
        .show("<p id=p></p><script>setInterval(() => p.textContent = Date.now(), 20)</script>")
        .await;
    let started = std::time::Instant::now();
    let settled = bench.page().settle().await.unwrap();
    assert!(settled.pending.is_some());
    assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_box_that_hides_one_axis_and_scrolls_the_other_shows_all_of_its_content() {
    let bench = Bench::new().await;
    let rows: String = (1..=9)
        .map(|row| format!("<p style='height:40px'>row {row}</p>"))
        .collect();
    let html = format!(
        "<div id=box style='height:100px;overflow-x:hidden;overflow-y:scroll'>{rows}</div>"
    );
    let seen = observe(&bench, &html).await;
    assert!(seen.contains("row 9"), "{seen}");
    let area = handle(&seen, "area [scrollable]");
    let text = act(
        &bench,
        json!({ "action": "scroll", "handle": area, "screens": 3 }),
    )
    .await;
    // Content that is now above the edge can be scrolled back to, so it is still shown.
    assert!(!text.contains("- text"), "{text}");
}

#[tokio::test]
async fn a_value_is_complete_when_its_field_is_the_scope() {
    let bench = Bench::new().await;
    let words = "word ".repeat(60);
    let seen = observe(
        &bench,
        &format!("<textarea aria-label=Note>{words}last</textarea>"),
    )
    .await;
    assert!(
        seen.contains("[multiline]") && !seen.contains("last"),
        "{seen}"
    );
    let field = handle(&seen, "textbox \"Note\"");
    let seen = bench
        .text("browser_observe", json!({ "scope": field }))
        .await;
    assert!(seen.contains("last\""), "{seen}");
}

#[tokio::test]
async fn a_click_waits_for_changes_caused_by_hovering() {
    let bench = Bench::new().await;
    let html = "<div style='display:flex'><button id=b onclick='document.title=\"hit\"'>Go</button></div><script>
        // Hovering loads another picture; until it is loaded, the button has no size.
        let isFirst = true;
        b.onmouseenter = () => { if (isFirst) { b.style.display = 'none'; setTimeout(() => b.style.display = '', 150); } isFirst = false; }</script>";
    let seen = observe(&bench, html).await;
    act(
        &bench,
        json!({ "action": "click", "handle": handle(&seen, "button \"Go\"") }),
    )
    .await;
    assert_eq!(value_of(&bench, "document.title").await, "hit");
}

#[tokio::test]
async fn elements_without_text_are_distinguished_by_their_classes() {
    let bench = Bench::new().await;
    let seen = observe(&bench, "<span id=s1 class='star' onclick='1' style='display:inline-block;width:9px;height:9px'></span>
        <span id=s2 class='star marked old' onclick='1' style='display:inline-block;width:9px;height:9px'></span>").await;
    assert!(seen.contains("clickable #s1.star 9x9"), "{seen}");
    assert!(seen.contains("clickable #s2.star.marked 9x9"), "{seen}");
    let seen = observe(
        &bench,
        "<a role=button class='button small arrow up' onclick='1' style='display:inline-block;width:9px;height:9px'></a>
         <a role=button class='button small arrow down' onclick='1' style='display:inline-block;width:9px;height:9px'></a>",
    )
    .await;
    assert!(seen.contains("button .button.up 9x9"), "{seen}");
    assert!(seen.contains("button .button.down 9x9"), "{seen}");
}

#[tokio::test]
async fn mouse_only_buttons_are_shown() {
    let bench = Bench::new().await;
    let seen = observe(
        &bench,
        "<span onmousedown='document.title=event.target.className'><input aria-label=Count value=1>
         <a role=button tabindex=-1 aria-hidden=true class=up style='display:inline-block;width:9px;height:9px'></a></span>",
    )
    .await;
    act(
        &bench,
        json!({ "action": "click", "handle": handle(&seen, "button .up 9x9") }),
    )
    .await;
    assert_eq!(value_of(&bench, "document.title").await, "up");
}

#[tokio::test]
async fn a_long_clickable_text_is_shown_completely() {
    let bench = Bench::new().await;
    let lines: String = (1..=6)
        .map(|line| format!("<div>line {line} of the output of a command</div>"))
        .collect();
    let seen = observe(&bench, &format!("<div onclick='1'>{lines}</div>")).await;
    assert!(seen.contains("line 6 of the output"), "{seen}");
}

#[tokio::test]
async fn a_number_field_without_limits_shows_none() {
    let bench = Bench::new().await;
    let seen = observe(
        &bench,
        "<input type=number aria-label=Any><input type=number min=2 max=7 aria-label=Some>",
    )
    .await;
    assert!(!seen.contains("min=0"), "{seen}");
    assert!(seen.contains("spinbutton \"Some\" min=2 max=7"), "{seen}");
}
