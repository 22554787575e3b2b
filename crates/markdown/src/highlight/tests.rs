//! Colours of code and diffs.

use super::*;
use lango_core::text::sanitize;
use proptest::prelude::*;

/// Returns a line without its escape sequences.
fn without_styles(line: &str) -> String {
    let mut parts = line.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = parts.map(|part| part.split_once('m').unwrap().1);
    first + &rest.collect::<String>()
}

/// Returns coloured code, with `‹35:fn›` for each coloured part.
fn marked(code: &str, language: &str) -> String {
    let lines = highlight(code, language, Style::Coloured).join("\n");
    let mut parts = lines.split("\u{1b}[");
    let mut out = parts.next().unwrap().to_owned();
    for part in parts {
        match part.split_once('m').unwrap() {
            ("0", rest) => out.push_str(&format!("›{rest}")),
            (codes, rest) => out.push_str(&format!("‹{codes}:{rest}")),
        }
    }
    out
}

#[test]
fn rust_is_coloured() {
    assert_eq!(
        marked("fn f<'a>(x: &'a str) -> u8 { 'b' + 0x1F } // c", "rust"),
        "‹1;35:fn› f<'a>(x: &'a str) -> u8 { ‹32:'b'› + ‹35:0x1F› } ‹2:// c›"
    );
    assert_eq!(
        marked("/* a /* b\n*/ c */ g(r#\"d \" e\"#)", "rust,ignore"),
        "‹2:/* a /* b›\n‹2:*/ c */› ‹36:g›(‹32:r#\"d \" e\"#›)"
    );
    assert_eq!(
        marked("let x = \"a\nb\";", "Rust"),
        "‹1;35:let› x = ‹32:\"a›\n‹32:b\"›;"
    );
}

#[test]
fn python_is_coloured() {
    assert_eq!(
        marked(
            "@cached\ndef f(x):\n    '''a # b\n    c'''\n    return None  # d",
            "py"
        ),
        "‹36:@cached›\n‹1;35:def› ‹36:f›(x):\n    ‹32:'''a # b›\n‹32:    c'''›\n    ‹1;35:return› ‹35:None›  ‹2:# d›"
    );
    assert_eq!(
        marked("x = 'open\ny = 1", "python"),
        "x = ‹32:'open›\ny = ‹35:1›"
    );
}

#[test]
fn json_has_keys_and_values() {
    assert_eq!(
        marked("{\"a\\\"b\": [1.5, true, \"x\"]}", "json"),
        "{‹36:\"a\\\"b\"›: [‹35:1.5›, ‹35:true›, ‹32:\"x\"›]}"
    );
}

#[test]
fn shells_have_variables_and_comments() {
    assert_eq!(
        marked("for f in $HOME ${x}; do echo 'a\\' # b\ndone; c#d", "bash"),
        "‹1;35:for› f ‹1;35:in› ‹36:$HOME› ‹36:${x}›; ‹1;35:do› ‹1;35:echo› ‹32:'a\\'› ‹2:# b›\n‹1;35:done›; c#d"
    );
}

#[test]
fn data_and_markup_are_coloured() {
    assert_eq!(
        marked("a: 1 # x\n- b-c: yes\n  d: http://e", "yaml"),
        "‹36:a›: ‹35:1› ‹2:# x›\n- ‹36:b-c›: ‹35:yes›\n  ‹36:d›: http://e"
    );
    assert_eq!(
        marked("[a.b]\nc = \"d\"", "toml"),
        "‹1;35:[a.b]›\n‹36:c› = ‹32:\"d\"›"
    );
    assert_eq!(
        marked("<a href=\"x\ny\">t</a><!-- c\n-->", "html"),
        "‹1;35:<a› ‹36:href›=‹32:\"x›\n‹32:y\"›‹1;35:>›t‹1;35:</a>›‹2:<!-- c›\n‹2:-->›"
    );
    assert_eq!(marked("JOIN a -- b", "sql"), "‹1;35:JOIN› a ‹2:-- b›");
}

#[test]
fn an_unknown_language_has_no_colours() {
    assert_eq!(marked("fn x() \"a\"", "brainfudge"), "fn x() \"a\"");
    assert_eq!(marked("fn x()", ""), "fn x()");
}

#[test]
fn diffs_are_red_and_green() {
    let text = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,3 +1,2 @@ fn\n a\n--- b\n-c\n+++ d\n--- a/y\n+++ b/y\n@@ -0,0 +1 @@\n+e\n";
    let shown = diff(text, Style::Coloured);
    let codes: Vec<&str> = shown
        .iter()
        .map(|line| {
            line.strip_prefix("\u{1b}[")
                .map_or("", |rest| rest.split('m').next().unwrap())
        })
        .collect();
    assert_eq!(
        codes,
        [
            "1", "1", "1", "36", "", "31", "31", "32", "1", "1", "36", "32"
        ]
    );
    assert_eq!(diff("+a\n-b", Style::Uncoloured), ["+a", "-b"]);
}

#[test]
fn code_for_a_pipe_is_unchanged_and_for_a_terminal_sanitized() {
    let code = "a\t\u{1b}[2J\r\nb";
    assert_eq!(
        highlight(code, "rust", Style::Plain),
        ["a\t\u{1b}[2J\r", "b"]
    );
    assert_eq!(
        highlight(code, "rust", Style::Coloured)[0],
        "a   ␛[‹35:2J›"
            .replace("‹35:", "\u{1b}[35m")
            .replace('›', "\u{1b}[0m")
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn colouring_changes_no_character(
        code in "(?s)([a-z\"'`#/*<>{}$@=:\\\\\n -]|r#\"|\"\"\"|/\\*|\\*/|<!--|-->|--\\[\\[|'''|.){0,60}",
        language in prop::sample::select(&["rust", "python", "js", "bash", "html", "diff", "yaml", "css", "lua", "go", "toml", "sql", "haskell", "ruby", "c"][..]),
    ) {
        let code = code.replace(['\t', '\r'], " ");
        let lines: Vec<String> = highlight(&code, language, Style::Coloured)
            .iter()
            .map(|line| without_styles(line))
            .collect();
        let expected: Vec<String> = code.strip_suffix('\n').unwrap_or(&code).split('\n').map(|line| sanitize(line).into_owned()).collect();
        let shape = |lines: &[String]| -> Vec<usize> { lines.iter().map(|line| line.chars().count()).collect() };
        prop_assert_eq!(shape(&lines), shape(&expected));
        for line in &lines {
            prop_assert_eq!(sanitize(line), line.as_str());
        }
    }
}
