//! The metadata of a page: title, date, name of the site, base URL.

use super::dom::{Dom, NodeId};
use url::Url;

#[derive(Default)]
pub(super) struct Metadata {
    pub title: Option<String>,
    pub date: Option<String>,
    pub site: Option<String>,
    /// The URL in `<base>`.
    pub base: Option<Url>,
}

const TITLES: [&str; 4] = ["og:title", "twitter:title", "citation_title", "dc.title"];
const DATES: [&str; 11] = [
    "article:published_time",
    "og:published_time",
    "datepublished",
    "citation_publication_date",
    "dc.date.issued",
    "dcterms.created",
    "dc.date",
    "parsely-pub-date",
    "pubdate",
    "date",
    "article:modified_time",
];
const SITES: [&str; 2] = ["og:site_name", "application-name"];

/// Maximum length of a title in characters.
const TITLE_LENGTH: usize = 300;

pub(super) fn read(dom: &Dom, page: Option<&Url>) -> Metadata {
    let all = dom.walk(Dom::ROOT, |_| false);
    let fields = || all.iter().filter_map(|node| field(dom, *node));
    let first = |names: &[&str]| {
        let value = |name: &&str| fields().find(|(known, _)| known == name);
        names.iter().find_map(value).map(|(_, value)| value)
    };
    let element = |name: &str| {
        let node = all.iter().find(|node| dom.name(**node) == name)?;
        Some(dom.line(*node)).filter(|text| !text.is_empty())
    };
    let site = first(&SITES);
    let title = first(&TITLES).or_else(|| {
        let title = element("title")?;
        Some(without_site(title, site.as_deref()))
    });
    let date = first(&DATES)
        .or_else(|| linked_data_date(dom, &all))
        .or_else(|| time_element(dom, &all));
    let base = all.iter().find_map(|node| {
        let is_base = dom.name(*node) == "base";
        is_base.then(|| dom.attribute(*node, "href")).flatten()
    });
    let base = base.and_then(|href| match page {
        Some(page) => page.join(href).ok(),
        None => Url::parse(href).ok(),
    });
    Metadata {
        title: title
            .or_else(|| element("h1"))
            .map(|title| cut(&title, TITLE_LENGTH)),
        date: date.and_then(|date| plain_date(&date)),
        site: site.map(|site| cut(&site, 100)),
        base,
    }
}

/// Returns the name and value of a `meta` element, or of an element with `itemprop`.
fn field(dom: &Dom, node: NodeId) -> Option<(String, String)> {
    let attribute = |name| dom.attribute(node, name);
    let name = match dom.name(node) {
        "meta" => attribute("property")
            .or_else(|| attribute("name"))
            .or_else(|| attribute("itemprop"))?,
        "time" | "span" => attribute("itemprop")?,
        _ => return None,
    };
    let value = attribute("content").or_else(|| attribute("datetime"))?;
    let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
    (!value.is_empty()).then(|| (name.trim().to_ascii_lowercase(), value))
}

/// Returns the date from the page's JSON-LD.
fn linked_data_date(dom: &Dom, all: &[NodeId]) -> Option<String> {
    let scripts = all.iter().filter(|node| {
        dom.name(**node) == "script" && dom.attribute(**node, "type") == Some("application/ld+json")
    });
    scripts.take(10).find_map(|script| {
        let text: String = dom
            .children(*script)
            .iter()
            .filter_map(|node| dom.text(*node))
            .collect();
        let (_, after) = text.split_once("\"datePublished\"")?;
        let value = after.trim_start().strip_prefix(':')?.trim_start();
        let (date, _) = value.strip_prefix('"')?.split_once('"')?;
        Some(date.to_owned())
    })
}

fn time_element(dom: &Dom, all: &[NodeId]) -> Option<String> {
    let time = all.iter().find(|node| dom.name(**node) == "time")?;
    dom.attribute(*time, "datetime").map(str::to_owned)
}

/// Shortens a date that starts with a day, such as `2026-11-16T10:00`, to that day. Returns other dates unchanged;
/// `None` if they are empty or too long.
fn plain_date(date: &str) -> Option<String> {
    let date = date.trim();
    let start = date.get(..10).unwrap_or_default().replace('/', "-");
    let is_iso = start.len() == 10
        && start.char_indices().all(|(at, character)| match at {
            4 | 7 => character == '-',
            _ => character.is_ascii_digit(),
        });
    if is_iso {
        return Some(start);
    }
    (!date.is_empty() && date.len() <= 40).then(|| date.to_owned())
}

/// Removes the name of the site from the start or end of a title.
fn without_site(title: String, site: Option<&str>) -> String {
    let Some(site) = site else { return title };
    for separator in [" | ", " - ", " – ", " — ", " :: ", " · "] {
        if let Some((rest, end)) = title.rsplit_once(separator)
            && end.eq_ignore_ascii_case(site)
        {
            return rest.to_owned();
        }
        if let Some((start, rest)) = title.split_once(separator)
            && start.eq_ignore_ascii_case(site)
        {
            return rest.to_owned();
        }
    }
    title
}

fn cut(text: &str, length: usize) -> String {
    text.chars().take(length).collect()
}
