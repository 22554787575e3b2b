//! Texts that are written to take long.

use super::{rendered, rows};
use lango_markdown::{Stream, Style};
use std::time::{Duration, Instant};

/// Far more than these texts take together, and far less than one of them would in quadratic time.
const MAX_TIME: Duration = Duration::from_secs(60);

const BYTES: usize = 1 << 20;

#[test]
#[cfg_attr(debug_assertions, ignore = "takes a minute without optimization")]
fn a_megabyte_of_any_marker_is_rendered_in_linear_time() {
    let started = Instant::now();
    let stairs: String = (0..1000)
        .map(|level| " ".repeat(2 * level) + "- x\n")
        .collect();
    let lazy = "- ".repeat(40) + &"a\n".repeat(BYTES / 2);
    let mut texts = vec![stairs, lazy];
    for part in [
        "- ",
        ">",
        "* > ",
        "1. ",
        "[",
        "*",
        "`",
        "*a*",
        "[a](b)",
        "<b>",
        "\u{7}word ",
        "- x\n",
        ">\n",
    ] {
        texts.push(part.repeat(BYTES / part.len()) + "x");
    }
    for text in texts {
        let start: String = text.chars().take(10).collect();
        let before = started.elapsed();
        rows(&text, 80);
        println!("{start:?}: {:?}", started.elapsed() - before);
        assert!(
            started.elapsed() < MAX_TIME,
            "{start}: {:?}",
            started.elapsed()
        );
    }
}

#[test]
fn markers_that_nest_too_deep_are_shown_as_text() {
    let shown = rendered(&format!("{}text", "> ".repeat(40)));
    assert!(shown.ends_with("> > > > > > > > text"), "{shown}");
    let shown = rendered(&format!("{}text", "- ".repeat(40)));
    assert!(shown.ends_with("- - - - - - - - text"), "{shown}");
    let code = format!("```\n{}\n```", ">".repeat(60));
    assert_eq!(rendered(&code).trim(), ">".repeat(60));
}

#[test]
fn deep_markers_look_the_same_however_they_arrive() {
    for part in ["> ", "1. ", "* > ", "+ "] {
        let text = format!("{}text\n\nend\n", part.repeat(50));
        let mut stream = Stream::new(Style::Coloured, 80, 1000);
        let mut streamed = Vec::new();
        for letter in text.chars() {
            streamed.extend(stream.push(letter.encode_utf8(&mut [0; 4])));
        }
        streamed.extend(stream.finish(""));
        assert_eq!(streamed, rows(&text, 80), "{part}");
    }
}
