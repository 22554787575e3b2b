//! The model of the harness: what it calls follows from the task in the question and the results so far. At the end it
//! repeats the results, so that whoever asked can judge them.

use crate::site::{PageKind, SILENT};
use lango_testkit::model::{call, say};
use lango_testkit::wire_server::{Answer, Recorded, WireServer, text_of};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// How much of a result is repeated.
const REPEATED: usize = 600;

/// What a turn does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Task {
    /// Opens a page by its number and uses it as its kind asks for.
    Page(usize),
    /// Opens the page of this name.
    Open(String),
    /// Lists the tabs.
    Tabs,
    /// Opens a page that never comes.
    Hold,
}

impl Task {
    pub fn question(&self) -> String {
        match self {
            Self::Page(number) => format!("task: page {number}"),
            Self::Open(name) => format!("task: open {name}"),
            Self::Tabs => "task: tabs now".to_owned(),
            Self::Hold => "task: hold on".to_owned(),
        }
    }

    fn read(text: &str) -> Option<Self> {
        let (_, task) = text.rsplit_once("task: ")?;
        // More may follow that lango adds to a question.
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

/// The model on loopback, on a thread of its own.
pub struct ScriptedModel {
    _runtime: Runtime,
    server: WireServer,
}

impl ScriptedModel {
    /// With the host of the site.
    pub fn start(host: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let host = host.to_owned();
        let script = move |request: &Recorded| reply(request, &host);
        let server = runtime.block_on(WireServer::start(script)).forgetful();
        Self {
            _runtime: runtime,
            server,
        }
    }

    pub fn url(&self) -> &str {
        self.server.url()
    }
}

fn reply(request: &Recorded, host: &str) -> Answer {
    let messages = request.body["messages"].as_array();
    let messages = messages.map_or(&[][..], Vec::as_slice);
    let task = |message: &Value| {
        let is_user = message["role"] == "user";
        is_user.then(|| Task::read(&text_of(message)))?
    };
    let mut backwards = messages.iter().enumerate().rev();
    let found = backwards.find_map(|(at, message)| Some((at, task(message)?)));
    let Some((at, task)) = found else {
        return say("there is no task").into();
    };
    let results = messages[at..].iter();
    let results: Vec<String> = results
        .filter(|message| message["role"] == "tool")
        .map(text_of)
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

/// The calls after the page was opened and observed.
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

/// The handle on the line of an observation with a label; one that names nothing if there is none.
fn handle_of(observation: &str, label: &str) -> String {
    let is_handle = |word: &&str| {
        let number = word.strip_prefix('e');
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let line = observation.lines().find(|line| line.contains(label));
    let mut words = line.unwrap_or_default().split_whitespace();
    words.find(is_handle).unwrap_or("e0").to_owned()
}
