//! A server with its model, and the resources that it uses.

use super::client::{Load, LoadResult};
use super::common::cpu;
use super::common::random::Random;
use super::common::rpc_client::RpcClient;
use super::common::server_process::{ServerLog, ServerProcess, free_port};
use super::common::test_env::TestEnv;
use lango_testkit::postgres::{Cluster, schema_address};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const START_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Setup {
    latency: Duration,
    /// Unsafe calls wait for an approval. Otherwise they are allowed.
    pub needs_approval: bool,
    pub max_running: Option<usize>,
    pub max_streams: Option<usize>,
    pub cores: Option<[&'static str; 2]>,
}

pub(crate) struct Server {
    process: ServerProcess,
    rpc_client: RpcClient,
    model: Child,
    client_cores: Option<&'static str>,
    server_log: ServerLog,
    // Dropped last, because the server uses it.
    test_env: TestEnv,
}

impl Setup {
    pub(crate) fn new(latency: Duration) -> Self {
        Self {
            latency,
            needs_approval: false,
            max_running: None,
            max_streams: None,
            cores: None,
        }
    }

    /// Counts the system calls of a server per turn with `strace`.
    pub(crate) fn count_system_calls(&self, load: Load) -> String {
        let server = Server::start(self, None);
        server.load(load, "warm");
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut strace = Command::new("strace")
            .args(["-f", "-c", "-o"])
            .arg(file.path())
            .args(["-p", &server.process.id().to_string()])
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
    pub(crate) fn start(setup: &Setup, cluster: Option<&Cluster>) -> Self {
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
            let address = schema_address(&cluster.address(), "turns");
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
        let test_env = if setup.needs_approval {
            TestEnv::with_configuration(&format!(
                "[agent]\nmodel = 'mock/any'\n[providers.mock]\nkind = 'openai'\nbaseUrl = '{url}'\n{more}"
            ))
        } else {
            TestEnv::new(&url, &more)
        };
        let server_log = ServerLog::default();
        let port = free_port(&mut Random::new(Random::seed()));
        let process = ServerProcess::start(&test_env, &test_env.home(), port, &server_log);
        assert!(
            process.is_ready_within(START_TIMEOUT),
            "{:?}",
            server_log.last()
        );
        if let Some(cores) = server_cores {
            // `-a` moves all threads.
            let id = process.id().to_string();
            let moved = Command::new("taskset")
                .args(["-a", "-p", "-c", cores, &id])
                .output();
            assert!(moved.unwrap().status.success());
        }
        let rpc_client = RpcClient::new(&test_env, &test_env.home(), port);
        Self {
            process,
            rpc_client,
            model,
            client_cores,
            server_log,
            test_env,
        }
    }

    /// Shuts the server down and starts it again on the same data.
    pub(crate) fn restart(&mut self) {
        self.process.end(START_TIMEOUT);
        let port = self.rpc_client.address().port();
        self.process = ServerProcess::start(
            &self.test_env,
            &self.test_env.home(),
            port,
            &self.server_log,
        );
        assert!(
            self.process.is_ready_within(START_TIMEOUT),
            "{:?}",
            self.server_log.last()
        );
    }

    /// Sends a load from a separate process. `name` is the prefix of its conversations.
    pub(crate) fn load(&self, load: Load, name: &str) -> LoadResult {
        let address = self.rpc_client.address().to_string();
        let (clients, turns) = (load.clients.to_string(), load.turns.to_string());
        let token = self.rpc_client.token();
        let arguments = ["client", &address, token, name, &clients, &turns];
        let output = own_process(self.client_cores, &arguments)
            .wait_with_output()
            .unwrap();
        assert!(output.status.success(), "{:?}", self.server_log.last());
        LoadResult::parse(String::from_utf8_lossy(&output.stdout).trim())
    }

    pub(crate) fn address(&self) -> String {
        self.rpc_client.address().to_string()
    }

    /// Creates an access token for the API.
    pub(crate) fn api_token(&self) -> String {
        let mut command = self.test_env.lango_with_home(&self.test_env.home());
        let created = command
            .args(["tokens", "create", "bench"])
            .output()
            .unwrap();
        assert!(created.status.success(), "{created:?}");
        String::from_utf8(created.stdout).unwrap().trim().to_owned()
    }

    /// Returns the CPU time of the server.
    pub(crate) fn cpu_time(&self) -> Duration {
        cpu::time_of(self.process.id())
    }

    pub(crate) fn peak_megabytes(&self) -> u64 {
        let status = self.proc_file("status");
        let line = status
            .lines()
            .find(|line| line.starts_with("VmHWM"))
            .unwrap();
        let kilobytes = line.split_whitespace().nth(1).unwrap();
        kilobytes.parse::<u64>().unwrap() / 1024
    }

    /// Returns the server's resident memory in kilobytes, and its number of open file descriptors.
    pub(crate) fn resources(&self) -> (u64, usize) {
        let status = self.proc_file("status");
        let line = status.lines().find(|line| line.starts_with("VmRSS"));
        let kilobytes = line.and_then(|line| line.split_whitespace().nth(1));
        let descriptors = fs::read_dir(format!("/proc/{}/fd", self.process.id()));
        (
            kilobytes.unwrap().parse().unwrap(),
            descriptors.unwrap().count(),
        )
    }

    fn proc_file(&self, name: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{name}", self.process.id())).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.model.kill();
        let _ = self.model.wait();
    }
}

/// Starts this program in another role, limited to these cores.
pub(crate) fn own_process(cores: Option<&str>, arguments: &[&str]) -> Child {
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
