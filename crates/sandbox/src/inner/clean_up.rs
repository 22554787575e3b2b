//! The clean-up inside the sandbox, after the command and all processes it started have ended.
//!
//! The guard has the same user and namespaces as the command, and no capabilities. Before it touches anything, it
//! restricts itself with Landlock to the writable directories and the trash. Its handles bypass the read-only mounts
//! that covered protected files, so a sweep must never touch a path that existed before.

use super::landlock;
use crate::CleanUpReport;
use crate::clean_up::pending::{Record, RecordContent};
use crate::clean_up::sweep::{self, Handles, SweepResult};
use crate::layers::Layer;
use crate::plan::{CleanUpDescriptors, Plan};
use rustix::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::fs::File;
use std::time::Instant;

/// The guard's state for the clean-up.
pub(super) struct CleanUp<'a> {
    plan: &'a Plan,
    record: Record,
    handles: Handles,
    touched: Instant,
}

impl<'a> CleanUp<'a> {
    /// Takes ownership of the plan's descriptors.
    pub(super) fn new(plan: &'a Plan) -> Self {
        let CleanUpDescriptors {
            record,
            roots,
            trash,
            ..
        } = &plan.clean_up;
        let own = |fd: &RawFd| {
            // SAFETY: the launcher passed this descriptor for this single use.
            unsafe { OwnedFd::from_raw_fd(*fd) }
        };
        Self {
            plan,
            record: Record::inherited(File::from(own(record))),
            handles: Handles {
                roots: roots.iter().map(|fd| fd.as_ref().map(own)).collect(),
                trash: trash.as_ref().map(own),
            },
            touched: Instant::now(),
        }
    }

    /// Touches the record at intervals, as a sign of life.
    pub(super) fn keep_alive(&mut self) {
        if self.touched.elapsed() >= crate::clean_up::pending::HEARTBEAT {
            self.record.touch();
            self.touched = Instant::now();
        }
    }

    /// Cleans up and stores the result in the record.
    pub(super) fn run(self, all_ended: bool) -> Result<CleanUpReport, String> {
        let Some(RecordContent::Due(checklist)) = self.record.read() else {
            return Err("the record of the clean-up cannot be read".to_string());
        };
        if self.plan.landlock == Layer::Used {
            let roots = self.handles.roots.iter().flatten();
            let reachable: Vec<BorrowedFd<'_>> =
                roots.chain(&self.handles.trash).map(AsFd::as_fd).collect();
            landlock::restrict_to(&reachable)?;
        }
        let until = self.plan.clean_up.until_ns;
        let SweepResult {
            mut report,
            is_finished,
        } = sweep::sweep(&checklist, &self.handles, (until > 0).then_some(until));
        if !all_ended {
            report.add_incomplete("some processes of the command did not end in time");
        }
        if is_finished {
            self.record.finish(&report);
        }
        Ok(report)
    }
}
