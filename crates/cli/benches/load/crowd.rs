//! Clients that speak to all copies at once.
//!
//! Each has a connection to every copy and goes from one to the next, and so do conversations: the turn after the next is
//! somebody else's, who has to take the session over.

use super::common::caller::{Caller, is_over, state};
use super::line::{Line, Wanted};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How many conversations a client goes round in.
const CONVERSATIONS: usize = 8;

/// How many messages are sent at once to each copy, which does not take more than 64 before some have ended.
const BURST: usize = 48;

/// How long a task may take that was acknowledged.
const PATIENCE: Duration = Duration::from_secs(60);

/// How fast it went.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    pub per_second: f64,
    pub p50: Duration,
    pub p99: Duration,
}

impl Pace {
    fn of(mut times: Vec<Duration>, elapsed: Duration) -> Self {
        times.sort_unstable();
        let at = |percent: usize| times[(times.len() - 1) * percent / 100];
        Self {
            per_second: times.len() as f64 / elapsed.as_secs_f64(),
            p50: at(50),
            p99: at(99),
        }
    }

    /// The better of two, in each respect.
    pub fn better(self, other: Self) -> Self {
        Self {
            per_second: self.per_second.max(other.per_second),
            p50: self.p50.min(other.p50),
            p99: self.p99.min(other.p99),
        }
    }
}

/// So many clients of these copies. The name makes their messages and conversations their own.
pub struct Crowd {
    clients: Vec<Client>,
    copies: usize,
    name: String,
}

struct Client {
    lines: Vec<Line>,
    number: usize,
}

impl Crowd {
    pub async fn gather(copies: &[Caller], clients: usize, name: &str) -> Self {
        let mut crowd = Vec::new();
        for number in 0..clients {
            let mut lines = Vec::new();
            for copy in copies {
                lines.push(Line::to(copy).await);
            }
            crowd.push(Client { lines, number });
        }
        Self {
            clients: crowd,
            copies: copies.len(),
            name: name.to_owned(),
        }
    }

    /// Each client says so many messages, the next when the last one has been answered. Gives the pace of whole turns.
    pub async fn turns(&mut self, each: usize) -> Pace {
        let began = Instant::now();
        let mut talks = Vec::new();
        for mut client in std::mem::take(&mut self.clients) {
            let name = self.name.clone();
            talks.push(tokio::spawn(async move {
                let times = client.talk(&name, each).await;
                (client, times)
            }));
        }
        let mut all = Vec::new();
        for talk in talks {
            let (client, times) = talk.await.unwrap();
            self.clients.push(client);
            all.extend(times);
        }
        Pace::of(all, began.elapsed())
    }

    /// In bursts, all clients send what the copies take at once, and wait for nothing but the acknowledgement; then all
    /// that was acknowledged has to come to its end. Gives the pace of acknowledgements.
    pub async fn acknowledgements(&mut self, bursts: usize) -> Pace {
        let (mut times, mut elapsed) = (Vec::new(), Duration::ZERO);
        for burst in 0..bursts {
            let began = Instant::now();
            let next = Arc::new(AtomicUsize::new(0));
            let count = BURST * self.copies;
            let mut sending = Vec::new();
            for mut client in std::mem::take(&mut self.clients) {
                let (next, name) = (Arc::clone(&next), self.name.clone());
                sending.push(tokio::spawn(async move {
                    let taken = client.send(&name, burst, &next, count).await;
                    (client, taken)
                }));
            }
            let mut tasks = Vec::new();
            for sent in sending {
                let (client, taken) = sent.await.unwrap();
                self.clients.push(client);
                tasks.extend(taken);
            }
            elapsed += began.elapsed();
            times.extend(tasks.iter().map(|(_, took)| *took));
            for (at, (task, _)) in tasks.iter().enumerate() {
                let line = &mut self.clients[0].lines[at % self.copies];
                see_to_its_end(line, task).await;
            }
        }
        Pace::of(times, elapsed)
    }
}

impl Client {
    async fn talk(&mut self, name: &str, messages: usize) -> Vec<Duration> {
        let mut times = Vec::with_capacity(messages);
        for at in 0..messages {
            let copy = (self.number + at + at / CONVERSATIONS) % self.lines.len();
            let conversation = format!("{name}-{}-{}", self.number, at % CONVERSATIONS);
            let message = format!("{name}-{}-{at}", self.number);
            let line = &mut self.lines[copy];
            let (task, took) = line.hello(&conversation, &message, Wanted::End).await;
            assert_eq!(state(&task), "COMPLETED", "{task}");
            times.push(took);
        }
        times
    }

    /// Sends what is left of a burst; gives the tasks.
    async fn send(
        &mut self,
        name: &str,
        burst: usize,
        next: &AtomicUsize,
        count: usize,
    ) -> Vec<(String, Duration)> {
        let mut taken = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return taken;
            }
            let copy = (number + burst) % self.lines.len();
            let conversation = format!("{name}-burst-{number}");
            let message = format!("{name}-burst-{burst}-{number}");
            let line = &mut self.lines[copy];
            let wanted = Wanted::Acknowledgement;
            let (task, took) = line.hello(&conversation, &message, wanted).await;
            taken.push((task["id"].as_str().unwrap().to_owned(), took));
        }
    }
}

async fn see_to_its_end(line: &mut Line, id: &str) {
    let give_up = Instant::now() + PATIENCE;
    loop {
        let task = line.task(id).await;
        if is_over(&task) {
            assert_eq!(state(&task), "COMPLETED", "{task}");
            return;
        }
        assert!(
            Instant::now() < give_up,
            "acknowledged and not done: {task}"
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
