//! The launcher's part of a clean-up: opens the handles for the guard, and starts a guard just for the clean-up if the
//! command's own guard was killed.

use super::bubblewrap;
use super::start::{Program, StartRequest};
use super::supervise::collect_reports;
use super::user::User;
use super::view::View;
use super::{Mode, mode_for};
use crate::clean_up::Checklist;
use crate::clean_up::directory::open_root;
use crate::clean_up::pending::{self, Record, RecordContent};
use crate::launcher::Launcher;
use crate::layers::Layer;
use crate::plan::{CleanUpDescriptors, HelperTask, Plan};
use crate::report::HelperOutcome;
use crate::{CleanUpReport, LaunchError, Network, ResourceLimits, SandboxProfile, Stdin};
use rustix::fs::{Mode as FileMode, OFlags};
use std::fs::DirBuilder;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::Duration;
use tokio::sync::oneshot;

/// The record and the handles that a command's guard gets for the clean-up.
#[derive(Debug)]
pub(super) struct CleanUpSetup {
    pub(super) record: Record,
    handles: CleanUpHandles,
}

/// Open handles. They can be dropped when the guard has inherited them.
#[derive(Debug)]
pub(super) struct CleanUpHandles {
    roots: Vec<Option<OwnedFd>>,
    trash: Option<OwnedFd>,
}

impl CleanUpSetup {
    /// Stores the checklist and opens its directories.
    pub(super) fn new(
        launcher: &Launcher,
        user: User,
        checklist: &Checklist,
    ) -> Result<Self, LaunchError> {
        Ok(Self {
            record: Record::create(launcher.records.as_deref(), checklist)?,
            handles: CleanUpHandles::open(launcher, user, checklist),
        })
    }

    /// Returns the descriptors for the plan.
    pub(super) fn descriptors(&self) -> CleanUpDescriptors {
        self.handles.descriptors(&self.record, None)
    }
}

impl CleanUpHandles {
    fn open(launcher: &Launcher, user: User, checklist: &Checklist) -> Self {
        let roots = checklist.roots.iter();
        Self {
            roots: roots.map(|root| open_root(&root.path).ok()).collect(),
            trash: launcher
                .trash
                .as_deref()
                .and_then(|trash| open_trash(trash, user)),
        }
    }

    fn descriptors(&self, record: &Record, until_ns: Option<u64>) -> CleanUpDescriptors {
        let number = |handle: &OwnedFd| handle.as_raw_fd();
        CleanUpDescriptors {
            record: record.as_fd().as_raw_fd(),
            roots: self
                .roots
                .iter()
                .map(|root| root.as_ref().map(number))
                .collect(),
            trash: self.trash.as_ref().map(number),
            until_ns: until_ns.unwrap_or_default(),
        }
    }
}

impl CleanUpDescriptors {
    /// Returns all descriptors that the new process inherits.
    pub(super) fn all(&self) -> impl Iterator<Item = RawFd> {
        let roots = self.roots.iter().copied().flatten();
        roots.chain(self.trash).chain([self.record])
    }
}

/// Opens the trash so that the command's user can write to it through the handle. Its path is hidden from commands.
fn open_trash(trash: &Path, user: User) -> Option<OwnedFd> {
    let mut folders = DirBuilder::new();
    folders.recursive(true).mode(0o700);
    let path = match user {
        User::Root | User::Same => trash.to_path_buf(),
        User::Owner { user, .. } => trash.join(user.to_string()),
    };
    folders.create(&path).ok()?;
    if let User::Owner { user, group } = user {
        std::os::unix::fs::lchown(&path, Some(user), Some(group)).ok()?;
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(&path, flags, FileMode::empty()).ok()
}

/// Finishes the clean-ups that were interrupted because both lango and the guard ended.
pub(crate) async fn recover(launcher: &Launcher) -> Vec<CleanUpReport> {
    let records = launcher
        .records
        .as_deref()
        .map(pending::interrupted_records);
    let mut reports = Vec::new();
    for record in records.into_iter().flatten() {
        let result = match record.read() {
            Some(RecordContent::Finished(report)) => Ok(report),
            Some(RecordContent::Due(checklist)) => {
                let until = record.until_ns(&checklist);
                run_clean_up_guard(launcher, &record, until).await
            }
            None => Ok(CleanUpReport::default()),
        };
        match result {
            Ok(report) => {
                if record.is_due() {
                    // A limit ended it; the next start tries again.
                    drop(record);
                } else {
                    record.remove();
                }
                reports.push(report);
            }
            Err(what) => {
                let mut report = CleanUpReport::default();
                report.add_incomplete(&what);
                reports.push(report);
            }
        }
    }
    reports.retain(|report| !report.is_empty());
    reports
}

/// Runs a guard that only cleans up.
pub(super) async fn run_clean_up_guard(
    launcher: &Launcher,
    record: &Record,
    until_ns: Option<u64>,
) -> Result<CleanUpReport, String> {
    let Some(RecordContent::Due(checklist)) = record.read() else {
        return Err("the record of the clean-up cannot be read".to_string());
    };
    // If no directory exists any more, there is nothing to clean up.
    let Some(root) = checklist.roots.iter().find(|root| root.path.is_dir()) else {
        let nothing = CleanUpReport::default();
        record.finish(&nothing);
        return Ok(nothing);
    };
    let text = |error: LaunchError| error.to_string();
    let mode = mode_for(launcher).map_err(text)?;
    let user = User::of(mode, &root.path).map_err(text)?;
    let handles = CleanUpHandles::open(launcher, user, &checklist);
    let bubblewrap = launcher.bubblewrap_for(mode).map_err(text)?;
    let view = View::system();
    let limits = ResourceLimits::default();
    let plan = Plan {
        task: HelperTask::CleanUp,
        argv: Vec::new(),
        env: Vec::new(),
        cwd: "/".into(),
        read: Vec::new(),
        write: Vec::new(),
        in_memory: Vec::new(),
        expected_paths: Vec::new(),
        network: Network::None,
        profile: SandboxProfile::Command,
        unix_sockets: false,
        limits,
        landlock: match mode {
            Mode::BubblewrapOnly => Layer::LeftOut,
            Mode::Both | Mode::LandlockOnly => launcher.layers.landlock,
        },
        seccomp: launcher.layers.seccomp,
        watchdog: launcher.layers.watchdog,
        namespaces: bubblewrap.is_some(),
        memory_group: false,
        memory_events: None,
        stdio: [0; 3],
        lifeline: 0,
        handover: None,
        clean_up: handles.descriptors(record, until_ns),
    };
    let build = bubblewrap::BubblewrapSetup {
        view: &view,
        network: Network::None,
        exposed: Vec::new(),
        limits: &limits,
        helper: &launcher.helper.program,
        is_root: user == User::Root,
    };
    let program = Program::new(bubblewrap, &build);
    let started = StartRequest {
        program,
        helper: &launcher.helper,
        plan,
        stdin: Stdin::Null,
        group: None,
        user,
    }
    .run()
    .map_err(text)?;
    let (_sender, cancelled) = oneshot::channel();
    let time = Some(Duration::from_secs(75));
    let output = collect_reports(started.process, started.reports, time, cancelled).await;
    drop((started.lifeline, handles));
    match HelperOutcome::parse(&output) {
        HelperOutcome::NotRun(what) => Err(what),
        HelperOutcome::Ran { clean_up, .. } => {
            clean_up.ok_or_else(|| "the clean-up was killed before it was done".to_string())
        }
    }
}
