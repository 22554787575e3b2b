//! Copies of the server over one store, started as on machines of their own, and what they have cost.

use super::common::caller::Caller;
use super::common::cpu;
use super::common::place::Place;
use super::common::random::Random;
use super::common::serving::{Said, Serving, free_port};
use lango_testkit::postgres::{Cluster, within};
use std::fs;
use std::time::Duration;

/// How long a start may take on a busy machine.
const START: Duration = Duration::from_secs(60);

/// Where the copies keep everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Store {
    Sqlite,
    Postgres,
}

impl Store {
    pub fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
        }
    }
}

/// Copies that run.
pub struct World {
    pub store: Store,
    servers: Vec<Serving>,
    callers: Vec<Caller>,
    said: Said,
    // Goes last: the copies work in it.
    _place: Place,
}

impl World {
    /// Starts so many copies, with a database of their own.
    pub fn start(store: Store, copies: usize, cluster: &Cluster, random: &mut Random) -> Self {
        let mut configuration = "[agent]\nmodel = 'offline/rules'\n".to_owned();
        if store == Store::Postgres {
            let address = within(&cluster.address(), &format!("copies_{copies}"));
            configuration += &format!("[session]\nstore = '{address}'\n");
        }
        let place = Place::with_configuration(&configuration);
        let mut world = Self {
            store,
            servers: Vec::new(),
            callers: Vec::new(),
            said: Said::default(),
            _place: place,
        };
        (0..copies).for_each(|number| world.add(number, random));
        world
    }

    /// Starts one more, with a home of its own and the token of the first.
    fn add(&mut self, number: usize, random: &mut Random) {
        let place = &self._place;
        let home = match number {
            0 => place.home(),
            _ => place.home().with_file_name(format!("home-{number}")),
        };
        if number > 0 {
            fs::create_dir_all(&home).unwrap();
            for file in ["lango.toml", "server-token"] {
                fs::copy(place.home().join(file), home.join(file)).unwrap();
            }
        }
        let port = free_port(random);
        let server = Serving::start(place, &home, port, &self.said);
        assert!(server.is_ready_within(START), "{:?}", self.said.last());
        self.callers.push(Caller::new(place, &home, port));
        self.servers.push(server);
    }

    pub fn callers(&self) -> &[Caller] {
        &self.callers
    }

    /// The CPU time that all copies have spent.
    pub fn spent(&self) -> Duration {
        self.servers
            .iter()
            .map(|server| cpu::time_of(server.id()))
            .sum()
    }

    /// Ends all copies in order.
    pub fn end(mut self) {
        for server in &mut self.servers {
            server.end(START);
        }
        assert_eq!(self.said.crashes(), [""; 0]);
    }
}
