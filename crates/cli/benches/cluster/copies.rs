//! The copies of the server: each with a home of its own, as each machine has, and all with one token.

use super::common::caller::Caller;
use super::common::place::Place;
use super::common::random::Random;
use super::common::serving::{Said, Serving, free_port};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

const COPIES: usize = 3;

/// How long a start may take on a busy machine.
const START: Duration = Duration::from_secs(60);

/// All copies.
pub struct Copies {
    said: Said,
    copies: Vec<Copy>,
    callers: Vec<Caller>,
}

struct Copy {
    home: PathBuf,
    port: u16,
    server: Serving,
}

impl Copies {
    pub fn start(place: &Place, random: &mut Random) -> Self {
        let said = Said::default();
        let homes = (1..COPIES).map(|number| place.home().with_file_name(format!("home-{number}")));
        let homes: Vec<PathBuf> = [place.home()].into_iter().chain(homes).collect();
        let mut copies: Vec<Copy> = Vec::new();
        let mut callers = Vec::new();
        for home in homes {
            if home != place.home() {
                fs::create_dir_all(&home).unwrap();
                for file in ["lango.toml", "server-token"] {
                    fs::copy(place.home().join(file), home.join(file)).unwrap();
                }
            }
            let port = free_port(random);
            let server = Serving::start(place, &home, port, &said);
            assert!(server.is_ready_within(START), "{:?}", said.last());
            callers.push(Caller::new(place, &home, port));
            copies.push(Copy { home, port, server });
        }
        Self {
            said,
            copies,
            callers,
        }
    }

    pub fn callers(&self) -> Vec<Caller> {
        self.callers.clone()
    }

    pub fn count(&self) -> usize {
        self.copies.len()
    }

    pub fn server(&mut self, number: usize) -> &mut Serving {
        &mut self.copies[number].server
    }

    /// `kill -9`.
    pub fn kill(&mut self, number: usize) {
        self.copies[number].server.kill();
    }

    /// Starts one again that was killed.
    pub fn start_again(&mut self, place: &Place, number: usize) {
        let copy = &mut self.copies[number];
        copy.server = Serving::start(place, &copy.home, copy.port, &self.said);
    }

    /// Whether one serves; asked once after each start.
    pub fn is_ready(&mut self, number: usize) -> bool {
        self.copies[number].server.is_ready_within(START)
    }

    /// Ends all of them in order and starts them again: what is told from then on is what is stored.
    pub fn restart_in_order(&mut self, place: &Place) {
        self.end_all();
        for number in 0..self.copies.len() {
            self.start_again(place, number);
            assert!(self.is_ready(number), "{:?}", self.said.last());
        }
    }

    /// Ends all, and gives what broke down over the whole run.
    pub fn end(mut self) -> Vec<String> {
        self.end_all();
        self.said.crashes()
    }

    fn end_all(&mut self) {
        for copy in &mut self.copies {
            copy.server.end(START);
        }
    }
}
