//! Tests of reading files of every kind, including broken ones.

use super::*;
use proptest::prelude::*;

fn read_as(name: &str, bytes: &[u8]) -> Result<Content, String> {
    read(Path::new(name), bytes)
}

fn text_of(name: &str, bytes: &[u8]) -> String {
    let content = read_as(name, bytes).unwrap();
    let texts: Vec<_> = content.chunks.into_iter().map(|chunk| chunk.text).collect();
    texts.join("\n")
}

#[test]
fn a_page_is_read_as_a_user_sees_it() {
    let page = "<!doctype html><HTML><head><title>Wings &amp; Tails</title>\
        <style>p { color: red }</style><script>var x = '<p>no</p>';</script></head>\
        <body><h1>Wings</h1><p title=\"a > b\">Lift is\n  1 &lt; 2 &eacute;&#233;&#xe9; &bogus; AT&T</p>\
        <!-- hidden --><script>alert('never')</script><ul><li>one<li>two</ul><pre>a\n  b</pre></body>";
    let content = read_as("x.html", page.as_bytes()).unwrap();
    assert_eq!(content.title, "Wings & Tails");
    let text = &content.chunks[0].text;
    assert_eq!(content.chunks[0].heading, "Wings");
    assert!(text.contains("Lift is 1 < 2 ééé &bogus; AT&T"), "{text}");
    assert!(
        text.contains("- one\n- two") && text.contains("a\n  b"),
        "{text}"
    );
    for hidden in ["red", "alert", "never", "hidden", "var"] {
        assert!(!text.contains(hidden), "{hidden} in {text}");
    }
}

#[test]
fn text_in_old_encodings_is_read() {
    assert_eq!(text_of("a.txt", b"caf\xe9 au lait"), "café au lait");
    assert_eq!(text_of("a.txt", b"\xff\xfeh\0i\0"), "hi");
    assert_eq!(text_of("a.txt", b"\xfe\xff\0h\0i"), "hi");
    assert_eq!(text_of("a.txt", b"\xef\xbb\xbfhi"), "hi");
}

#[test]
fn files_that_are_not_text_are_refused() {
    assert_eq!(read_as("a.txt", b"ab\0cd").unwrap_err(), "it is not text");
    assert_eq!(
        read_as("a.txt", b"\x89\x01\x02\x03\x04\xff\xfe").unwrap_err(),
        "it is not text"
    );
    assert_eq!(
        read_as("a.txt", b" \n\n").unwrap_err(),
        "it contains no text"
    );
}

#[test]
fn the_title_of_markdown_is_its_first_heading() {
    let content = read_as("notes.md", b"intro\n\n# The Title\n\nwords\n").unwrap();
    assert_eq!(content.title, "The Title");
    assert_eq!(read_as("notes.txt", b"words").unwrap().title, "notes.txt");
}

/// Builds a PDF of one page with this text.
fn pdf(text: &str) -> Vec<u8> {
    use lopdf::content::{Content, Operation};
    use lopdf::{Document, Object, Stream, dictionary};
    let mut document = Document::with_version("1.5");
    let pages = document.new_object_id();
    let font = document.add_object(dictionary! {
        "Type" => "Font", "Subtype" => "Type1", "BaseFont" => "Courier",
    });
    let resources = document.add_object(dictionary! {
        "Font" => dictionary! { "F1" => font },
    });
    let content = Content {
        operations: vec![
            Operation::new("BT", vec![]),
            Operation::new("Tf", vec!["F1".into(), 48.into()]),
            Operation::new("Td", vec![100.into(), 600.into()]),
            Operation::new("Tj", vec![Object::string_literal(text)]),
            Operation::new("ET", vec![]),
        ],
    };
    let stream = document.add_object(Stream::new(dictionary! {}, content.encode().unwrap()));
    let page = document.add_object(dictionary! {
        "Type" => "Page", "Parent" => pages, "Contents" => stream, "Resources" => resources,
        "MediaBox" => vec![0.into(), 0.into(), 595.into(), 842.into()],
    });
    let tree = dictionary! { "Type" => "Pages", "Kids" => vec![page.into()], "Count" => 1 };
    document.objects.insert(pages, Object::Dictionary(tree));
    let catalog = document.add_object(dictionary! { "Type" => "Catalog", "Pages" => pages });
    document.trailer.set("Root", catalog);
    let mut bytes = Vec::new();
    document.save_to(&mut bytes).unwrap();
    bytes
}

#[test]
fn a_pdf_gives_its_text_and_page() {
    let content = read_as("paper.pdf", &pdf("Slipstreams lift wings")).unwrap();
    assert!(content.chunks[0].text.contains("Slipstreams lift wings"));
    assert_eq!(content.chunks[0].line, 1);
    assert_eq!(content.title, "paper.pdf");
}

#[test]
fn a_broken_pdf_is_reported() {
    let whole = pdf("words");
    for length in (5..whole.len()).step_by(7) {
        let _ = read_as("x.pdf", &whole[..length]);
    }
    let error = read_as("x.pdf", b"%PDF-1.5\nnothing").unwrap_err();
    assert!(error.starts_with("it is a broken PDF"), "{error}");
    assert!(
        read_as("x.pdf", &pdf(""))
            .unwrap_err()
            .contains("has no text")
    );
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>, name in 0..5_usize) {
        let name = ["a.txt", "a.md", "a.html", "a.rs", "a.pdf"][name];
        let _ = read_as(name, &bytes);
    }

    #[test]
    fn any_page_is_read(page in "(<|>|/|=|\"|'|&|;|#|!|-|script|p|é|head|title| |\n){0,80}") {
        let _ = read_html(&page);
    }

    #[test]
    fn a_pdf_with_any_byte_changed_is_read_or_refused(at in 0..700_usize, byte: u8) {
        let mut bytes = pdf("some words to read");
        let at = at % bytes.len();
        bytes[at] = byte;
        let _ = read_as("x.pdf", &bytes);
    }
}
