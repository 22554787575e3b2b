//! Going on with turns that were cut off, in a process that stays: when it starts, and whenever another one has died. Whoever
//! dies lets go of its sessions, at once on one machine, when the lease lapses on many; from then on the turn is found here.
//!
//! Turns that are tasks of callers are left to the server, which tells the callers how they go.

use crate::exit::Failure;
use crate::house::ServedApp;
use crate::screen;
use lango_core::{SessionId, StoreError, TurnId, UnfinishedTurn, UserId};
use lango_engine::{RunnerError, Stop, TurnEnd};
use lango_server::House;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// How often it is looked for turns that were cut off.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// How many turns go on at once, and how many are read in one go.
const AT_ONCE: usize = 256;
const PAGE: usize = 64;

/// How many turns that are left alone are remembered, so that they are not replayed at every look.
const MOST_LEFT: usize = 10_000;

/// Goes on with what was cut off.
pub struct Recovery {
    house: Arc<ServedApp>,
    going_on: JoinSet<(TurnId, Fate)>,
    at_work: HashSet<TurnId>,
    parked: HashSet<TurnId>,
    elsewhere: HashSet<TurnId>,
    /// Those whose turns they are.
    users: Vec<UserId>,
}

/// What became of a turn.
enum Fate {
    /// It waited for a person all along.
    Parked,
    /// It was begun in another folder, and goes on there.
    Elsewhere,
    /// Anything else: if it has no outcome, it is found again.
    SeenTo,
}

impl Recovery {
    /// In this house.
    pub fn new(house: Arc<ServedApp>) -> Self {
        Self {
            users: house.users(),
            house,
            going_on: JoinSet::new(),
            at_work: HashSet::new(),
            parked: HashSet::new(),
            elsewhere: HashSet::new(),
        }
    }

    /// Looks again and again, for as long as it is polled. Dropping it leaves what goes on as it is, in the log.
    pub async fn run(mut self) {
        loop {
            if let Err(error) = self.look().await {
                self.house.trouble(&Failure::from(error));
            }
            let next_look = tokio::time::sleep(LOOK_EVERY);
            tokio::pin!(next_look);
            loop {
                tokio::select! {
                    Some(Ok((turn, fate))) = self.going_on.join_next() => self.note(turn, &fate),
                    () = &mut next_look => break,
                }
            }
        }
    }

    /// Begins to go on with every turn that was cut off and that nobody is at work on.
    async fn look(&mut self) -> Result<(), StoreError> {
        let mut after: Option<SessionId> = None;
        loop {
            let catalog = &self.house.sessions().catalog;
            let page = catalog.unfinished(after.as_ref(), PAGE).await?;
            let is_last = page.len() < PAGE;
            after = page.last().map(|turn| turn.session.clone());
            for turn in page {
                let is_parked = turn.is_waiting && self.parked.contains(&turn.turn);
                let is_ours =
                    self.users.contains(&turn.user) && !self.elsewhere.contains(&turn.turn);
                if is_parked || !is_ours || self.at_work.contains(&turn.turn) {
                    continue;
                }
                if self.at_work.len() >= AT_ONCE {
                    return Ok(());
                }
                self.at_work.insert(turn.turn.clone());
                self.going_on.spawn(go_on(Arc::clone(&self.house), turn));
            }
            if is_last {
                return Ok(());
            }
        }
    }

    fn note(&mut self, turn: TurnId, fate: &Fate) {
        self.at_work.remove(&turn);
        let left = match fate {
            Fate::Parked => &mut self.parked,
            Fate::Elsewhere => &mut self.elsewhere,
            Fate::SeenTo => return,
        };
        if left.len() >= MOST_LEFT {
            left.clear();
        }
        left.insert(turn);
    }
}

async fn go_on(house: Arc<ServedApp>, turn: UnfinishedTurn) -> (TurnId, Fate) {
    let fate = match resume(&house, &turn).await {
        Ok(fate) => fate,
        // Somebody else is at it, or was.
        Err(RunnerError::Store(
            StoreError::Busy { .. } | StoreError::Lost { .. } | StoreError::Conflict { .. },
        )) => Fate::SeenTo,
        // It is for whoever is there, or for its owner to close.
        Err(RunnerError::BegunElsewhere { .. }) => Fate::Elsewhere,
        // Agents may come.
        Err(RunnerError::AgentMissing { .. }) => Fate::SeenTo,
        Err(error) => {
            house.trouble(&error);
            Fate::SeenTo
        }
    };
    (turn.turn, fate)
}

async fn resume(house: &ServedApp, turn: &UnfinishedTurn) -> Result<Fate, RunnerError> {
    let tasks = &house.sessions().tasks;
    let task = tasks.get(&turn.user, turn.turn.as_str()).await?;
    if task.is_some_and(|task| task.is_running) {
        return Ok(Fate::SeenTo);
    }
    let opened = house.runner().open(turn.session.clone()).await?;
    if !opened.is_cut_off() {
        return Ok(Fate::Parked);
    }
    let (nobody, _) = mpsc::channel(1);
    let mut conversation = opened.impatient();
    let end = conversation.resume(&Stop::new(), &nobody).await?;
    let how = match &end {
        Some(TurnEnd::Finished(report)) => report.outcome.word(),
        Some(TurnEnd::Waiting(_)) => "waits for an answer: lango approvals",
        None => return Ok(Fate::SeenTo),
    };
    screen::say(&format!(
        "session {}: a turn that was cut off went on: {how}",
        turn.session
    ));
    house.after_turn(&turn.user, &turn.session).await;
    Ok(Fate::SeenTo)
}
