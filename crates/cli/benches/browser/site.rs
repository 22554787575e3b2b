//! The test site on loopback: pages of several kinds and sizes, and one that never answers.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The path of the page that never answers.
pub(crate) const SILENT: &str = "silent";

/// The kind of a page, chosen by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageKind {
    Small,
    Table,
    Large,
    Popup,
    Download,
    Dialog,
    Form,
    Frames,
}

impl PageKind {
    pub(crate) const ALL: [Self; 8] = [
        Self::Small,
        Self::Table,
        Self::Popup,
        Self::Download,
        Self::Dialog,
        Self::Form,
        Self::Frames,
        Self::Large,
    ];

    pub(crate) fn of(number: usize) -> Self {
        Self::ALL[number % Self::ALL.len()]
    }
}

/// A site that runs until the harness exits.
pub(crate) struct Site {
    port: u16,
    requests: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Site {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::default();
        let site = Self {
            port,
            requests: Arc::clone(&requests),
        };
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let requests = Arc::clone(&requests);
                thread::spawn(move || answer(stream, &requests));
            }
        });
        site
    }

    pub(crate) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns how often a path was requested.
    pub(crate) fn requests(&self, path: &str) -> usize {
        let requests = self.requests.lock();
        let requests = requests.unwrap_or_else(PoisonError::into_inner);
        requests.get(path).copied().unwrap_or_default()
    }

    /// Waits until the silent page is requested more often than before.
    pub(crate) fn wait_for_silent_request(&self, before: usize) {
        let started = Instant::now();
        while self.requests(SILENT) <= before {
            assert!(
                started.elapsed() < Duration::from_secs(30),
                "the silent page was not requested"
            );
            thread::sleep(Duration::from_millis(20));
        }
    }
}

fn answer(stream: TcpStream, requests: &Mutex<BTreeMap<String, usize>>) {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    if reader.read_line(&mut first).is_err() {
        return;
    }
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        line.clear();
    }
    let path = first.split(' ').nth(1).unwrap_or("/");
    let path = path.trim_start_matches('/').to_owned();
    *requests
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .entry(path.clone())
        .or_default() += 1;
    let mut stream = reader.into_inner();
    if path == SILENT {
        // Wait until the client gives up.
        let _ = stream.set_read_timeout(Some(Duration::from_secs(120)));
        let _ = std::io::Read::read(&mut stream, &mut [0]);
        return;
    }
    let (headers, body) = response(&path);
    let head = format!(
        "HTTP/1.1 200 OK\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    // The browser may already have left the page.
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(body.as_bytes());
}

fn response(path: &str) -> (&'static str, String) {
    if path.starts_with("file/") {
        let headers = "Content-Type: application/octet-stream\r\nContent-Disposition: attachment; filename=report.bin\r\n";
        return (headers, "x".repeat(300 << 10));
    }
    let body = match path.split_once('/') {
        Some(("page", number)) => page(number.parse().unwrap_or_default()),
        Some(("name", name)) => format!("<title>{name}</title><h1>Page of {name}</h1>"),
        _ => "<title>Other</title><p>another page".to_owned(),
    };
    let body = format!("<!doctype html><meta charset=utf-8>{body}");
    ("Content-Type: text/html\r\n", body)
}

fn page(number: usize) -> String {
    let content = match PageKind::of(number) {
        PageKind::Small => "<p>a few words</p><a href=/other>Other</a>".to_owned(),
        PageKind::Table => {
            let row = |row: usize| format!("<tr><td>{row}<td>name {row}<td><button>Choose {row}</button>");
            format!("<table>{}</table>", (0..600).map(row).collect::<String>())
        }
        PageKind::Large => {
            let part = |part: usize| format!("<h2>Part {part}</h2><p>{}</p>", "word ".repeat(400));
            (0..1000).map(part).collect()
        }
        PageKind::Popup => "<button onclick=\"window.open('/name/popup')\">Popup</button>".to_owned(),
        PageKind::Download => format!("<a href=/file/{number}>Get the file</a>"),
        PageKind::Dialog => {
            "<button onclick=\"this.textContent = confirm('Sure?') ? 'Agreed' : 'Declined'\">Ask</button>".to_owned()
        }
        PageKind::Form => {
            "<label>Name <input></label><ul id=list></ul><script>document.querySelector('input').oninput = event => \
             { list.innerHTML = `<li>${event.target.value}</li>`.repeat(50) }</script>"
                .to_owned()
        }
        PageKind::Frames => "<iframe src=/name/inner></iframe><iframe src=/page/0></iframe>".to_owned(),
    };
    format!("<title>Page {number}</title><h1>Page {number}</h1>{content}")
}
