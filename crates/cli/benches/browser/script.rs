//! The model of the harness. It chooses each call by the task in the question and the results so far. At the end it
//! repeats the results, so that the harness can check them.

use crate::site::{PageKind, SILENT};
use lango_testkit::model::{call, say};
use lango_testkit::wire_server::{RecordedRequest, ScriptedAnswer, WireServer, message_text};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// How many characters of a result are repeated.
const REPEATED: usize = 600;

/// The task of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Task {
    /// Opens the page with this number and uses it according to its kind.
    Page(usize),
    /// Opens the page with this name.
    Open(String),
    /// Lists the tabs.
    Tabs,
    /// Opens the page that never answers.
    Hold,
}

impl Task {
    pub(crate) fn question(&self) -> String {
        match self {
            Self::Page(number) => format!("task: page {number}"),
            Self::Open(name) => format!("task: open {name}"),
            Self::Tabs => "task: tabs now".to_owned(),
            Self::Hold => "task: hold on".to_owned(),
        }
    }

    fn read(text: &str) -> Option<Self> {
        let (_, task) = text.rsplit_once("task: ")?;
        // lango may append more text to a question.
        let mut words = task.split_whitespace();
        let (word, rest) = (words.next()?, words.next()?);
        match word {
            "page" => Some(Self::Page(rest.parse().ok()?)),
            "open" => Some(Self::Open(rest.to_owned())),
            "tabs" => Some(Self::Tabs),
            "hold" => Some(Self::Hold),
            _ => None,
        }
    }
}

/// The model on loopback, with its own thread.
pub(crate) struct ScriptedModel {
    _runtime: Runtime,
    server: WireServer,
}

impl ScriptedModel {
    /// Starts the model. Its URLs are on this host, the test site.
    pub(crate) fn start(host: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let host = host.to_owned();
        let script = move |request: &RecordedRequest| reply(request, &host);
        let server = runtime
            .block_on(WireServer::start(script))
            .without_recording();
        Self {
            _runtime: runtime,
            server,
        }
    }

    pub(crate) fn url(&self) -> &str {
        self.server.url()
    }
}

fn reply(request: &RecordedRequest, host: &str) -> ScriptedAnswer {
    let messages = request.body["messages"].as_array();
    let messages = messages.map_or(&[][..], Vec::as_slice);
    let task = |message: &Value| {
        let is_user = message["role"] == "user";
        is_user.then(|| Task::read(&message_text(message)))?
    };
    let mut backwards = messages.iter().enumerate().rev();
    let found = backwards.find_map(|(at, message)| Some((at, task(message)?)));
    let Some((at, task)) = found else {
        return say("no task in the question").into();
    };
    let results = messages[at..].iter();
    let results: Vec<String> = results
        .filter(|message| message["role"] == "tool")
        .map(message_text)
        .collect();
    match next_call(&task, &results, host) {
        Some((tool, arguments)) => call(tool, arguments).into(),
        None => {
            let short = |text: &String| text.chars().take(REPEATED).collect::<String>();
            let results: Vec<String> = results.iter().map(short).collect();
            say(&results.join("\n---\n")).into()
        }
    }
}

fn next_call(task: &Task, results: &[String], host: &str) -> Option<(&'static str, Value)> {
    let navigate = |path: &str| {
        (
            "browser_navigate",
            json!({ "url": format!("http://{host}/{path}") }),
        )
    };
    match (task, results.len()) {
        (Task::Page(number), 0) => Some(navigate(&format!("page/{number}"))),
        (Task::Open(name), 0) => Some(navigate(&format!("name/{name}"))),
        (Task::Hold, 0) => Some(navigate(SILENT)),
        (Task::Tabs, 0) => Some(("browser_tabs", json!({ "action": "list" }))),
        (Task::Page(_), 1) => Some(("browser_observe", json!({}))),
        (Task::Page(number), done) => use_page(PageKind::of(*number), done - 2, results),
        _ => None,
    }
}

/// Returns the next call after the page was opened and observed.
fn use_page(kind: PageKind, done: usize, results: &[String]) -> Option<(&'static str, Value)> {
    let observed = &results[1];
    let act = |label: &str, rest: Value| {
        let mut step = json!({ "handle": handle_of(observed, label) });
        let fields = step.as_object_mut()?;
        fields.extend(rest.as_object()?.clone());
        Some(("browser_act", json!({ "steps": [step] })))
    };
    match (kind, done) {
        (PageKind::Popup, 0) => act("Popup", json!({ "action": "click" })),
        (PageKind::Popup, 1) => Some(("browser_tabs", json!({ "action": "list" }))),
        (PageKind::Popup, 2) => {
            let last = results
                .last()?
                .lines()
                .rfind(|line| line.starts_with('t'))?;
            let tab = last.split([' ', ':']).next()?;
            Some(("browser_tabs", json!({ "action": "close", "tab": tab })))
        }
        (PageKind::Download, 0) => act("Get the file", json!({ "action": "click" })),
        (PageKind::Dialog, 0) => act("Ask", json!({ "action": "click", "accept_dialog": true })),
        (PageKind::Form, 0) => act("Name", json!({ "action": "type", "text": "Ada" })),
        (PageKind::Form, 1) => Some(("browser_screenshot", json!({}))),
        (PageKind::Large | PageKind::Table, 0) => Some(("browser_extract", json!({}))),
        (PageKind::Frames, 0) => Some(("browser_screenshot", json!({ "full_page": true }))),
        (PageKind::Frames, 1) => Some(("browser_back", json!({}))),
        _ => None,
    }
}

/// Returns the handle on the line of an observation that contains a label, or the invalid handle `e0`.
fn handle_of(observation: &str, label: &str) -> String {
    let is_handle = |word: &&str| {
        let number = word.strip_prefix('e');
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let line = observation.lines().find(|line| line.contains(label));
    let mut words = line.unwrap_or_default().split_whitespace();
    words.find(is_handle).unwrap_or("e0").to_owned()
}
