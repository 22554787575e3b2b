//! Requests and responses of each kind of search service.

use super::{Freshness, ProviderKind, SearchQuery, SearchResult};
use lango_documents::read_html;
use lango_net::Url;
use serde_json::{Value, json};

/// Maximum lengths of titles and snippets, in characters.
const TITLE_LENGTH: usize = 200;
const SNIPPET_LENGTH: usize = 600;

/// Maximum length of a result's URL, in bytes; results with longer ones are dropped.
const URL_BYTES: usize = 2000;

/// A request without the service's base URL and key.
#[derive(Debug, PartialEq)]
pub(super) struct WireRequest {
    pub path: &'static str,
    pub body: Body,
}

#[derive(Debug, PartialEq)]
pub(super) enum Body {
    Query(Vec<(&'static str, String)>),
    Json(Value),
}

pub(super) fn request(kind: ProviderKind, query: &SearchQuery) -> WireRequest {
    let range = query.freshness.map(range_name);
    match kind {
        ProviderKind::SearXng => {
            let mut pairs = vec![
                ("q", query.text.clone()),
                ("format", "json".to_owned()),
                ("pageno", query.page.to_string()),
            ];
            pairs.extend(range.map(|range| ("time_range", range.to_owned())));
            WireRequest {
                path: "/search",
                body: Body::Query(pairs),
            }
        }
        ProviderKind::Brave => {
            let mut pairs = vec![
                ("q", query.text.clone()),
                ("count", query.count.to_string()),
                ("offset", (query.page - 1).to_string()),
                ("text_decorations", "false".to_owned()),
            ];
            let brief = query.freshness.map(|freshness| match freshness {
                Freshness::Day => "pd",
                Freshness::Week => "pw",
                Freshness::Month => "pm",
                Freshness::Year => "py",
            });
            pairs.extend(brief.map(|brief| ("freshness", brief.to_owned())));
            WireRequest {
                path: "/res/v1/web/search",
                body: Body::Query(pairs),
            }
        }
        ProviderKind::Tavily => {
            // Tavily has no paging, so the earlier pages are requested too and skipped in the results.
            let limit = (query.count * query.page).min(20);
            let mut body = json!({ "query": query.text, "max_results": limit });
            if let Some(range) = range {
                body["time_range"] = range.into();
            }
            WireRequest {
                path: "/search",
                body: Body::Json(body),
            }
        }
        ProviderKind::Kagi => {
            let mut body = json!({
                "query": query.text,
                "workflow": "search",
                "limit": query.count,
                "page": query.page,
            });
            if let Some(after) = &query.after {
                body["filters"] = json!({ "after": after });
            }
            WireRequest {
                path: "/api/v1/search",
                body: Body::Json(body),
            }
        }
    }
}

fn range_name(freshness: Freshness) -> &'static str {
    match freshness {
        Freshness::Day => "day",
        Freshness::Week => "week",
        Freshness::Month => "month",
        Freshness::Year => "year",
    }
}

/// The JSON fields of a service's results.
struct Shape {
    list: &'static str,
    snippet: &'static str,
    dates: &'static [&'static str],
}

fn shape(kind: ProviderKind) -> Shape {
    match kind {
        ProviderKind::SearXng => Shape {
            list: "/results",
            snippet: "content",
            dates: &["publishedDate"],
        },
        ProviderKind::Brave => Shape {
            list: "/web/results",
            snippet: "description",
            dates: &["page_age", "age"],
        },
        ProviderKind::Tavily => Shape {
            list: "/results",
            snippet: "content",
            dates: &["published_date"],
        },
        ProviderKind::Kagi => Shape {
            list: "/data/search",
            snippet: "snippet",
            dates: &["time", "published"],
        },
    }
}

/// Reads one page of results. A response without a list of results is an error, except for services that omit an empty
/// list.
pub(super) fn results(
    kind: ProviderKind,
    reply: &Value,
    query: &SearchQuery,
) -> Result<Vec<SearchResult>, String> {
    let shape = shape(kind);
    let is_valid = match kind {
        ProviderKind::SearXng | ProviderKind::Tavily => reply["results"].is_array(),
        ProviderKind::Brave => reply["type"] == "search" || reply["web"].is_object(),
        ProviderKind::Kagi => reply["data"].is_object(),
    };
    if !is_valid {
        return Err("the response has no list of results".to_owned());
    }
    let Some(list) = reply.pointer(shape.list).and_then(Value::as_array) else {
        return Ok(Vec::new());
    };
    let skipped = match kind {
        ProviderKind::Tavily => query.count * (query.page - 1),
        _ => 0,
    };
    let read = |item: &Value| result(item, &shape);
    let found = list.iter().skip(skipped).filter_map(read);
    Ok(found.take(query.count).collect())
}

fn result(item: &Value, shape: &Shape) -> Option<SearchResult> {
    let url = Url::parse(item["url"].as_str()?.trim()).ok()?;
    let is_web = matches!(url.scheme(), "http" | "https") && url.username().is_empty();
    if !is_web || url.as_str().len() > URL_BYTES {
        return None;
    }
    let text = |field: &str, length| plain(item[field].as_str().unwrap_or_default(), length);
    let title = text("title", TITLE_LENGTH);
    let date = shape.dates.iter().find_map(|field| item[*field].as_str());
    Some(SearchResult {
        title: if title.is_empty() {
            url.host_str().unwrap_or_default().to_owned()
        } else {
            title
        },
        snippet: text(shape.snippet, SNIPPET_LENGTH),
        date: date.map(short_date).filter(|date| !date.is_empty()),
        url: url.into(),
    })
}

/// Converts HTML to plain text on one line.
fn plain(html: &str, length: usize) -> String {
    let text = read_html(html).text;
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = line.char_indices().nth(length) {
        line.truncate(end);
        line.push('…');
    }
    line
}

/// Returns a date without the time of day.
fn short_date(date: &str) -> String {
    let date = plain(date, 40);
    let is_iso = date.as_bytes().get(10) == Some(&b'T') || date.as_bytes().get(4) == Some(&b'-');
    match date.get(..10) {
        Some(day) if is_iso => day.to_owned(),
        _ => date,
    }
}
