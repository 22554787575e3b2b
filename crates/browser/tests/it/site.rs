//! A local site of awkward pages, each at its own path.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::header::{
    AUTHORIZATION, CONTENT_DISPOSITION, CONTENT_TYPE, COOKIE, LOCATION, SET_COOKIE,
    WWW_AUTHENTICATE,
};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A running site.
pub(crate) struct Site {
    pub port: u16,
    uploads: Uploads,
    _server: tokio::task::JoinHandle<()>,
}

type Uploads = Arc<Mutex<Vec<Vec<u8>>>>;

impl Site {
    pub(crate) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let uploads = Uploads::default();
        let router = router(port).with_state(Arc::clone(&uploads));
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            port,
            uploads,
            _server: server,
        }
    }

    /// Returns the URL of a page.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://site.test:{}/{path}", self.port)
    }

    /// Returns the URL of the same page on another site.
    pub(crate) fn other_url(&self, path: &str) -> String {
        format!("http://other.test:{}/{path}", self.port)
    }

    /// Returns the bodies of all uploads so far.
    pub(crate) fn uploads(&self) -> Vec<Vec<u8>> {
        self.uploads.lock().unwrap().clone()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self._server.abort();
    }
}

fn page(title: &str, body: &str) -> Html<String> {
    let page = format!("<!doctype html><meta charset=utf-8><title>{title}</title><body>{body}");
    Html(page)
}

/// Serves a page with fixed content.
fn fixed(title: &'static str, body: &'static str) -> axum::routing::MethodRouter<Uploads> {
    get(move || async move { page(title, body) })
}

fn router(port: u16) -> Router<Uploads> {
    let other = format!("http://other.test:{port}");
    let frames = format!(
        "<h1>Frames</h1><iframe name=near src=/inner></iframe><iframe name=far width=300 height=200 src={other}/inner></iframe>"
    );
    Router::new()
        .route("/", fixed("Home", "<h1>Home</h1><a href=/inner>Inner</a> <a href=/login>Log in</a>"))
        .route("/inner", fixed("Inner", "<p>inner text</p><button onclick=\"this.textContent='pressed'\">Press</button>"))
        .route("/login", fixed("Log in", LOGIN).post(log_in))
        .route("/account", get(account))
        .route("/spa", fixed("App", SPA))
        .route("/data", get(|| async { ([(CONTENT_TYPE, "application/json")], "[\"one\",\"two\"]") }))
        .route("/scroll", fixed("Scroll", SCROLL))
        .route("/popup", fixed("Opener", "<a href=/inner target=_blank>open</a><button onclick=\"open('/inner')\">Popup</button>"))
        .route("/popups", fixed("Popups", "<script>for (let i = 0; i < 15; i++) open('/inner?' + i)</script>"))
        .route("/download", fixed("Downloads", "<a href=/file>Get the file</a>"))
        .route("/file", get(file))
        .route("/upload", fixed("Upload", UPLOAD).post(upload))
        .route("/loop", get(|| async { (StatusCode::FOUND, [(LOCATION, "/loop")]) }))
        .route("/away", get(move || async move { (StatusCode::FOUND, [(LOCATION, format!("{other}/inner"))]) }))
        .route(
            "/inward",
            get(|| async { (StatusCode::FOUND, [(LOCATION, "http://10.0.0.1/")]) }),
        )
        .route("/large", get(large))
        .route("/alerts", fixed("Alerts", "<script>setTimeout(() => { for (;;) alert('again') })</script>"))
        .route("/question", fixed("Question", "<button onclick=\"document.title = confirm('Sure?') ? prompt('Name?', 'none') : 'no'\">Ask</button>"))
        .route("/frames", get(move || async move { page("Frames", &frames) }))
        .route("/shadow", fixed("Shadow", SHADOW))
        .route("/slow", get(|| async { tokio::time::sleep(Duration::from_secs(2)).await; page("Slow", "<p>at last</p>") }))
        .route("/silent", get(|| async { std::future::pending::<Html<String>>().await }))
        .route("/endless", get(endless))
        .route("/missing", get(|| async { (StatusCode::NOT_FOUND, page("Missing", "not here")) }))
        .route("/broken", get(|| async { (StatusCode::INTERNAL_SERVER_ERROR, page("Broken", "our fault")) }))
        .route("/private", get(private))
        .route("/count", get(count))
        .route("/refresh", fixed("Refresh", "<meta http-equiv=refresh content='0; url=/inner'>"))
        .route("/leave", fixed("Leave", "<button>Write</button><script>onbeforeunload = event => { event.preventDefault(); return 'stay' }</script>"))
        .route("/error", fixed("Errors", "<script>console.error('noted'); throw new Error('script is broken')</script>"))
        .route("/form", fixed("Form", FORM).post(|body: Bytes| async move { page("Sent", &String::from_utf8_lossy(&body)) }))
        .route("/hang", fixed("Hang", "<p>text</p><script>setTimeout(() => { for (;;) {} })</script>"))
        .route("/memory", fixed("Memory", "<script>setTimeout(() => { const all = []; for (;;) all.push(new Uint8Array(1 << 26).fill(1)) })</script>"))
        .route("/reach", get(move || async move { page("Reach", REACH) }))
        .route("/search", get(search))
        .route("/restless", fixed("Restless", "<p>text</p><script>setTimeout(() => location.reload(), 30)</script>"))
        .route("/echo", get(|Query(query): Query<HashMap<String, String>>| async move { ([(CONTENT_TYPE, query["type"].clone())], query["body"].clone()) }))
        .route("/thief", get(thief))
        .route("/victim", fixed("Victim", "<input id=s aria-label=Secret oninput=\"parent.postMessage('go', '*')\">"))
        .route("/gallery/{name}", get(|Path(name): Path<String>| async move {
            crate::gallery::page(&name).map(Html).ok_or(StatusCode::NOT_FOUND)
        }))
}

const LOGIN: &str = "<form method=post><label>Name <input name=name required></label><label>Password \
    <input name=password type=password required></label><button>Log in</button></form>";

const SPA: &str = "<nav><a href=#list onclick='show()'>List</a></nav><ul id=list></ul><script>
    async function show() {
        const items = await (await fetch('/data')).json();
        history.pushState({}, '', '/spa/list');
        setTimeout(() => { list.innerHTML = items.map(item => `<li>${item}</li>`).join('') }, 150);
    }
    show();
    </script>";

const SCROLL: &str = "<div id=list></div><script>
    let count = 0;
    function more() { for (let i = 0; i < 20; i++) { const p = document.createElement('p'); p.textContent = 'item ' + ++count; list.append(p); } }
    more();
    addEventListener('scroll', () => { if (innerHeight + scrollY > document.body.offsetHeight - 50) more(); });
    </script>";

const UPLOAD: &str = "<form method=post enctype=multipart/form-data><input type=file name=file><button>Send</button></form>";

const SHADOW: &str = "<div id=open></div><div id=closed></div><script>
    open_root = document.getElementById('open').attachShadow({ mode: 'open' });
    open_root.innerHTML = '<button>In the open</button>';
    document.getElementById('closed').attachShadow({ mode: 'closed' }).innerHTML = '<button>In the closed</button>';
    </script>";

const FORM: &str = "<form method=post><label>Mail <input name=mail type=email required></label><label>Age \
    <input name=age type=number min=18></label><label>Colour <select name=colour><option>red<option>blue</select></label>\
    <label><input name=agree type=checkbox required> Agree</label><button>Send</button></form>";

/// Takes the focus again and again once the other window sends a message, and records all key and input events.
const THIEF: &str = "<input id=t aria-label=Thief><script>
    let taken = 0;
    window.got = '';
    const take = () => { taken++; window.focus(); t.focus(); };
    onmessage = () => { take(); setInterval(take, 1); };
    for (const type of ['keydown', 'keypress', 'keyup', 'beforeinput', 'input', 'paste'])
        addEventListener(type, event => got += type + ':' + (event.key ?? event.data) + ' ', true);
    </script>";

/// Fetches addresses that a page must not reach.
const REACH: &str = "<pre id=out></pre><script>
    const tries = ['http://127.0.0.1:8081/', 'http://169.254.169.254/latest/', 'http://workspace.localhost/secret.txt', 'http://10.0.0.1/', 'https://example.com/'];
    Promise.all(tries.map(url => fetch(url).then(async r => url + ' ' + r.status + ' ' + await r.text(), e => url + ' failed')))
        .then(lines => { out.textContent = lines.join('\\n'); document.title = 'done'; });
    </script>";

async fn log_in(body: String) -> Response {
    if body.contains("name=ada") && body.contains("password=secret") {
        let headers = [
            (LOCATION, "/account"),
            (SET_COOKIE, "user=ada; Path=/; HttpOnly"),
        ];
        return (StatusCode::SEE_OTHER, headers).into_response();
    }
    (
        StatusCode::FORBIDDEN,
        page("Log in", "Wrong name or password"),
    )
        .into_response()
}

async fn account(headers: HeaderMap) -> Html<String> {
    let is_known = headers
        .get(COOKIE)
        .is_some_and(|cookie| cookie.to_str().unwrap().contains("user=ada"));
    if is_known {
        page("Account", "<h1>Welcome, Ada</h1>")
    } else {
        page("Account", "<h1>Please log in</h1>")
    }
}

async fn file() -> impl IntoResponse {
    let headers = [
        (CONTENT_TYPE, "application/octet-stream"),
        (
            CONTENT_DISPOSITION,
            "attachment; filename=\"../.git/report.bin\"",
        ),
    ];
    (headers, "the content of the file")
}

async fn upload(State(uploads): State<Uploads>, body: Bytes) -> Html<String> {
    let text = format!("received {} bytes", body.len());
    uploads.lock().unwrap().push(body.to_vec());
    page("Received", &text)
}

/// Serves 50 MB of text.
async fn large() -> Response {
    let line = Bytes::from("<p>word word word word word word word word</p>\n".repeat(1000));
    let count = 50_000_000 / line.len();
    let head = Bytes::from_static(b"<!doctype html><title>Large</title><body>");
    let chunks = std::iter::once(head).chain(std::iter::repeat_n(line, count));
    let chunks = futures_util::stream::iter(chunks.map(Ok::<_, std::io::Error>));
    ([(CONTENT_TYPE, "text/html")], Body::from_stream(chunks)).into_response()
}

/// Serves a page that never ends.
async fn endless() -> Response {
    let head =
        Bytes::from_static(b"<!doctype html><title>Endless</title><body><p>the beginning</p>");
    let chunks = futures_util::stream::unfold(Some(head), |head| async move {
        let chunk = match head {
            Some(head) => head,
            None => {
                tokio::time::sleep(Duration::from_millis(200)).await;
                Bytes::from_static(b"<i>more</i>")
            }
        };
        Some((Ok::<_, std::io::Error>(chunk), None))
    });
    ([(CONTENT_TYPE, "text/html")], Body::from_stream(chunks)).into_response()
}

async fn private(headers: HeaderMap) -> Response {
    if headers.contains_key(AUTHORIZATION) {
        return page("Private", "welcome").into_response();
    }
    let ask = [(WWW_AUTHENTICATE, "Basic realm=\"x\"")];
    (
        StatusCode::UNAUTHORIZED,
        ask,
        page("Private", "who are you?"),
    )
        .into_response()
}

async fn count(headers: HeaderMap) -> impl IntoResponse {
    let count = headers
        .get(COOKIE)
        .and_then(|cookie| cookie.to_str().ok()?.strip_prefix("count=")?.parse().ok());
    let count: u32 = count.unwrap_or(0) + 1;
    (
        [(SET_COOKIE, format!("count={count}"))],
        page(&format!("Visit {count}"), ""),
    )
}

/// Serves a page that takes the focus, with a frame if the query names one.
async fn thief(Query(query): Query<HashMap<String, String>>) -> Html<String> {
    let frame = query
        .get("frame")
        .map(|url| format!("<iframe width=300 height=100 src={url}></iframe>"));
    page("Thief", &(THIEF.to_owned() + &frame.unwrap_or_default()))
}

async fn search(Query(query): Query<HashMap<String, String>>) -> Html<String> {
    let query = query.get("q").cloned().unwrap_or_default();
    if query == "silence" {
        std::future::pending::<()>().await;
    }
    page(
        &format!("Results for {query}"),
        "<a href=/inner>A result</a>",
    )
}
