//! A process that changes files is killed at any moment. Whatever it had done can be undone.

use crate::canary::{self, Snapshot};
use lango_core::{SessionId, TurnId};
use lango_sandbox::Policy;
use lango_testkit::tool::caller;
use lango_tools::{Trash, UndoMode, UndoOutcome, UndoStore, Workspace, file_tools};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// The variable that makes [`the_process_to_kill`] do something.
const FOLDER: &str = "LANGO_TEST_UNDO_FOLDER";

const KILLS: usize = 60;

/// The workspace, the trash and the originals in a folder.
struct Parts {
    workspace: Workspace,
    trash: Trash,
    undo: UndoStore,
}

impl Parts {
    fn open(folder: &Path) -> Self {
        Self {
            workspace: Workspace::open(Policy::of(folder.join("workspace"))).unwrap(),
            trash: Trash::at(folder.join("private/trash")),
            undo: UndoStore::at(folder.join("private/undo")),
        }
    }
}

/// Changes files until it is killed. Does nothing in a normal run of the tests.
#[test]
fn the_process_to_kill() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
        return;
    };
    let parts = Parts::open(&folder);
    let tools = file_tools(&parts.workspace, &parts.trash, Some(&parts.undo));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let call = |name: &str, arguments| {
        let tool = tools.iter().find(|tool| tool.spec().name == name).unwrap();
        // A call on something that an earlier call deleted fails.
        let _ = runtime.block_on(tool.run(&caller(), Arc::new(arguments)));
    };
    for round in 0.. {
        let name = round % 7;
        let content = format!("{round}\n").repeat(round % 50);
        let file = format!("{name}.txt");
        call("fs_write", json!({"path": file, "content": content}));
        let deep = format!("new/{round}/{name}.txt");
        call("fs_write", json!({"path": deep, "content": content}));
        call(
            "fs_edit",
            json!({"path": file, "old": format!("{round}"), "new": "x"}),
        );
        call("fs_delete", json!({"path": format!("folder-{name}")}));
        call("fs_mkdir", json!({"path": format!("folder-{name}/made")}));
        call("fs_delete", json!({"path": file}));
    }
}

#[test]
fn everything_can_be_undone_after_a_kill_at_any_moment() {
    let mut changed = 0;
    for kill in 0..KILLS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        let workspace = path.join("workspace");
        for name in 0..7 {
            let inner = workspace.join(format!("folder-{name}"));
            std::fs::create_dir_all(&inner).unwrap();
            std::fs::write(inner.join("inside.txt"), "inside").unwrap();
            std::fs::write(workspace.join(format!("{name}.txt")), "original").unwrap();
        }
        let before = canary::of_tree(&workspace);
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "undo_kills::the_process_to_kill"])
            .env(FOLDER, &path)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let parts = Parts::open(&path);
        let (session, turn) = (SessionId::from("s_1"), TurnId::from("t_1"));
        let record = || parts.undo.turn(&session, &turn).unwrap();
        // Another moment each time, around the time when a change is recorded.
        while record().is_none_or(|record| record.paths().len() <= kill) {
            std::thread::yield_now();
        }
        process.kill().unwrap();
        process.wait().unwrap();
        changed += usize::from(without_temporary(&workspace) != before);
        let record = record().unwrap();
        let results = record.undo(&parts.workspace, &parts.trash, UndoMode::Whole, &|| true);
        for result in &results {
            let is_skipped = matches!(result.outcome, UndoOutcome::Skipped { .. });
            // A folder is kept if the killed process left a temporary file in it.
            assert!(!is_skipped, "kill {kill}: {result:?}");
        }
        let mut after = without_temporary(&workspace);
        after.retain(|path, _| before.contains_key(path) || !path.is_dir());
        canary::assert_same(&before, &after, &format!("kill {kill}"));
    }
    assert!(changed > KILLS / 2, "{changed} of {KILLS}");
}

/// Takes a snapshot without the temporary files that a killed process leaves behind.
fn without_temporary(folder: &Path) -> Snapshot {
    let mut snapshot = canary::of_tree(folder);
    snapshot.retain(|path, _| {
        path.extension()
            .is_none_or(|extension| extension != "lango-new")
    });
    snapshot
}
