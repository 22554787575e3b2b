//! Drivers that open URLs: with the guarded client in this process, with curl through the proxy, and with the real
//! binary.

use lango_net::{
    Budget, Check, Egress, EgressLimits, EgressRules, HeaderMap, Proxy, ProxyHandle, ProxyOptions,
    Url,
};
use serde_json::json;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::runtime::Runtime;

/// A way to open URLs.
pub(crate) trait Driver {
    /// Returns the name for the report.
    fn name(&self) -> String;

    /// Opens a URL and waits until that has succeeded or failed.
    fn open(&mut self, url: &str);

    /// Returns how many URLs to pass to [`Driver::open_batch`].
    fn batch(&self) -> usize {
        1
    }

    /// Opens several URLs and waits until all have succeeded or failed.
    fn open_batch(&mut self, urls: &[String]) {
        for url in urls {
            self.open(url);
        }
    }

    /// Returns whether one URL attacks many targets, so that every hit counts.
    fn counts_targets(&self) -> bool {
        false
    }

    /// Returns how long to wait for hits after a URL was opened.
    fn delay(&self) -> Duration {
        Duration::from_millis(2)
    }
}

/// Returns a guard without some of its checks, and with no limit on requests.
pub(crate) fn egress(without: &[Check]) -> Egress {
    let limits = EgressLimits {
        requests: u64::MAX,
        connect_time: Duration::from_millis(if without.is_empty() { 2000 } else { 200 }),
        request_time: Duration::from_secs(3),
        ..EgressLimits::default()
    };
    let egress = Egress::new(EgressRules::default(), limits);
    without
        .iter()
        .fold(egress, |egress, check| egress.without(*check))
}

/// The guarded client, in this process.
pub(crate) struct InProcess {
    egress: Egress,
    budget: Budget,
    runtime: Runtime,
}

impl InProcess {
    pub(crate) fn new(without: &[Check]) -> Self {
        let egress = egress(without);
        Self {
            budget: Budget::new(egress.limits()),
            egress,
            runtime: Runtime::new().unwrap(),
        }
    }
}

impl Driver for InProcess {
    fn name(&self) -> String {
        "client".to_owned()
    }

    fn open(&mut self, url: &str) {
        let Ok(url) = Url::parse(url) else { return };
        let headers = HeaderMap::new();
        let get = self.egress.client().get(&url, &headers, &self.budget);
        let _ = self.runtime.block_on(get);
    }
}

/// How curl uses the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Sends `http` requests with absolute URLs.
    Plain,
    /// Uses `CONNECT` for everything.
    Tunnel,
}

/// curl through the proxy.
pub(crate) struct ProxiedCurl {
    form: Form,
    address: String,
    is_listed: bool,
    _handle: ProxyHandle,
    _runtime: Runtime,
}

impl ProxiedCurl {
    pub(crate) fn new(without: &[Check], form: Form) -> Self {
        Self::start(without, form, None)
    }

    /// Starts a proxy that allows only a list of hosts.
    pub(crate) fn listed(without: &[Check]) -> Self {
        Self::start(
            without,
            Form::Plain,
            Some(vec!["public.example".parse().unwrap()]),
        )
    }

    fn start(
        without: &[Check],
        form: Form,
        only_hosts: Option<Vec<lango_net::HostPattern>>,
    ) -> Self {
        let egress = egress(without);
        let budget = Budget::new(egress.limits());
        let runtime = Runtime::new().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let is_listed = only_hosts.is_some();
        let entered = runtime.enter();
        let options = ProxyOptions {
            only_hosts: only_hosts.map(|hosts| lango_net::HostList {
                hosts,
                key: "tools.exec.network".to_owned(),
            }),
            budget,
            credentials: None,
        };
        let handle = Proxy::serve(listener, egress, options).unwrap();
        drop(entered);
        Self {
            form,
            address,
            is_listed,
            _handle: handle,
            _runtime: runtime,
        }
    }
}

impl Driver for ProxiedCurl {
    fn name(&self) -> String {
        match (self.form, self.is_listed) {
            (_, true) => "curl, listed hosts".to_owned(),
            (Form::Plain, _) => "curl, absolute URL".to_owned(),
            (Form::Tunnel, _) => "curl, tunnel".to_owned(),
        }
    }

    fn open(&mut self, url: &str) {
        let mut command = Command::new("curl");
        command
            .args([
                "--silent",
                "--location",
                "--max-time",
                "3",
                "--noproxy",
                "",
                "--globoff",
            ])
            .args(["--proxy", &format!("http://{}", self.address)])
            .args(["--output", "/dev/null"]);
        if self.form == Form::Tunnel {
            command.arg("--proxytunnel");
        }
        // Without `--url`, a URL that starts with a dash would be an option.
        command
            .args(["--url", url])
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        command
            .status()
            .unwrap_or_else(|error| panic!("cannot start `curl`: {error}"));
    }
}

/// The real binary: sends `lango serve` a message with a file at the URL.
pub(crate) struct ServeDriver {
    child: Child,
    address: String,
    token: String,
    count: usize,
    _folder: tempfile::TempDir,
}

impl ServeDriver {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (home, workspace) = (folder.path().join("home"), folder.path().join("workspace"));
        fs::create_dir_all(&workspace).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_lango"))
            .args(["serve", "--port", "0", "-c", "agent.model=offline/rules"])
            .current_dir(&workspace)
            .env_clear()
            .env("LANGO_HOME", &home)
            .env("HOME", &home)
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stderr(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut banner = String::new();
        while !banner.contains("ctrl-c stops") {
            assert_ne!(
                stderr.read_line(&mut banner).unwrap(),
                0,
                "lango exited: {banner}"
            );
        }
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        let url = banner
            .split_whitespace()
            .find(|word| word.starts_with("http://"));
        let token = fs::read_to_string(home.join("server-token")).unwrap();
        Self {
            child,
            address: url.unwrap().trim_start_matches("http://").to_owned(),
            token: token.trim().to_owned(),
            count: 0,
            _folder: folder,
        }
    }
}

impl Driver for ServeDriver {
    fn name(&self) -> String {
        "lango serve".to_owned()
    }

    fn open(&mut self, url: &str) {
        self.count += 1;
        let parts = json!([{ "text": "hello" }, { "url": url, "mediaType": "text/html" }]);
        let message = json!({ "messageId": format!("m-{}", self.count), "role": "ROLE_USER", "parts": parts });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": { "message": message } });
        let body = body.to_string();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let request = format!(
            "POST / HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\n\
             Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            self.token,
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
    }
}

impl Drop for ServeDriver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
