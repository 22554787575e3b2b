//! Which part of a page counts as content, and how it is written.

use lango_documents::{markdown, read_html};

const BASE: &str = "https://example.com/a/b.html";

/// A paragraph that counts as running text.
const PROSE: &str = "<p>Lift, as every pilot knows, is made by wings, and their shape matters more than their size, within limits.</p>";

fn main_content(body: &str) -> String {
    markdown(body, BASE).markdown
}

#[test]
fn parts_around_the_content_are_left_out() {
    let page = format!(
        "<header><a href=/>Logo</a></header><nav>Menu</nav><div class=cookie-consent>Accept cookies</div>\
         <div class=main>{PROSE}{PROSE}{PROSE}</div><div class=sidebar>Popular now</div>\
         <div role=complementary>Weather</div><div id=comments><p>First comment, which is long, and rude, of course.</p></div>\
         <footer>Imprint</footer>"
    );
    let text = main_content(&page);
    assert_eq!(text.matches("every pilot").count(), 3);
    for clutter in [
        "Logo", "Menu", "cookies", "Popular", "Weather", "rude", "Imprint",
    ] {
        assert!(!text.contains(clutter), "{clutter} in {text}");
    }
}

#[test]
fn hidden_text_is_left_out_everywhere() {
    let page = format!(
        "<p hidden>secret one</p><p style='color: red; display : none'>secret two</p><div style=visibility:hidden>secret three</div>\
         <template><p>secret four</template><noscript>secret five</noscript><!-- secret six --><textarea>secret seven</textarea>\
         {PROSE}<p>in\u{200b}vis\u{e0041}ible\u{202e}</p>"
    );
    for text in [main_content(&page), read_html(&page).text] {
        assert!(!text.contains("secret"), "{text}");
        assert!(
            text.contains("every pilot") && text.contains("invisible"),
            "{text}"
        );
    }
}

#[test]
fn a_list_of_links_is_shown_whole_with_its_links() {
    let item = |number| {
        format!(
            "<div><a href=/story/{number}>A story about number {number}</a> <span>by somebody</span></div>"
        )
    };
    let items: String = (0..60).map(item).collect();
    let page = markdown(
        &format!("<nav>Menu</nav><div>{items}</div><p>Short, sweet.</p>"),
        BASE,
    );
    assert!(
        page.markdown
            .contains("[A story about number 59](https://example.com/story/59)"),
        "{}",
        page.markdown
    );
    assert_eq!(page.links.len(), 60);
    assert_eq!(page.links[1].text, "A story about number 1");
}

#[test]
fn links_are_absolute_and_only_web_links_are_kept() {
    let links = "<p><a href=c>one</a> <a href='//d.example/x y'>two</a> <a href=#top>three</a> <a href=javascript:x()>four</a> \
         <a href=mailto:a@b.c>five</a> <a href='https://u:p@e.example/'>six</a> <a href=?q=(1)>[seven]</a> <a href=/img><img alt='the eighth link'></a></p>";
    let page = markdown(&format!("{PROSE}{links}"), BASE);
    let last = page.markdown.lines().last().unwrap();
    assert_eq!(
        last,
        "[one](https://example.com/a/c) [two](https://d.example/x%20y) three four five six \
         [seven](https://example.com/a/b.html?q=(1%29) [image: the eighth link](https://example.com/img)"
    );
    let urls: Vec<&str> = page.links.iter().map(|link| link.url.as_str()).collect();
    assert_eq!(
        urls,
        [
            "https://example.com/a/c",
            "https://d.example/x%20y",
            "https://example.com/a/b.html?q=(1)",
            "https://example.com/img"
        ]
    );
    let based = markdown(
        &format!("<base href=/other/>{PROSE}<p><a href=c>one</a> more words here.</p>"),
        BASE,
    );
    assert_eq!(based.links[0].url, "https://example.com/other/c");
}

#[test]
fn blocks_are_written_as_markdown() {
    let page = "<h2>Head <em>line</em></h2><ol start=3><li>three<li><p>four</p><p>more</p></ol>\
        <blockquote><p>said</p><p>twice</p></blockquote><pre>  a\n   b</pre><p>x<br>y</p>\
        <dl><dt>term<dd>meaning</dl><table><tr><td>layout</td></tr></table>\
        <table><caption>Prices</caption><tr><th>a<th>b</tr><tr><td colspan=2>c</tr></table>";
    let expected = "## Head line\n\n3. three\n4. four\n\n   more\n\n> said\n>\n> twice\n\n```\n  a\n   b\n```\n\nx\ny\n\nterm\n\nmeaning\n\n\
        layout\n\nPrices\n\n| a | b |\n| --- | --- |\n| c |  |";
    assert_eq!(read_html(page).text, expected);
}
