//! A simulation of three replicas over one store, driven by the bytes of a history.

mod actions;
mod checks;
mod effects;
mod situations;

pub(super) use situations::Situation;

use super::agent::{Agent, SimRun, Turn};
use super::mutant::{Bug, Mutant};
use crate::server::ServerLimits;
use crate::server::backend::StopReason;
use crate::server::render::View;
use crate::server::shared::Phase;
use crate::server::task::{
    CallerId, Effect, Input, ReportCaller, Request, Residency, RunEnd, Task, TaskAnswer,
    TaskDocument,
};
use a2a::{Message, Part, Role, TaskState};
use lango_core::Timestamp;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const REPLICAS: usize = 3;

/// Returns the limits of the simulated servers.
fn limits() -> ServerLimits {
    ServerLimits {
        max_attempts: 5,
        ..ServerLimits::default()
    }
}

/// The number of rounds without faults after which the task must have settled.
const ROUNDS: usize = 30;

/// A broken invariant, as text.
pub(super) type Violation = String;

pub(super) struct Simulation<'a> {
    bytes: &'a [u8],
    at: usize,
    bug: Option<Bug>,
    now: u64,
    /// Whether runs continue until they are stopped.
    is_endless: bool,
    has_faults: bool,
    stored: Option<TaskDocument>,
    /// Every state that has been stored.
    states: Vec<TaskState>,
    is_cancel_requested: bool,
    agent: Agent,
    replicas: Vec<Replica>,
    callers: BTreeMap<CallerId, Caller>,
    next_caller: u64,
    messages: u64,
    slots: i64,
    /// The situations that the history has reached.
    pub reached: BTreeSet<Situation>,
}

struct Replica {
    phase: Phase,
    loaded: Option<LoadedTask>,
    run: Option<SimRun>,
    effects: VecDeque<Effect>,
    has_slot: bool,
    /// The end of a turn to store in the same transaction as the next write.
    joint: Option<JointEnd>,
    /// Whether the store accepted the last write of this replica, and no run has started since.
    has_claim: bool,
}

impl Default for Replica {
    fn default() -> Self {
        Self {
            phase: Phase::Open,
            loaded: None,
            run: None,
            effects: VecDeque::new(),
            has_slot: false,
            joint: None,
            has_claim: false,
        }
    }
}

/// A task in the memory of a replica, with the data to replay it.
struct LoadedTask {
    machine: Mutant,
    initial: Task,
    journal: Vec<(Input, Timestamp, Vec<Effect>)>,
}

/// The end of a turn that a run stores in one transaction with the task.
#[derive(Clone)]
struct JointEnd {
    /// The run, which waits for the result of its report.
    caller: CallerId,
    message: String,
    turn: Turn,
}

struct Caller {
    replica: usize,
    request: Input,
    answer: Option<TaskAnswer>,
    /// Whether the caller no longer waits for an answer: its replica crashed, or the task was deleted.
    is_gone: bool,
}

impl<'a> Simulation<'a> {
    pub(super) fn new(bytes: &'a [u8], bug: Option<Bug>) -> Self {
        let mut simulation = Self {
            bytes,
            at: 0,
            bug,
            now: 1,
            is_endless: false,
            has_faults: true,
            stored: None,
            states: Vec::new(),
            is_cancel_requested: false,
            agent: Agent::default(),
            replicas: (0..REPLICAS).map(|_| Replica::default()).collect(),
            callers: BTreeMap::new(),
            next_caller: 0,
            messages: 0,
            slots: 0,
            reached: BTreeSet::new(),
        };
        simulation.is_endless = simulation.choose(3) == 0;
        simulation
    }

    /// Runs the history, then lets the task settle, and checks the invariants.
    pub(super) fn run(&mut self) -> Result<(), Violation> {
        self.open(0);
        if self.choose(4) != 0 {
            self.drain(0)?;
        }
        while self.at < self.bytes.len() {
            self.act()?;
        }
        self.has_faults = false;
        for replica in 0..REPLICAS {
            while self.replicas[replica].phase != Phase::Open {
                self.drain(replica)?;
                self.shut_down(replica)?;
            }
        }
        for round in 0..ROUNDS {
            if round == ROUNDS / 2 {
                self.check_cancelled()?;
                self.is_endless = false;
            }
            self.settle_round()?;
        }
        self.check_settled()?;
        for replica in 0..REPLICAS {
            self.unload(replica, true)?;
        }
        Ok(())
    }

    fn choose(&mut self, below: usize) -> usize {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        usize::from(byte) % below
    }

    /// Feeds an input into the task of a replica.
    fn feed(&mut self, replica: usize, input: Input) {
        self.now += 1;
        let now = Timestamp(self.now);
        let Some(loaded) = &mut self.replicas[replica].loaded else {
            return;
        };
        let effects = loaded.machine.accept(input.clone(), now);
        loaded.journal.push((input, now, effects.clone()));
        self.record_situations(replica);
        self.replicas[replica].effects.extend(effects);
    }

    /// Sends a request for the stored task through a replica, which loads the task if necessary.
    fn request(&mut self, replica: usize, request: Request) {
        let Some(stored) = self.stored.clone() else {
            return;
        };
        match &self.replicas[replica].loaded {
            None => self.load(replica, Task::restore(stored)),
            // The replica is opening another task.
            Some(loaded) if loaded.machine.task.document().task.id != stored.task.id => return,
            Some(_) => {}
        }
        self.send(replica, request);
    }

    fn send(&mut self, replica: usize, request: Request) {
        let caller = self.new_caller(replica, |caller| Input::Request { caller, request });
        let input = self.callers[&caller].request.clone();
        self.feed(replica, input);
    }

    fn new_caller(&mut self, replica: usize, request: impl FnOnce(CallerId) -> Input) -> CallerId {
        self.next_caller += 1;
        let id = CallerId(self.next_caller);
        let caller = Caller {
            replica,
            request: request(id),
            answer: None,
            is_gone: false,
        };
        self.callers.insert(id, caller);
        id
    }

    fn load(&mut self, replica: usize, task: Task) {
        self.replicas[replica].loaded = Some(LoadedTask {
            machine: Mutant::new(task.clone(), self.bug),
            initial: task,
            journal: Vec::new(),
        });
        let phase = self.replicas[replica].phase;
        if phase != Phase::Open {
            self.feed(replica, Input::Phase(phase));
        }
    }

    fn message(&mut self) -> Message {
        self.messages += 1;
        let mut message = Message::new(Role::User, vec![Part::text("go")]);
        message.message_id = format!("m{}", self.messages);
        message
    }

    /// Opens the task, or resends its first message through this replica.
    fn open(&mut self, replica: usize) {
        if self.replicas[replica].loaded.is_some() {
            return;
        }
        let message = match &self.stored {
            Some(stored) if stored.repetition(Timestamp(self.now)).is_some() => return,
            Some(stored) => stored.last_user_message().cloned(),
            None => None,
        };
        let mut message = message.unwrap_or_else(|| self.message());
        message.context_id = None;
        message.task_id = None;
        let id = format!("t{}-{replica}", self.now);
        let now = Timestamp(self.now);
        let document = TaskDocument::open(id, "c".into(), message.clone(), now, limits());
        self.load(replica, Task::open(document, "key".to_owned()));
        self.submit(replica, message);
    }

    fn submit(&mut self, replica: usize, message: Message) {
        let message = Box::new(message);
        let view = View::default();
        self.send(replica, Request::Submit { message, view });
    }

    /// Unloads a task, if it need not stay in memory, and replays its inputs. Only a retired task may leave requests
    /// unanswered; they are sent again.
    fn unload(&mut self, replica: usize, is_last: bool) -> Result<(), Violation> {
        if !self.replicas[replica].effects.is_empty() {
            return Ok(());
        }
        let Some(loaded) = &self.replicas[replica].loaded else {
            return Ok(());
        };
        let residency = loaded.machine.task.residency();
        if loaded.machine.task.is_awaiting() || residency == Residency::Needed && !is_last {
            return Ok(());
        }
        self.feed(replica, Input::Unload);
        while let Some(effect) = self.replicas[replica].effects.pop_front() {
            self.perform(replica, effect)?;
        }
        self.forget(replica)?;
        let mut open = Vec::new();
        for caller in self.callers.values_mut() {
            if caller.replica == replica && caller.answer.is_none() && !caller.is_gone {
                if residency != Residency::Over {
                    return Err(format!("a caller is never answered: {:?}", caller.request));
                }
                // If the record was deleted, the caller gets the answer that there is no task.
                caller.is_gone = self.stored.is_none();
                open.push(caller.request.clone());
            }
        }
        for request in open {
            let Some(stored) = self.stored.clone() else {
                break;
            };
            if self.replicas[replica].loaded.is_none() {
                self.load(replica, Task::restore(stored));
            }
            self.feed(replica, request);
        }
        Ok(())
    }

    /// Drops the memory of a replica. Replaying its inputs must produce the same task and the same effects.
    fn forget(&mut self, replica: usize) -> Result<(), Violation> {
        let Some(loaded) = self.replicas[replica].loaded.take() else {
            return Ok(());
        };
        let mut replayed = Mutant::new(loaded.initial, self.bug);
        for (input, now, effects) in loaded.journal {
            if replayed.accept(input, now) != effects {
                return Err("a replay decides differently".to_owned());
            }
        }
        if replayed != loaded.machine {
            return Err("a replay ends differently".to_owned());
        }
        Ok(())
    }

    /// Advances an orderly shutdown by one phase. After the last phase a new process replaces the old one.
    fn shut_down(&mut self, replica: usize) -> Result<(), Violation> {
        let next = match self.replicas[replica].phase {
            Phase::Open => Phase::Closing,
            Phase::Closing => Phase::Stopping,
            Phase::Stopping => {
                self.reached.insert(Situation::ShutDown);
                return self.crash(replica);
            }
        };
        self.replicas[replica].phase = next;
        self.feed(replica, Input::Phase(next));
        Ok(())
    }

    /// Ends the process of a replica and starts a new one.
    fn crash(&mut self, replica: usize) -> Result<(), Violation> {
        self.forget(replica)?;
        if self.replicas[replica].has_slot {
            self.slots -= 1;
        }
        if self.replicas[replica].run.is_some() {
            self.slots -= 1;
        }
        self.release_lease(replica);
        self.replicas[replica] = Replica::default();
        for caller in self.callers.values_mut() {
            caller.is_gone |= caller.replica == replica && caller.answer.is_none();
        }
        Ok(())
    }

    /// Deletes the record of the task, as retention does. Earlier answers to callers are no longer checked.
    fn delete(&mut self) {
        self.stored = None;
        self.is_cancel_requested = false;
        for caller in self.callers.values_mut() {
            caller.is_gone = true;
        }
    }

    fn release_lease(&mut self, replica: usize) {
        if self.agent.lease == Some(replica) {
            self.agent.lease = None;
        }
    }

    /// Performs everything that is due on every replica.
    fn settle_round(&mut self) -> Result<(), Violation> {
        for replica in 0..REPLICAS {
            self.drain(replica)?;
            for _ in 0..4 {
                self.step_run(replica);
                self.drain(replica)?;
            }
            self.scan(replica);
            self.drain(replica)?;
            let timers = match &self.replicas[replica].loaded {
                Some(loaded) => loaded.machine.task.timers(),
                None => Vec::new(),
            };
            for timer in timers {
                self.feed(replica, Input::Elapsed(timer));
                self.drain(replica)?;
            }
            self.unload(replica, false)?;
        }
        Ok(())
    }

    fn drain(&mut self, replica: usize) -> Result<(), Violation> {
        while let Some(effect) = self.replicas[replica].effects.pop_front() {
            self.perform(replica, effect)?;
        }
        Ok(())
    }
}
