//! The replicas of the server. Each has its own home, as on a separate machine; all have the same token.

use super::common::random::Random;
use super::common::rpc_client::RpcClient;
use super::common::server_process::{ServerLog, ServerProcess, free_port};
use super::common::test_env::TestEnv;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

const REPLICAS: usize = 3;

/// How long a start may take on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Replicas {
    server_log: ServerLog,
    replicas: Vec<Replica>,
    rpc_clients: Vec<RpcClient>,
}

struct Replica {
    home: PathBuf,
    port: u16,
    server: ServerProcess,
}

impl Replicas {
    pub(crate) fn start(test_env: &TestEnv, random: &mut Random) -> Self {
        let server_log = ServerLog::default();
        let homes =
            (1..REPLICAS).map(|number| test_env.home().with_file_name(format!("home-{number}")));
        let homes: Vec<PathBuf> = [test_env.home()].into_iter().chain(homes).collect();
        let mut replicas: Vec<Replica> = Vec::new();
        let mut rpc_clients = Vec::new();
        for home in homes {
            if home != test_env.home() {
                fs::create_dir_all(&home).unwrap();
                for file in ["lango.toml", "server-token"] {
                    fs::copy(test_env.home().join(file), home.join(file)).unwrap();
                }
            }
            let port = free_port(random);
            let server = ServerProcess::start(test_env, &home, port, &server_log);
            assert!(
                server.is_ready_within(START_TIMEOUT),
                "{:?}",
                server_log.last()
            );
            rpc_clients.push(RpcClient::new(test_env, &home, port));
            replicas.push(Replica { home, port, server });
        }
        Self {
            server_log,
            replicas,
            rpc_clients,
        }
    }

    pub(crate) fn rpc_clients(&self) -> Vec<RpcClient> {
        self.rpc_clients.clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.replicas.len()
    }

    pub(crate) fn server(&mut self, number: usize) -> &mut ServerProcess {
        &mut self.replicas[number].server
    }

    /// Sends SIGKILL to a replica.
    pub(crate) fn kill(&mut self, number: usize) {
        self.replicas[number].server.kill();
    }

    /// Starts a killed replica again, without waiting until it is ready.
    pub(crate) fn start_again(&mut self, test_env: &TestEnv, number: usize) {
        let replica = &mut self.replicas[number];
        replica.server =
            ServerProcess::start(test_env, &replica.home, replica.port, &self.server_log);
    }

    /// Waits until a replica is ready. Must be called once after each start.
    pub(crate) fn is_ready(&mut self, number: usize) -> bool {
        self.replicas[number].server.is_ready_within(START_TIMEOUT)
    }

    /// Shuts all replicas down and starts them again, so that their answers come from the store and not from memory.
    pub(crate) fn restart_all(&mut self, test_env: &TestEnv) {
        self.end_all();
        for number in 0..self.replicas.len() {
            self.start_again(test_env, number);
            assert!(self.is_ready(number), "{:?}", self.server_log.last());
        }
    }

    /// Shuts all replicas down and returns the crashes of the whole run.
    pub(crate) fn end(mut self) -> Vec<String> {
        self.end_all();
        self.server_log.crashes()
    }

    fn end_all(&mut self) {
        for replica in &mut self.replicas {
            replica.server.end(START_TIMEOUT);
        }
    }
}
