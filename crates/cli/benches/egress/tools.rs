//! Drivers that open URLs as a model does: with `search_fetch`, with a command, and in the browser.

use crate::drivers::Driver;
use crate::turn::ToolCaller;
use crate::{cases, pages};
use serde_json::json;
use std::fs;
use std::time::Duration;

/// A pseudo-URL for the attack page in the workspace.
pub(crate) const WORKSPACE_PAGE: &str = "workspace:attack";
/// A pseudo-URL for a command that opens sockets itself.
pub(crate) const COMMAND_SOCKETS: &str = "command:sockets";

/// Number of URLs in a batch of tool calls.
const BATCH: usize = 20;

/// `search_fetch`.
pub(crate) struct Fetcher<C>(pub C);

impl<C: ToolCaller> Driver for Fetcher<C> {
    fn name(&self) -> String {
        "search_fetch".to_owned()
    }

    fn open(&mut self, url: &str) {
        self.open_batch(&[url.to_owned()]);
    }

    fn batch(&self) -> usize {
        BATCH
    }

    fn open_batch(&mut self, urls: &[String]) {
        // `fresh` bypasses the cache.
        let arguments = urls.iter().map(|url| json!({ "url": url, "fresh": true }));
        self.0.call_all("search_fetch", arguments.collect());
    }
}

/// How a command opens its URLs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    /// curl with the proxy of the environment.
    Curl,
    /// curl with a tunnel for everything.
    Tunnel,
    /// curl without the proxy, and the sockets of [`COMMAND_SOCKETS`].
    Direct,
    /// Python's urllib, with and without the proxy.
    Urllib,
}

/// `exec` with a program that opens a list of URLs.
pub(crate) struct CommandLine<C> {
    caller: C,
    program: Program,
    count: usize,
}

impl<C: ToolCaller> CommandLine<C> {
    pub(crate) fn new(caller: C, program: Program) -> Self {
        let workspace = caller.workspace();
        for (name, text) in [
            ("sockets.py", include_str!("attack_sockets.py")),
            ("open.py", include_str!("attack_urllib.py")),
        ] {
            fs::write(workspace.join(name), text).unwrap();
        }
        Self {
            caller,
            program,
            count: 0,
        }
    }

    fn exec(&mut self, command: &str) -> String {
        let result = self.caller.call("exec", json!({ "command": command }));
        assert!(result.contains("exit"), "the command did not run: {result}");
        result
    }

    fn open_sockets(&mut self) {
        let hosts: Vec<&str> = cases::targets().collect();
        let result = self.exec(&format!(
            "/usr/bin/python3 sockets.py {}; getent hosts command.leak.example",
            hosts.join(" ")
        ));
        assert!(
            !result.contains("ANSWERED"),
            "a socket was answered: {result}"
        );
    }
}

impl<C: ToolCaller> Driver for CommandLine<C> {
    fn name(&self) -> String {
        match self.program {
            Program::Curl => "exec, curl",
            Program::Tunnel => "exec, curl, tunnel",
            Program::Direct => "exec, curl without proxy",
            Program::Urllib => "exec, urllib",
        }
        .to_owned()
    }

    fn open(&mut self, url: &str) {
        self.open_batch(&[url.to_owned()]);
    }

    fn batch(&self) -> usize {
        150
    }

    fn open_batch(&mut self, urls: &[String]) {
        if urls.iter().any(|url| url == COMMAND_SOCKETS) {
            self.open_sockets();
        }
        // A new file name each time, because a turn that repeats the same call is stopped.
        self.count += 1;
        let list = format!("urls-{}", self.count);
        let path = self.caller.workspace().join(&list);
        fs::write(path, urls.join("\0")).unwrap();
        let curl = |flags: &str| {
            format!(
                "xargs -0 -P 8 -I URL curl --silent --location --max-time 3 --globoff --output /dev/null {flags} --url URL < {list}"
            )
        };
        let line = match self.program {
            Program::Curl => curl(""),
            Program::Tunnel => curl("--proxytunnel"),
            Program::Direct => curl("--noproxy '*'"),
            Program::Urllib => format!("/usr/bin/python3 open.py {list}"),
        };
        self.exec(&format!("{line}; true"));
    }

    fn delay(&self) -> Duration {
        Duration::from_millis(50)
    }
}

/// Attack pages per browser. Each page opens windows, and the number of tabs is limited.
const PAGES_PER_BROWSER: usize = 3;

/// `browser_navigate`.
pub(crate) struct Navigator<C> {
    caller: C,
    is_for_pages: bool,
    count: usize,
}

impl<C: ToolCaller> Navigator<C> {
    pub(crate) fn new(caller: C) -> Self {
        let workspace = caller.workspace();
        let hosts = format!("{},{}", crate::test_network::PUBLIC, cases::one_host(false));
        for (name, text) in pages::attack_files(&hosts) {
            fs::write(workspace.join(name), text).unwrap();
        }
        Self {
            caller,
            is_for_pages: false,
            count: 0,
        }
    }

    /// Checks that an attack page was loaded, and presses keys, at which the page opens its windows.
    fn act(&mut self, url: &str, result: &str) {
        // If the page did not load, nothing attacks and the test proves nothing.
        let is_loaded =
            result.contains("Opened") || result.contains("a request of the page failed");
        assert!(is_loaded, "{url}: {result}");
        self.count += 1;
        // Another key each time, because a turn that repeats the same call is stopped.
        let key = char::from(b'a' + u8::try_from(self.count % 26).unwrap());
        let press = json!({ "action": "press", "text": key.to_string() });
        let steps = json!({ "steps": [press, press] });
        let result = self.caller.call("browser_act", steps);
        assert!(result.contains("press"), "{url}: {result}");
    }

    /// Opens attack pages one at a time and waits, because their attempts continue after the call.
    pub(crate) fn for_pages(mut self) -> Self {
        self.is_for_pages = true;
        self
    }
}

impl<C: ToolCaller> Driver for Navigator<C> {
    fn name(&self) -> String {
        if self.is_for_pages {
            "browser, hostile pages".to_owned()
        } else {
            "browser_navigate".to_owned()
        }
    }

    fn open(&mut self, url: &str) {
        self.open_batch(&[url.to_owned()]);
    }

    fn batch(&self) -> usize {
        if self.is_for_pages { 1 } else { BATCH }
    }

    fn open_batch(&mut self, urls: &[String]) {
        if self.is_for_pages && self.count.is_multiple_of(PAGES_PER_BROWSER) && self.count > 0 {
            self.caller.call("browser_close", json!({}));
        }
        let arguments = urls.iter().map(|url| {
            if url == WORKSPACE_PAGE {
                json!({ "path": pages::ATTACK_FILE })
            } else {
                json!({ "url": url })
            }
        });
        let results = self
            .caller
            .call_all("browser_navigate", arguments.collect());
        if self.is_for_pages {
            for (url, result) in urls.iter().zip(results) {
                self.act(url, &result);
            }
        }
    }

    fn counts_targets(&self) -> bool {
        self.is_for_pages
    }

    fn delay(&self) -> Duration {
        Duration::from_millis(if self.is_for_pages { 3500 } else { 20 })
    }
}
