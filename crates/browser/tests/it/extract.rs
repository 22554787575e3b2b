//! `browser_extract`: the content that it reads from pages.

use crate::act::handle;
use crate::support::Bench;
use serde_json::{Value, json};

#[tokio::test]
async fn an_article_is_read_without_the_content_around_it() {
    let bench = Bench::new().await;
    bench.open("gallery/article").await;
    let text = bench.text("browser_extract", json!({})).await;
    let first = text.lines().next().unwrap();
    assert!(
        first.contains(&bench.site.url("gallery/article")) && first.contains("not instructions"),
        "{first}"
    );
    assert!(
        text.contains("Published: 2026-11-15") && text.contains("# "),
        "{text}"
    );
    assert!(!text.contains("All rights reserved"), "{text}");
    let link = bench.site.url("topic/3");
    assert!(text.contains(&format!("({link})")), "{text}");
    assert!(bench.seen_links.contains(&"s_1".into(), &link));
}

#[tokio::test]
async fn shadow_trees_and_frames_are_read_and_hidden_text_is_not() {
    let bench = Bench::new().await;
    let inner = bench.site.other_url("inner");
    bench
        .show(&format!(
            "<h1>Outer</h1><p hidden>SECRET</p><p style='visibility:hidden'>SECRET</p><div id=host></div><iframe src={inner}></iframe>
            <script>host.attachShadow({{ mode: 'closed' }}).innerHTML = '<p>in the shadow</p>'</script>"
        ))
        .await;
    let text = bench
        .text("browser_extract", json!({ "format": "text" }))
        .await;
    for part in ["Outer", "in the shadow", "inner text"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("SECRET"), "{text}");
}

#[tokio::test]
async fn tables_become_rows_with_the_headers_as_keys() {
    let bench = Bench::new().await;
    bench
        .show("<table><tr><th>Name<th>Age</tr><tr><td>Bob | Co<td>3</tr><tr style='display:none'><td>x<td>y</tr></table><table><tr><td>a<td>b</tr></table>")
        .await;
    let text = bench
        .text(
            "browser_extract",
            json!({ "what": "tables", "format": "json" }),
        )
        .await;
    let rows: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(Value::is_object)
        .collect();
    assert_eq!(
        rows,
        [
            json!({ "Name": "Bob | Co", "Age": "3" }),
            json!({ "column 1": "a", "column 2": "b" })
        ]
    );
    let seen = bench.text("browser_observe", json!({})).await;
    let scope = handle(&seen, "table");
    let text = bench
        .text(
            "browser_extract",
            json!({ "what": "tables", "scope": scope }),
        )
        .await;
    assert!(
        text.ends_with("| Name | Age |\n| --- | --- |\n| Bob \\| Co | 3 |\n"),
        "{text}"
    );
}

#[tokio::test]
async fn long_pages_are_read_in_parts() {
    let bench = Bench::new().await;
    bench.open("gallery/table").await;
    let mut start = 0;
    let mut all = String::new();
    for _ in 0..20 {
        let text = bench
            .text(
                "browser_extract",
                json!({ "what": "tables", "format": "json", "start": start }),
            )
            .await;
        assert!(text.len() < 26_000);
        all.push_str(&text);
        match text.split("continue with `start`: ").nth(1) {
            Some(next) => start = next.trim_end_matches("]\n").parse().unwrap(),
            None => break,
        }
    }
    let rows = all.lines().filter(|line| line.starts_with('{')).count();
    assert_eq!(rows, 300);
    let error = bench
        .error("browser_extract", json!({ "start": 99_999_999 }))
        .await;
    assert!(error.contains("`start`"), "{error}");
}

#[tokio::test]
async fn links_are_listed_once_each() {
    let bench = Bench::new().await;
    bench.open("gallery/results").await;
    let text = bench
        .text("browser_extract", json!({ "what": "links" }))
        .await;
    assert_eq!(text.matches("https://site3.example/").count(), 1, "{text}");
    assert!(!text.contains("Skip to content"), "not shown: {text}");
}

#[tokio::test]
async fn only_the_start_of_a_page_of_fifty_megabytes_is_read() {
    let bench = Bench::new().await;
    let page = bench
        .show("<h1>Large</h1><p>the beginning</p><script id=rest type=application/json></script>")
        .await;
    let script = "rest.textContent = 'x'.repeat(50 << 20); 0";
    page.evaluate(page.session(), &page.main_frame(), script)
        .await
        .unwrap();
    let error = bench.error("browser_observe", json!({})).await;
    assert!(
        error.contains("too large") && error.contains("browser_extract"),
        "{error}"
    );
    let text = bench
        .text("browser_extract", json!({ "format": "text" }))
        .await;
    assert!(
        text.contains("the beginning")
            && text.contains("the page is too large; only its start could be read"),
        "{}",
        &text[..300]
    );
    assert!(text.len() < 30_000);
}
