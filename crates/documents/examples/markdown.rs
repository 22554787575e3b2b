//! Prints the main content of an HTML file as Markdown: `markdown FILE [URL]`.

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().unwrap_or_else(|| "-".to_owned());
    let bytes = match file.as_str() {
        "-" => std::io::read_to_string(std::io::stdin())?.into_bytes(),
        file => std::fs::read(file)?,
    };
    let url = arguments.next().unwrap_or_default();
    let page = lango_documents::markdown(&lango_documents::decode_page(&bytes, None), &url);
    println!(
        "title: {:?}\ndate: {:?}\nsite: {:?}\n",
        page.title, page.date, page.site
    );
    println!("{}", page.markdown);
    Ok(())
}
