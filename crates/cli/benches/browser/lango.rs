//! The real binary with a browser, the scripted model, and the site as the only host that it may contact.

use crate::census::Census;
use crate::common::caller::{Caller, is_over, state};
use crate::common::place::Place;
use crate::common::serving::{Said, Serving};
use crate::script::{ScriptedModel, Task};
use crate::site::Site;
use serde_json::{Value, json};
use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long a turn may take.
const LONGEST_TURN: Duration = Duration::from_secs(60);
/// How soon the processes of a lango must be gone after it.
pub const GONE_WITHIN: Duration = Duration::from_secs(5);

/// What all parts of the harness share.
pub struct World {
    pub site: Site,
    model: ScriptedModel,
}

impl World {
    pub fn start() -> Self {
        let site = Site::start();
        let model = ScriptedModel::start(&site.host());
        Self { site, model }
    }

    /// A home and a workspace, with these lines of configuration besides.
    pub fn place(&self, more: &str) -> Place {
        let configuration = format!(
            "agent.multiAgent = false\nagent.model = 'mock/any'\nagent.maxModelCalls = 100\n{more}\
             [providers.mock]\nkind = 'openai'\nbaseUrl = '{}'\n\
             [egress]\nallow = ['{}']\ndeny = ['*']\n\
             [[approval.rules]]\naction = 'allow'\n",
            self.model.url(),
            self.site.host(),
        );
        Place::with_configuration(&configuration).with_browser()
    }
}

/// A `lango run` of one task.
pub struct Run {
    pub child: Child,
    pub census: Census,
}

impl Run {
    pub fn start(place: &Place, task: &Task) -> Self {
        let child = place
            .lango()
            .args(["run", &task.question()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let census = Census::new(child.id(), &place.home());
        Self { child, census }
    }

    /// Waits for its end, and takes down its processes meanwhile. The exit code, if it is not a signal.
    pub fn wait(&mut self) -> Option<i32> {
        let started = Instant::now();
        loop {
            self.census.take();
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(started.elapsed() < LONGEST_TURN, "`lango run` does not end");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A `lango serve` with a client.
pub struct Served {
    pub serving: Serving,
    pub census: Census,
    pub client: Client,
}

/// Gives tasks to a server, from any thread.
pub struct Client {
    said: Said,
    caller: Caller,
    messages: AtomicUsize,
}

impl Served {
    pub fn start(place: &Place) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let said = Said::default();
        let serving = Serving::start(place, &place.home(), port, &said);
        let is_ready = serving.is_ready_within(Duration::from_secs(20));
        assert!(is_ready, "{:?}", said.last());
        Self {
            census: Census::new(serving.id(), &place.home()),
            client: Client {
                caller: Caller::new(place, &place.home(), port),
                said,
                messages: AtomicUsize::new(0),
            },
            serving,
        }
    }

    /// Tells it to end, and waits until nothing is left of it.
    pub fn end(&mut self) -> Result<Duration, String> {
        self.census.take();
        self.serving.end(GONE_WITHIN);
        match self.client.said.crashes() {
            crashes if crashes.is_empty() => self.census.wait_for_none(GONE_WITHIN),
            crashes => Err(crashes.join("; ")),
        }
    }
}

impl Client {
    /// Gives a task in a conversation and waits for the answer.
    pub fn ask(&self, conversation: &str, task: &Task) -> Result<String, String> {
        let answered = self.send(conversation, task, false)?;
        let text = &answered["artifacts"][0]["parts"][0]["text"];
        match (state(&answered), text.as_str()) {
            ("COMPLETED", Some(text)) => Ok(text.to_owned()),
            _ => Err(format!("{task:?}: {answered}; {:?}", self.said.last())),
        }
    }

    /// Gives a task and does not wait. The id of the protocol's task.
    pub fn give(&self, conversation: &str, task: &Task) -> Result<String, String> {
        let given = self.send(conversation, task, true)?;
        let id = given["id"].as_str().map(str::to_owned);
        id.ok_or_else(|| format!("no task: {given}"))
    }

    fn send(&self, conversation: &str, task: &Task, at_once: bool) -> Result<Value, String> {
        let number = self.messages.fetch_add(1, Ordering::Relaxed);
        let message = json!({
            "message": {
                "messageId": format!("m-{number}"),
                "contextId": conversation,
                "role": "ROLE_USER",
                "parts": [{ "text": task.question() }],
            },
            "configuration": { "returnImmediately": at_once },
        });
        let sent = self.caller.rpc("SendMessage", message, LONGEST_TURN);
        let sent = sent.map_err(|error| format!("{task:?}: {error:?}; {:?}", self.said.last()))?;
        Ok(sent["task"].clone())
    }

    /// Cancels a task. How long it took until it was over.
    pub fn cancel(&self, id: &str) -> Result<Duration, String> {
        let started = Instant::now();
        let cancelled = self
            .caller
            .rpc("CancelTask", json!({ "id": id }), LONGEST_TURN);
        cancelled.map_err(|error| format!("{error:?}"))?;
        while !self.caller.task(id).is_some_and(|task| is_over(&task)) {
            if started.elapsed() > LONGEST_TURN {
                return Err("a task that was cancelled goes on".to_owned());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(started.elapsed())
    }
}
