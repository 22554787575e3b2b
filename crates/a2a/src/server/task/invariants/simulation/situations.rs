//! Situations that the randomly generated test histories must cover.

use super::Simulation;
use crate::server::task::state::{Await, Claim, State, Stop};

/// A situation that random histories must reach; otherwise the test would prove little.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Situation {
    Queued,
    RunStopping,
    CancelPending,
    StatusUnstored,
    WriteConflict,
    FollowUpLost,
    Resumed,
    Orphaned,
    TwoReplicas,
    ShutDown,
    JointWrite,
    FailedJointWrite,
}

impl Situation {
    pub(crate) const ALL: [Self; 12] = [
        Self::Queued,
        Self::RunStopping,
        Self::CancelPending,
        Self::StatusUnstored,
        Self::WriteConflict,
        Self::FollowUpLost,
        Self::Resumed,
        Self::Orphaned,
        Self::TwoReplicas,
        Self::ShutDown,
        Self::JointWrite,
        Self::FailedJointWrite,
    ];
}

impl Simulation<'_> {
    /// Records the situations that a replica is in.
    pub(super) fn record_situations(&mut self, replica: usize) {
        let Some(loaded) = &self.replicas[replica].loaded else {
            return;
        };
        let task = &loaded.machine.task;
        let (is_queued, is_stopping, is_unstored, is_pending) = match &task.state {
            State::Running(run) => (
                run.queued.is_some(),
                run.stop != Stop::NotRequested,
                run.unstored.is_some(),
                false,
            ),
            State::Idle(idle) => (false, false, idle.is_unstored(), idle.cancel.is_some()),
            _ => (false, false, false, false),
        };
        let runs = self.replicas.iter().filter(|it| it.run.is_some()).count();
        let situations = [
            (Situation::Queued, is_queued),
            (Situation::RunStopping, is_stopping),
            (Situation::StatusUnstored, is_unstored),
            (Situation::CancelPending, is_pending),
            (
                Situation::WriteConflict,
                matches!(task.awaiting, Some(Await::Conflict { .. })),
            ),
            (
                Situation::FollowUpLost,
                matches!(task.awaiting, Some(Await::Reloaded(_))),
            ),
            (
                Situation::Resumed,
                matches!(task.awaiting, Some(Await::Claimed(Claim::Resume { .. }))),
            ),
            (
                Situation::Orphaned,
                matches!(task.state, State::Orphaned(_)),
            ),
            (Situation::TwoReplicas, runs > 1),
        ];
        let current = situations.into_iter().filter(|(_, is_current)| *is_current);
        self.reached.extend(current.map(|(situation, _)| situation));
    }
}
