//! A server with its model, and what they cost.

use super::client::{Load, LoadResult};
use super::common::caller::Caller;
use super::common::cpu;
use super::common::place::Place;
use super::common::random::Random;
use super::common::serving::{Said, Serving, free_port};
use lango_testkit::postgres::{Cluster, within};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const START: Duration = Duration::from_secs(60);

pub struct Setup {
    latency: Duration,
    /// Whether unsafe calls wait for an approval. Otherwise they are allowed.
    pub asks: bool,
    pub max_running: Option<usize>,
    pub max_streams: Option<usize>,
    pub cores: Option<[&'static str; 2]>,
}

pub struct Server {
    serving: Serving,
    caller: Caller,
    model: Child,
    client_cores: Option<&'static str>,
    said: Said,
    // Dropped last: the server works in it.
    place: Place,
}

impl Setup {
    pub fn new(latency: Duration) -> Self {
        Self {
            latency,
            asks: false,
            max_running: None,
            max_streams: None,
            cores: None,
        }
    }

    /// Counts the system calls of a server for each turn.
    pub fn count_system_calls(&self, load: Load) -> String {
        let server = Server::start(self, None);
        server.load(load, "warm");
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut strace = Command::new("strace")
            .args(["-f", "-c", "-o"])
            .arg(file.path())
            .args(["-p", &server.serving.id().to_string()])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_secs(2));
        server.load(load, "run");
        let id = rustix::process::Pid::from_child(&strace);
        rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
        strace.wait().unwrap();
        let turns = (load.clients * load.turns) as u64;
        let summary = fs::read_to_string(file.path()).unwrap();
        let mut calls: Vec<(u64, &str)> = summary.lines().filter_map(call_count).collect();
        calls.sort_unstable_by(|one, other| other.cmp(one));
        let total: u64 = calls
            .iter()
            .filter(|call| call.1 != "total")
            .map(|call| call.0)
            .sum();
        let most = calls.iter().filter(|call| call.1 != "total").take(8);
        let most: Vec<String> = most
            .map(|(count, name)| format!("{name} {:.1}", *count as f64 / turns as f64))
            .collect();
        format!("{:.1} ({})", total as f64 / turns as f64, most.join(", "))
    }
}

/// Reads the number of calls and the name from a line of strace's summary.
fn call_count(line: &str) -> Option<(u64, &str)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (count, name) = (fields.get(3)?, fields.last()?);
    Some((count.parse().ok()?, name))
}

impl Server {
    pub fn start(setup: &Setup, cluster: Option<&Cluster>) -> Self {
        let (server_cores, client_cores) = match setup.cores {
            Some([server, client]) => (Some(server), Some(client)),
            None => (None, None),
        };
        let latency = setup.latency.as_millis().to_string();
        let mut model = own_process(client_cores, &["model", &latency]);
        let mut url = String::new();
        BufReader::new(model.stdout.take().unwrap())
            .read_line(&mut url)
            .unwrap();
        let mut more = String::new();
        if let Some(cluster) = cluster {
            let address = within(&cluster.address(), "turns");
            more += &format!("[session]\nstore = '{address}'\n");
        }
        if setup.max_running.is_some() || setup.max_streams.is_some() {
            more += "[server]\n";
        }
        if let Some(running) = setup.max_running {
            more += &format!("maxRunningTasks = {running}\n");
        }
        if let Some(streams) = setup.max_streams {
            more += &format!("maxStreams = {streams}\n");
        }
        let url = format!("http://{}/v1", url.trim());
        let place = match setup.asks {
            true => Place::with_configuration(&format!(
                "[agent]\nmodel = 'mock/any'\n[providers.mock]\nkind = 'openai'\nbaseUrl = '{url}'\n{more}"
            )),
            false => Place::new(&url, &more),
        };
        let said = Said::default();
        let port = free_port(&mut Random::new(Random::seed()));
        let serving = Serving::start(&place, &place.home(), port, &said);
        assert!(serving.is_ready_within(START), "{:?}", said.last());
        if let Some(cores) = server_cores {
            // `-a` moves all threads.
            let id = serving.id().to_string();
            let moved = Command::new("taskset")
                .args(["-a", "-p", "-c", cores, &id])
                .output();
            assert!(moved.unwrap().status.success());
        }
        let caller = Caller::new(&place, &place.home(), port);
        Self {
            serving,
            caller,
            model,
            client_cores,
            said,
            place,
        }
    }

    /// Ends the server and starts it again on the same data.
    pub fn restart(&mut self) {
        self.serving.end(START);
        let port = self.caller.address().port();
        self.serving = Serving::start(&self.place, &self.place.home(), port, &self.said);
        assert!(
            self.serving.is_ready_within(START),
            "{:?}",
            self.said.last()
        );
    }

    /// Sends a load from a process of its own. Conversations have names of their own for each `name`.
    pub fn load(&self, load: Load, name: &str) -> LoadResult {
        let address = self.caller.address().to_string();
        let (clients, turns) = (load.clients.to_string(), load.turns.to_string());
        let token = self.caller.token();
        let arguments = ["client", &address, token, name, &clients, &turns];
        let output = own_process(self.client_cores, &arguments)
            .wait_with_output()
            .unwrap();
        assert!(output.status.success(), "{:?}", self.said.last());
        LoadResult::parse(String::from_utf8_lossy(&output.stdout).trim())
    }

    pub fn address(&self) -> String {
        self.caller.address().to_string()
    }

    /// Creates an access token of the API.
    pub fn api_token(&self) -> String {
        let mut command = self.place.lango_with_home(&self.place.home());
        let created = command
            .args(["tokens", "create", "bench"])
            .output()
            .unwrap();
        assert!(created.status.success(), "{created:?}");
        String::from_utf8(created.stdout).unwrap().trim().to_owned()
    }

    /// The CPU time that the server has spent.
    pub fn spent(&self) -> Duration {
        cpu::time_of(self.serving.id())
    }

    pub fn peak_megabytes(&self) -> u64 {
        let status = self.proc_file("status");
        let line = status
            .lines()
            .find(|line| line.starts_with("VmHWM"))
            .unwrap();
        let kilobytes = line.split_whitespace().nth(1).unwrap();
        kilobytes.parse::<u64>().unwrap() / 1024
    }

    /// Returns the server's resident memory in kilobytes, and its number of open file descriptors.
    pub fn resources(&self) -> (u64, usize) {
        let status = self.proc_file("status");
        let line = status.lines().find(|line| line.starts_with("VmRSS"));
        let kilobytes = line.and_then(|line| line.split_whitespace().nth(1));
        let descriptors = fs::read_dir(format!("/proc/{}/fd", self.serving.id()));
        (
            kilobytes.unwrap().parse().unwrap(),
            descriptors.unwrap().count(),
        )
    }

    fn proc_file(&self, name: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{name}", self.serving.id())).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.model.kill();
        let _ = self.model.wait();
    }
}

/// Starts this program in another role, on these cores.
pub fn own_process(cores: Option<&str>, arguments: &[&str]) -> Child {
    let program = std::env::current_exe().unwrap();
    let mut command = match cores {
        Some(cores) => {
            let mut command = Command::new("taskset");
            command.args(["-c", cores]).arg(program);
            command
        }
        None => Command::new(program),
    };
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}
