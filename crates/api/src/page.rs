//! The page, which is compiled into the binary: its assets, and the deep links that all load the same document.

use axum::Router;
use axum::body::Body;
use axum::extract::Path;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use include_dir::{Dir, include_dir};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// The files as `build.rs` wrote them.
static FILES: Dir<'static> = include_dir!("$OUT_DIR/page");

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// The content security policy: scripts, styles, images and connections may come only from this server, and no site may
/// embed the page.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'";

/// The paths of deep links, which load the page.
const LINKS: [&str; 2] = ["/s/{*path}", "/view/{*path}"];

/// Returns the routes of the page. At `/`, the other router handles all methods except GET.
pub(crate) fn router(other: Router) -> Router {
    let mut router = Router::new()
        .route("/", get(document).fallback_service(other))
        .route("/page/{*path}", get(asset));
    for link in LINKS {
        router = router.route(link, get(document));
    }
    router
}

async fn document(headers: HeaderMap) -> Response {
    respond("index.html", &headers)
}

async fn asset(Path(path): Path<String>, headers: HeaderMap) -> Response {
    respond(&path, &headers)
}

fn respond(path: &str, headers: &HeaderMap) -> Response {
    let (Some(file), Some(media_type)) = (FILES.get_file(path), media_type(path)) else {
        return (StatusCode::NOT_FOUND, "there is no such file\n").into_response();
    };
    let is_known = headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|tags| tags.to_str().ok())
        .any(|tags| tags == "*" || tags.contains(VERSION.as_str()));
    let mut response = if is_known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        Body::from(file.contents()).into_response()
    };
    let set = [
        (CONTENT_TYPE, media_type),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (OPENER_POLICY, "same-origin"),
        (CACHE_CONTROL, "no-cache"),
        (ETAG, VERSION.as_str()),
    ];
    for (name, value) in set {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// Returns the media type of a served file, or `None` for files that are not served, such as the sources of tests and
/// types.
fn media_type(path: &str) -> Option<&'static str> {
    match path.rsplit_once('.')?.1 {
        "html" => Some("text/html; charset=utf-8"),
        "css" => Some("text/css; charset=utf-8"),
        "js" => Some("text/javascript; charset=utf-8"),
        "svg" => Some("image/svg+xml"),
        _ => None,
    }
}

/// A digest of all files, so that a browser with one version of the page loads no file of another version.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut hasher = Sha256::new();
    add(&FILES, &mut hasher);
    let digest = base16ct::lower::encode_string(&hasher.finalize()[..12]);
    format!("\"{digest}\"")
});

fn add(folder: &Dir<'_>, hasher: &mut Sha256) {
    for file in folder.files() {
        hasher.update(file.path().to_string_lossy().as_bytes());
        hasher.update([0]);
        hasher.update(file.contents());
    }
    for inner in folder.dirs() {
        add(inner, hasher);
    }
}

#[cfg(test)]
#[path = "../build/strip.rs"]
mod strip;

#[cfg(test)]
mod tests {
    use super::*;

    /// The maximum size of all scripts, styles and documents together, in bytes.
    const MAX_BYTES: usize = 150_000;

    fn size(folder: &Dir<'_>) -> usize {
        let files = folder
            .files()
            .filter(|file| file.path().extension().is_none_or(|end| end != "svg"));
        let own: usize = files.map(|file| file.contents().len()).sum();
        own + folder.dirs().map(size).sum::<usize>()
    }

    #[test]
    fn the_page_is_small() {
        let size = size(&FILES);
        assert!(size <= MAX_BYTES, "{size} bytes");
        assert!(FILES.get_file("index.html").is_some());
        assert!(
            FILES.get_file("tsconfig.json").is_none(),
            "only the page is served"
        );
    }

    #[test]
    fn scripts_mean_the_same_without_comments_and_white_space() {
        for (source, stripped) in [
            ("const a = 1; // one\nlet b", "const a=1;let b"),
            (
                "/** doc */\nexport function f ( x ) {\n  return x + +1;\n}",
                "export function f(x){return x+ +1}",
            ),
            ("{ f(a(b)); }", "{f(a(b))}"),
            ("{ while (f(a)); }", "{while(f(a));}"),
            ("{ f(')'); }", "{f(')');}"),
            ("{ if (a) b; else; }", "{if(a)b;else;}"),
            ("let x = a\nlet y = b", "let x=a\nlet y=b"),
            ("return\na", "return\na"),
            (
                "f(\n  'a // b', \"/* c */\",\n)",
                "f('a // b',\"/* c */\",)",
            ),
            (
                "x.replace(/[/\"]\\/ /g, ' ') / 2 // half",
                "x.replace(/[/\"]\\/ /g,' ')/2",
            ),
            (
                "`a ${ f({ b: `c  ${d} // e` }) } // f`  + 1",
                "`a ${ f({ b: `c  ${d} // e` }) } // f`+1",
            ),
            ("a\n  .b()\n  .c()", "a.b().c()"),
            ("if (a) b\nelse c", "if(a)b\nelse c"),
            (
                "import { a } from './a.js'\nimport b from './b.js'",
                "import{a}from'./a.js'\nimport b from'./b.js'",
            ),
        ] {
            assert_eq!(strip::script(source), stripped);
        }
        let markup = "<p>\n  a\n\n</p>\n";
        assert_eq!(strip::markup(markup), "<p>\na\n</p>\n");
        let style = "/* x */\n.a > .b , .c :hover {\n  color: red;\n  width: calc(1px + 2px);\n}\n";
        assert_eq!(
            strip::style(style),
            ".a>.b,.c :hover{color:red;width:calc(1px + 2px)}"
        );
    }
}
