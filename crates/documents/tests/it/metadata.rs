//! The title, date and site of a page.

use lango_documents::{ReadablePage, markdown};

fn read(head: &str) -> ReadablePage {
    markdown(
        &format!("<head>{head}</head><body><h1>Heading</h1><p>words</p>"),
        "https://www.example.com/x",
    )
}

#[test]
fn the_name_of_the_site_is_removed_from_titles() {
    for (head, title) in [
        ("<title>Wings &amp; tails</title>", "Wings & tails"),
        (
            "<title>Wings | Daily</title><meta property=og:site_name content=Daily>",
            "Wings",
        ),
        (
            "<title>Daily - Wings</title><meta property=og:site_name content=DAILY>",
            "Wings",
        ),
        (
            "<title>x</title><meta property=og:title content=' Wings  of birds '>",
            "Wings of birds",
        ),
        ("", "Heading"),
    ] {
        assert_eq!(read(head).title.as_deref(), Some(title), "{head}");
    }
}

#[test]
fn dates_are_found_in_every_common_place() {
    for (head, date) in [
        (
            "<meta property=article:published_time content=2026-11-01T08:00:00+01:00>",
            Some("2026-11-01"),
        ),
        ("<meta name=DC.date content=2026/11/02>", Some("2026-11-02")),
        (
            "<meta itemprop=datePublished content=2026-11-03>",
            Some("2026-11-03"),
        ),
        (
            r#"<script type="application/ld+json">{"@type":"NewsArticle","datePublished": "2026-11-04T00:00Z"}</script>"#,
            Some("2026-11-04"),
        ),
        (
            "<meta name=date content='5 November 2026'>",
            Some("5 November 2026"),
        ),
        ("", None),
    ] {
        assert_eq!(read(head).date.as_deref(), date, "{head}");
    }
    let timed = markdown("<p>words <time datetime=2026-11-06>today</time>", "");
    assert_eq!(timed.date.as_deref(), Some("2026-11-06"));
}

#[test]
fn the_site_defaults_to_the_host() {
    assert_eq!(read("").site.as_deref(), Some("www.example.com"));
    assert_eq!(
        read("<meta property=og:site_name content=Daily>")
            .site
            .as_deref(),
        Some("Daily")
    );
}
