//! The random actions of a history.

use super::*;
use crate::server::{ArtifactChunk, Report};

impl Simulation<'_> {
    /// Performs one random action.
    pub(super) fn act(&mut self) -> Result<(), Violation> {
        let replica = [0, 0, 0, 1, 1, 2][self.choose(6)];
        match self.choose(24) {
            0 => self.open(replica),
            1 | 2 => self.follow_up(replica),
            3 => self.request(replica, Request::Watch(View::default())),
            4 => self.request(replica, Request::Cancel),
            5 => self.scan(replica),
            6..=8 => self.perform_next(replica)?,
            9 | 19 => self.drain(replica)?,
            10..=13 | 20..=22 => self.step_run(replica),
            14 => self.elapse(replica),
            15 => self.crash(replica)?,
            16 => self.lose_lease(replica),
            17 => self.feed(replica, Input::StoreChanged),
            18 => {
                let any = self.choose(2) == 0;
                self.feed(replica, Input::Subscribers { any });
            }
            _ => match self.choose(8) {
                5 | 6 => self.shut_down(replica)?,
                7 => self.delete(),
                _ => self.unload(replica, false)?,
            },
        }
        Ok(())
    }

    /// Sends a follow-up message, half of the time through the replica that has a run.
    fn follow_up(&mut self, replica: usize) {
        if self.stored.is_none() {
            return;
        }
        let mut replica = replica;
        if self.choose(2) == 0 {
            let running = self.replicas.iter().position(|it| it.run.is_some());
            replica = running.unwrap_or(replica);
        }
        let message = Box::new(self.message());
        let view = View::default();
        self.request(replica, Request::Submit { message, view });
    }

    fn perform_next(&mut self, replica: usize) -> Result<(), Violation> {
        match self.replicas[replica].effects.pop_front() {
            Some(effect) => self.perform(replica, effect),
            None => Ok(()),
        }
    }

    /// Scans like the recovery loop and the cancel watch.
    pub(super) fn scan(&mut self, replica: usize) {
        let is_running = self.stored.as_ref().is_some_and(|it| !it.is_settled());
        if !is_running {
            return;
        }
        if self.replicas[replica].run.is_some() {
            if self.is_cancel_requested {
                self.feed(replica, Input::CancelRequested);
            }
        } else if self.agent.lease.is_none() {
            let is_cancel_requested = self.is_cancel_requested;
            let request = Request::Recover {
                is_cancel_requested,
            };
            self.request(replica, request);
        }
    }

    fn elapse(&mut self, replica: usize) {
        let Some(loaded) = &self.replicas[replica].loaded else {
            return;
        };
        let timers = loaded.machine.task.timers();
        if !timers.is_empty() {
            let timer = timers[self.choose(timers.len())];
            self.feed(replica, Input::Elapsed(timer));
        }
    }

    /// Takes the lease from a run, which then defers its task.
    fn lose_lease(&mut self, replica: usize) {
        let has_lease = self.agent.lease == Some(replica);
        if has_lease && let Some(run) = &self.replicas[replica].run {
            let run = run.id;
            self.end_run(replica, run, RunEnd::Deferred);
        }
    }

    pub(super) fn end_run(&mut self, replica: usize, run: crate::server::task::RunId, end: RunEnd) {
        self.release_lease(replica);
        self.replicas[replica].run = None;
        self.slots -= 1;
        self.feed(replica, Input::RunEnded { run, end });
    }

    /// Performs the next step of a replica's run.
    pub(super) fn step_run(&mut self, replica: usize) {
        let Some(run) = self.replicas[replica].run.clone() else {
            return;
        };
        if run.is_blocked {
            return;
        }
        if run.has_failed {
            self.end_run(replica, run.id, RunEnd::Deferred);
            return;
        }
        if let Some(mut ending) = run.ending.clone() {
            if ending.is_empty() {
                // A run may clean up before it returns, and messages can arrive in the meantime.
                let end = match self.choose(if self.has_faults { 6 } else { 1 }) {
                    0 => RunEnd::Returned,
                    1 => RunEnd::Panicked,
                    _ => return,
                };
                self.end_run(replica, run.id, end);
            } else {
                let report = ending.remove(0);
                self.set_ending(replica, ending);
                self.report(replica, report);
            }
            return;
        }
        if !run.has_lease {
            match run.stop {
                Some(StopReason::Shutdown) => self.end_run(replica, run.id, RunEnd::Deferred),
                Some(StopReason::Cancelled) if self.agent.turn(&run.message).is_none() => {
                    self.agent.log.insert(run.message, Turn::Cancelled);
                    let ending = self.agent.ending(Some(Turn::Cancelled));
                    self.set_ending(replica, ending);
                }
                _ => self.take_lease(replica, &run),
            }
            return;
        }
        match (run.stop, self.choose(if self.has_faults { 8 } else { 1 })) {
            (Some(StopReason::Shutdown), _) => self.end_run(replica, run.id, RunEnd::Deferred),
            (Some(StopReason::Cancelled), _) => self.finish(replica, &run, Turn::Cancelled),
            (None, 0) if !self.is_endless && self.choose(2) == 0 => {
                self.finish_jointly(replica, &run, Turn::Completed);
            }
            (None, 0) if !self.is_endless => self.finish(replica, &run, Turn::Completed),
            (None, 1 | 2) if !self.is_endless => self.finish(replica, &run, Turn::Waiting),
            (None, 3) => self.report(replica, Report::Working("on it".into())),
            (None, 4) => self.report(replica, Report::Artifact(ArtifactChunk::text("a", "x"))),
            (None, 5) => self.end_run(replica, run.id, RunEnd::Panicked),
            (None, 6) => self.end_run(replica, run.id, RunEnd::Returned),
            (None, _) => {}
        }
    }

    fn take_lease(&mut self, replica: usize, run: &SimRun) {
        if self.agent.lease.is_some() {
            return;
        }
        self.agent.lease = Some(replica);
        let turn = self.agent.turn(&run.message);
        if let Some(active) = &mut self.replicas[replica].run {
            active.has_lease = true;
        }
        match turn {
            None => {
                self.agent.log.insert(run.message.clone(), Turn::Started);
            }
            Some(Turn::Started) => {}
            // The log has the end of the turn.
            ended => {
                let ending = self.agent.ending(ended);
                self.set_ending(replica, ending);
            }
        }
    }

    fn finish(&mut self, replica: usize, run: &SimRun, turn: Turn) {
        self.agent.log.insert(run.message.clone(), turn);
        let ending = self.agent.ending(Some(turn));
        self.set_ending(replica, ending);
    }

    /// Ends the turn in the same transaction that stores the task.
    fn finish_jointly(&mut self, replica: usize, run: &SimRun, turn: Turn) {
        self.replicas[replica].joint = Some(JointEnd {
            caller: CallerId(self.next_caller + 1),
            message: run.message.clone(),
            turn,
        });
        let report = self.agent.ending(Some(turn)).remove(0);
        self.send_report(replica, report, true);
    }

    pub(super) fn set_ending(&mut self, replica: usize, ending: Vec<Report>) {
        if let Some(run) = &mut self.replicas[replica].run {
            run.ending = Some(ending);
        }
    }

    fn report(&mut self, replica: usize, report: Report) {
        self.send_report(replica, report, false);
    }

    fn send_report(&mut self, replica: usize, report: Report, is_joint: bool) {
        let Some(run) = &mut self.replicas[replica].run else {
            return;
        };
        run.is_blocked = true;
        let run = run.id;
        let caller = self.new_caller(replica, |id| Input::Reported {
            caller: ReportCaller { id, is_joint },
            run,
            report,
        });
        let input = self.callers[&caller].request.clone();
        self.feed(replica, input);
    }
}
