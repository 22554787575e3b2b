//! The types and encodings of fetched content.

use crate::support::{Bench, Reply, Site};
use lopdf::content::{Content, Operation};
use lopdf::{Document, Object, Stream, dictionary};

async fn fetched(reply: Reply) -> Result<String, String> {
    let site = Site::serve(move |_| reply.clone()).await;
    let bench = Bench::new(&[&site]);
    let arguments = serde_json::json!({ "url": site.url("/file") });
    let output = bench.call(arguments).await;
    output
        .map(|output| output.text)
        .map_err(|error| error.message)
}

#[tokio::test]
async fn plain_text_is_shown_unchanged() {
    for (content_type, body) in [
        ("application/json", "{\"a\": [1, \"<b>\"]}"),
        ("application/vnd.api+json", "{\"b\": 2}"),
        ("text/markdown", "# Title\n\n* one   two"),
        ("text/plain; charset=utf-8", "  a < b\n  c & d"),
        ("application/rss+xml", "<rss><item>x</item></rss>"),
        ("", "plain words"),
    ] {
        let text = fetched(Reply::new(content_type, body)).await.unwrap();
        let (_, content) = text.split_once("instructions.\n\n").unwrap();
        assert_eq!(content.trim_end_matches('\n'), body, "{content_type}");
    }
}

#[tokio::test]
async fn html_is_recognized_by_its_start_if_the_server_does_not_name_the_type() {
    for content_type in ["", "text/plain", "application/octet-stream"] {
        let page = Reply::new(content_type, "\n<!DOCTYPE html><p>some <b>bold</b> words");
        let text = fetched(page).await.unwrap();
        assert!(text.contains("some bold words"), "{text}");
    }
}

#[tokio::test]
async fn the_encoding_comes_from_the_byte_order_mark_the_header_the_page_or_the_bytes() {
    let latin = |head: &str| [format!("{head}<p>caf").as_bytes(), b"\xe9 na\xefve</p>"].concat();
    let utf16: Vec<u8> = "\u{feff}<p>café naïve</p>"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let pages: [(&str, Vec<u8>); 8] = [
        ("text/html; charset=ISO-8859-1", latin("")),
        (
            "text/html; charset=\"windows-1252\"",
            latin("<meta charset=utf-8>"),
        ),
        ("text/html", latin("<meta charset=\"latin1\">")),
        (
            "text/html",
            latin("<meta http-equiv=Content-Type content='text/html; charset=iso-8859-15'>"),
        ),
        ("text/html", latin("")),
        ("text/html", "<p>café naïve</p>".into()),
        (
            "text/html; charset=latin1",
            "\u{feff}<p>café naïve</p>".into(),
        ),
        ("text/html", utf16),
    ];
    for (content_type, body) in pages {
        let text = fetched(Reply::new(content_type, body)).await.unwrap();
        assert!(text.contains("café naïve"), "{content_type}: {text}");
    }
    let japanese = fetched(Reply::new(
        "text/html; charset=shift_jis",
        b"<p>\x93\xfa\x96\x7b\x8c\xea</p>",
    ))
    .await;
    assert!(japanese.unwrap().contains("日本語"));
}

fn pdf(text: &str) -> Vec<u8> {
    let mut document = Document::with_version("1.5");
    let pages = document.new_object_id();
    let font = document.add_object(dictionary! {
        "Type" => "Font", "Subtype" => "Type1", "BaseFont" => "Courier",
    });
    let resources = document.add_object(dictionary! { "Font" => dictionary! { "F1" => font } });
    let operations = vec![
        Operation::new("BT", vec![]),
        Operation::new("Tf", vec!["F1".into(), 48.into()]),
        Operation::new("Tj", vec![Object::string_literal(text)]),
        Operation::new("ET", vec![]),
    ];
    let content = Content { operations }.encode().unwrap();
    let stream = document.add_object(Stream::new(dictionary! {}, content));
    let page = document.add_object(dictionary! {
        "Type" => "Page", "Parent" => pages, "Contents" => stream, "Resources" => resources,
    });
    let tree = dictionary! { "Type" => "Pages", "Kids" => vec![page.into()], "Count" => 1 };
    document.objects.insert(pages, Object::Dictionary(tree));
    let catalog = document.add_object(dictionary! { "Type" => "Catalog", "Pages" => pages });
    document.trailer.set("Root", catalog);
    let mut bytes = Vec::new();
    document.save_to(&mut bytes).unwrap();
    bytes
}

#[tokio::test]
async fn a_pdf_is_read_page_by_page_whatever_its_media_type() {
    for content_type in ["application/pdf", "application/octet-stream"] {
        let text = fetched(Reply::new(content_type, pdf("Slipstreams lift wings")))
            .await
            .unwrap();
        assert!(
            text.contains("[page 1]\n\nSlipstreams lift wings"),
            "{text}"
        );
    }
    let broken = fetched(Reply::new("application/pdf", "%PDF-1.5\nnothing")).await;
    assert!(broken.unwrap_err().contains("broken PDF"));
}

#[tokio::test]
async fn other_types_are_refused_with_their_type_and_size() {
    let error = fetched(Reply::new("image/png", vec![0; 1234]))
        .await
        .unwrap_err();
    assert!(error.contains("`image/png` with 1234 bytes"), "{error}");
    let error = fetched(Reply::new("", vec![0, 1, 2])).await.unwrap_err();
    assert!(error.contains("an unknown type with 3 bytes"), "{error}");
}

#[tokio::test]
async fn malformed_and_hostile_html_is_read_within_limits() {
    let started = std::time::Instant::now();
    for page in [
        "<p>one<table><tr><td>two<div>three</td></p></table>four".to_owned(),
        format!("<p>words first</p>{}", "<div>".repeat(200_000)),
        format!("<p>words first</p>{}", "<b><i><a><p>".repeat(50_000)),
        format!(
            "<p>words first</p>{}",
            "<font size=1><font size=2><p>x".repeat(20_000)
        ),
        format!("<p>words first</p>{}", "<ul><li>x".repeat(50_000)),
        format!("<p>words first</p>{}", "<blockquote>x<br>".repeat(50_000)),
        format!("<p>words first</p>{}", "<table><tr><td>x".repeat(30_000)),
        format!(
            "<p>words first</p><table>{}",
            "<tr><td colspan=99999999>x".repeat(30_000)
        ),
        format!("<p>words first</p><{}", "a ".repeat(500_000)),
    ] {
        let text = fetched(Reply::html(&page)).await.unwrap();
        assert!(
            text.contains("words first") || text.contains("four"),
            "{text}"
        );
        assert!(text.len() < 20_000);
    }
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
}
