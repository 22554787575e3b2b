//! `search_web` and `search_fetch` through the real binary, against servers on loopback.

use crate::lango::{Lango, finish, of_type, text};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

const PAGE: &str = "<!doctype html><title>Slipstreams</title><body><nav><a href=/>Home</a></nav>\
    <p>Slipstreams, as every cyclist knows, save a third of the work, and sometimes more.</p></body>";

/// A server that gives every request the same answer until the test ends.
struct Site {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Site {
    fn serve(status: u16, content_type: &'static str, body: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let recorded = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let head = read_head(&stream);
                recorded.lock().unwrap().push(head);
                let length = body.len();
                let _ = write!(
                    &stream,
                    "HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
                     Cache-Control: max-age=600\r\nConnection: close\r\n\r\n{body}"
                );
            }
        });
        Self { port, requests }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn read_head(stream: &TcpStream) -> String {
    let mut head = String::new();
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        if line.is_empty() {
            break;
        }
        head.push_str(&line);
        head.push('\n');
    }
    head
}

/// Creates a home whose configuration allows these sites.
fn lango_with(sites: &[&Site]) -> Lango {
    let lango = Lango::new();
    let hosts = sites
        .iter()
        .map(|site| format!("'127.0.0.1:{}'", site.port));
    let hosts: Vec<String> = hosts.collect();
    lango.home_file(
        "lango.toml",
        format!("egress.allow = [{}]\n", hosts.join(", ")),
    );
    lango
}

#[test]
fn a_page_that_the_user_names_is_read_and_cached() {
    let site = Site::serve(200, "text/html", PAGE);
    let lango = lango_with(&[&site]);
    let question = format!("read {}", site.url("/a/slipstreams"));
    let answer = lango.ask(&question);
    let answer_text = text(&answer["answer"]);
    assert!(
        answer_text.contains("Slipstreams, as every cyclist knows"),
        "{answer_text}"
    );
    assert!(
        answer_text.contains("Title: Slipstreams\n") && !answer_text.contains("Home"),
        "{answer_text}"
    );
    let events = lango.events(text(&answer["session"]));
    let calls = of_type(&events, "tool.called");
    assert_eq!(calls[0]["tool"], "search_fetch");
    assert_eq!(calls[0]["author"], "librarian");
    lango.ask(&question);
    assert_eq!(site.requests().len(), 1);
    assert!(
        site.requests()[0].contains("user-agent: lango/"),
        "{:?}",
        site.requests()
    );
}

#[test]
fn an_ephemeral_run_stores_no_page() {
    let site = Site::serve(200, "text/html", PAGE);
    let lango = lango_with(&[&site]);
    let question = format!("read {}", site.url("/"));
    for _ in 0..2 {
        let ran = lango.run(&["run", "--ephemeral", &question]).ok();
        assert!(ran.stdout.contains("every cyclist"), "{ran:#?}");
    }
    assert_eq!(site.requests().len(), 2);
    assert!(!lango.database().exists());
}

#[test]
fn a_private_address_is_refused_with_the_key_that_allows_it() {
    let site = Site::serve(200, "text/html", PAGE);
    let lango = Lango::new();
    let ran = lango.run(&["run", &format!("read {}", site.url("/"))]).ok();
    assert!(ran.stdout.contains("egress.allow"), "{ran:#?}");
    assert!(site.requests().is_empty());
}

#[test]
fn a_search_names_the_service_that_answered_and_never_shows_a_key() {
    const RESULTS: &str = r#"{"results":[{"title":"Drafting <b>bikes</b>","url":"https://example.com/draft","content":"Save work"}]}"#;
    let good = Site::serve(200, "application/json", RESULTS);
    let bad = Site::serve(401, "application/json", "{}");
    let lango = Lango::new();
    lango.home_file(
        "lango.toml",
        format!(
            "search.order = ['brave', 'local']\n\
             [search.providers.brave]\nurl = '{}'\napiKeyEnv = 'MY_BRAVE'\n\
             [search.providers.local]\nkind = 'searxng'\nurl = '{}'\n",
            bad.url(""),
            good.url("")
        ),
    );
    let mut command = lango.command(&["run", "--json", "search the web for slipstreams"]);
    let ran = finish(command.env("MY_BRAVE", "sk-hidden-key"), b"").ok();
    let answer = ran.json();
    let answer_text = text(&answer["answer"]);
    for part in [
        "by `local` (searxng)",
        "1. Drafting bikes\n   https://example.com/draft\n   Save work",
        "`brave` returned nothing: 401: it does not accept the key in `MY_BRAVE`",
    ] {
        assert!(answer_text.contains(part), "no `{part}` in {answer_text}");
    }
    assert!(bad.requests()[0].contains("x-subscription-token: sk-hidden-key"));
    assert!(good.requests()[0].starts_with("GET /search?q=slipstreams&format=json"));
    let mut shown = ran.stdout + &ran.stderr;
    for arguments in [&["config", "show"][..], &["doctor"], &["agents"]] {
        let mut command = lango.command(arguments);
        shown += &finish(command.env("MY_BRAVE", "sk-hidden-key"), b"")
            .ok()
            .stdout;
    }
    assert!(!shown.contains("sk-hidden-key"), "{shown}");
    assert!(shown.contains("brave (brave), local (searxng)"), "{shown}");
    let is_stored =
        |(_, bytes): &(_, Vec<u8>)| bytes.windows(13).any(|part| part == b"sk-hidden-key");
    assert!(!lango.stored_files().iter().any(is_stored));
}

#[test]
fn without_a_search_service_there_is_no_search_tool_and_lango_says_how_to_get_one() {
    let lango = Lango::new();
    let agents = lango.run(&["agents"]).ok().stdout;
    assert!(
        agents.contains("search_fetch") && agents.contains("search_web needs a search service"),
        "{agents}"
    );
    let doctor = lango.run(&["doctor"]).ok().stdout;
    assert!(
        doctor.contains("– web search") && doctor.contains("search.providers."),
        "{doctor}"
    );
    let printed = lango.run(&["run", "search the web for slipstreams"]).ok();
    assert!(
        printed
            .stdout
            .contains("no search service is set up; set one under `search.providers`"),
        "{}",
        printed.stdout
    );
}

#[test]
fn a_misconfigured_search_service_is_refused_with_its_key() {
    for (config, names) in [
        (
            "[search.providers.mine]\nurl = 'http://127.0.0.1:1'\n",
            "search.providers.mine.kind",
        ),
        (
            "[search.providers.mine]\nkind = 'google'\n",
            "`searxng`, `brave`, `tavily` or `kagi`",
        ),
        (
            "[search.providers.mine]\nkind = 'searxng'\n",
            "search.providers.mine.url",
        ),
        (
            "[search.providers.kagi]\nurl = 'http://kagi.example'\n",
            "without encryption",
        ),
        (
            "[search.providers.kagi]\nurl = 'ftp://kagi.example'\n",
            "search.providers.kagi.url",
        ),
        ("[search]\norder = ['other']\n", "search.order"),
    ] {
        let lango = Lango::new();
        lango.home_file("lango.toml", config);
        lango.run(&["run", "hello"]).refused(3, &[names]);
    }
}

#[test]
fn an_untrusted_project_cannot_choose_a_search_service() {
    let site = Site::serve(200, "application/json", "{\"results\":[]}");
    let lango = Lango::new();
    lango.file(
        "lango.toml",
        format!(
            "search.order = ['theirs']\n[search.providers.theirs]\nkind = 'searxng'\nurl = '{}'\napiKeyEnv = 'HOME'\n",
            site.url("")
        ),
    );
    let ran = lango.run(&["run", "search the web for my secrets"]);
    let warning = ran
        .stderr
        .lines()
        .find(|line| line.starts_with("warning: ignored"));
    let warning = warning.unwrap_or_default();
    for key in [
        "search.order",
        "search.providers.theirs.kind",
        "search.providers.theirs.url",
        "search.providers.theirs.apiKeyEnv",
    ] {
        assert!(warning.contains(key), "{ran:#?}");
    }
    assert!(site.requests().is_empty());
}
