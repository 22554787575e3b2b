//! Clean-up inside of the sandbox, once the command and everything it started are gone.
//!
//! The guard is the same user in the same namespaces without capabilities, and before it touches anything it has the kernel
//! restrict it to the writable directories and the trash. Its handles do not go through the read-only mounts that covered
//! protected files, so a sweep never touches a path that existed before.

use super::landlock;
use crate::CleanUpReport;
use crate::clean_up::pending::{Content, Record};
use crate::clean_up::sweep::{self, Handles, Swept};
use crate::layers::Layer;
use crate::plan::{CleanUpDescriptors, Plan};
use rustix::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::fs::File;
use std::time::Instant;

/// What the guard holds for the clean-up.
pub(super) struct CleanUp<'a> {
    plan: &'a Plan,
    record: Record,
    handles: Handles,
    touched: Instant,
}

impl<'a> CleanUp<'a> {
    /// Takes over the descriptors of the plan.
    pub(super) fn new(plan: &'a Plan) -> Self {
        let CleanUpDescriptors {
            record,
            roots,
            trash,
            ..
        } = &plan.clean_up;
        let own = |fd: &RawFd| {
            // SAFETY: the launcher passed this descriptor on for this one use.
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

    /// Shows in the record that the guard lives.
    pub(super) fn keep_alive(&mut self) {
        if self.touched.elapsed() >= crate::clean_up::pending::HEARTBEAT {
            self.record.touch();
            self.touched = Instant::now();
        }
    }

    /// Cleans up, and stores the result.
    pub(super) fn run(self, processes_are_gone: bool) -> Result<CleanUpReport, String> {
        let Some(Content::Due(checklist)) = self.record.read() else {
            return Err("the record of the clean-up cannot be read".to_string());
        };
        if self.plan.landlock == Layer::Used {
            let roots = self.handles.roots.iter().flatten();
            let reachable: Vec<BorrowedFd<'_>> =
                roots.chain(&self.handles.trash).map(AsFd::as_fd).collect();
            landlock::restrict_to(&reachable)?;
        }
        let until = self.plan.clean_up.until_ns;
        let Swept {
            mut report,
            is_finished,
        } = sweep::sweep(&checklist, &self.handles, (until > 0).then_some(until));
        if !processes_are_gone {
            report.add_incomplete("some processes of the command did not end in time");
        }
        if is_finished {
            self.record.finish(&report);
        }
        Ok(report)
    }
}
