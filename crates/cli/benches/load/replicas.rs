//! Replicas of the server over one store, each with its own home as on separate machines.

use super::common::cpu;
use super::common::random::Random;
use super::common::rpc_client::RpcClient;
use super::common::server_process::{ServerLog, ServerProcess, free_port};
use super::common::test_env::TestEnv;
use lango_testkit::postgres::{Cluster, schema_address};
use std::fs;
use std::time::Duration;

/// How long a start may take on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// The store that the replicas share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Store {
    Sqlite,
    Postgres,
}

impl Store {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
        }
    }
}

/// Running replicas.
pub(crate) struct Replicas {
    pub store: Store,
    servers: Vec<ServerProcess>,
    rpc_clients: Vec<RpcClient>,
    server_log: ServerLog,
    // Dropped last, because the replicas use it.
    _test_env: TestEnv,
}

impl Replicas {
    /// Starts this many replicas with a new database.
    pub(crate) fn start(
        store: Store,
        count: usize,
        cluster: &Cluster,
        random: &mut Random,
    ) -> Self {
        let mut configuration = "[agent]\nmodel = 'offline/rules'\n".to_owned();
        if store == Store::Postgres {
            let address = schema_address(&cluster.address(), &format!("replicas_{count}"));
            configuration += &format!("[session]\nstore = '{address}'\n");
        }
        let test_env = TestEnv::with_configuration(&configuration);
        let mut replicas = Self {
            store,
            servers: Vec::new(),
            rpc_clients: Vec::new(),
            server_log: ServerLog::default(),
            _test_env: test_env,
        };
        (0..count).for_each(|number| replicas.add(number, random));
        replicas
    }

    /// Starts another replica, with its own home and the token of the first.
    fn add(&mut self, number: usize, random: &mut Random) {
        let test_env = &self._test_env;
        let home = match number {
            0 => test_env.home(),
            _ => test_env.home().with_file_name(format!("home-{number}")),
        };
        if number > 0 {
            fs::create_dir_all(&home).unwrap();
            for file in ["lango.toml", "server-token"] {
                fs::copy(test_env.home().join(file), home.join(file)).unwrap();
            }
        }
        let port = free_port(random);
        let server = ServerProcess::start(test_env, &home, port, &self.server_log);
        assert!(
            server.is_ready_within(START_TIMEOUT),
            "{:?}",
            self.server_log.last()
        );
        self.rpc_clients.push(RpcClient::new(test_env, &home, port));
        self.servers.push(server);
    }

    pub(crate) fn rpc_clients(&self) -> &[RpcClient] {
        &self.rpc_clients
    }

    /// Returns the CPU time of all replicas.
    pub(crate) fn cpu_time(&self) -> Duration {
        self.servers
            .iter()
            .map(|server| cpu::time_of(server.id()))
            .sum()
    }

    /// Shuts all replicas down.
    pub(crate) fn end(mut self) {
        for server in &mut self.servers {
            server.end(START_TIMEOUT);
        }
        assert_eq!(self.server_log.crashes(), [""; 0]);
    }
}
