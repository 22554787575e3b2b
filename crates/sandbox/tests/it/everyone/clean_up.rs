//! Clean-up removes protected files that commands create, and never touches anything outside of the workspace.

use crate::fixture::Fixture;
use lango_sandbox::{ExitKind, NewFiles};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::time::Instant;

#[tokio::test]
async fn created_protected_files_go_to_the_trash_and_are_reported() {
    let mut fixture = Fixture::new();
    let trash = fixture.path("trash");
    fixture.launcher = fixture.launcher.clone().with_trash(trash.clone());
    let result = fixture
        .run(fixture.shell("mkdir new && git init -q new && echo x > deep.txt && echo y > .ENV"))
        .await;
    assert_eq!(result.outcome.exit, ExitKind::Code(0), "{result:?}");
    let expected = [
        fixture.path("workspace/.ENV"),
        fixture.path("workspace/new/.git"),
    ];
    assert_eq!(result.outcome.clean_up.removed, expected);
    assert!(fixture.path("workspace/deep.txt").exists());
    let mut names: Vec<String> = fs::read_dir(trash)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert!(
        names[0].starts_with(".ENV") && names[1].starts_with(".git"),
        "{names:?}"
    );
}

#[tokio::test]
async fn protected_files_that_appear_while_a_server_runs_are_left_and_reported() {
    let fixture = Fixture::new();
    let mut command = fixture.shell("mkdir new && git init -q new && echo y > .ENV");
    command.new_files = NewFiles::Report;
    let result = fixture.run(command).await;
    let mut remaining = result.outcome.clean_up.remaining;
    remaining.sort();
    let made = [".ENV", "new/.git"].map(|name| fixture.path("workspace").join(name));
    assert_eq!(
        (remaining.as_slice(), result.outcome.clean_up.removed.len()),
        (&made[..], 0)
    );
    assert!(made.iter().all(|path| path.exists()));
}

#[tokio::test]
async fn protected_files_are_removed_even_from_inaccessible_directories() {
    let fixture = Fixture::new();
    for line in [
        "echo x > .env.new; chmod 500 .",
        "mkdir -p s/.git/hooks && echo x > s/.git/hooks/pre-commit && chmod 000 s/.git/hooks s/.git; chmod 100 s",
        "mkdir d && echo x > d/.env && chmod 500 d",
        "mkdir e && mkdir e/.git && chmod 300 e",
    ] {
        let result = fixture.run(fixture.shell(line)).await;
        assert_eq!(result.outcome.exit, ExitKind::Code(0), "{result:?}");
        assert_eq!(
            (
                result.outcome.clean_up.removed.len(),
                result.outcome.clean_up.remaining.len()
            ),
            (1, 0),
            "{line}: {result:?}"
        );
        assert!(!result.outcome.clean_up.removed[0].exists(), "{line}");
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(fixture.path("workspace"), open).unwrap();
    }
}

#[tokio::test]
async fn a_whole_system_folder_can_be_opened_for_reading() {
    let mut fixture = Fixture::new();
    fixture.policy.read.push("/etc".into());
    let result = fixture
        .run(fixture.shell("ls /etc/hostname /etc/passwd && echo x > new"))
        .await;
    assert_eq!(result.outcome.exit, ExitKind::Code(0), "{result:?}");
}

#[tokio::test]
async fn the_sweep_does_not_follow_a_link_that_replaced_a_folder() {
    let fixture = Fixture::new();
    fs::create_dir_all(fixture.path("outside/folder/.git")).unwrap();
    fs::create_dir_all(fixture.path("workspace/a/folder")).unwrap();
    let result = fixture
        .run(fixture.shell("rm -r a && ln -s {out} a && ln -s {out}/folder b"))
        .await;
    assert_eq!(result.outcome.exit, ExitKind::Code(0), "{result:?}");
    assert_eq!(result.outcome.clean_up.removed, Vec::<PathBuf>::new());
    assert!(fixture.path("outside/folder/.git").exists());
}

#[tokio::test]
async fn a_replaced_protected_link_is_reported_and_not_restored() {
    let fixture = Fixture::new();
    let link = fixture.path("workspace/.env.shared");
    std::os::unix::fs::symlink("file", &link).unwrap();
    // The target of a protected link is protected too.
    let result = fixture.run(fixture.shell("echo x >> file")).await;
    assert_ne!(result.outcome.exit, ExitKind::Code(0));
    let result = fixture
        .run(fixture.shell("rm .env.shared && echo x > .env.shared"))
        .await;
    assert_eq!(result.outcome.exit, ExitKind::Code(0), "{result:?}");
    assert!(fs::symlink_metadata(&link).is_err());
    let report = result.outcome.clean_up;
    assert_eq!(
        (report.removed, report.lost_links),
        (vec![link.clone()], vec![link])
    );
}

#[tokio::test]
async fn new_files_at_read_only_and_hidden_paths_are_removed() {
    let mut fixture = Fixture::new();
    fixture
        .policy
        .read_only
        .push(fixture.path("workspace/agents"));
    fixture.policy.hidden.push(fixture.path("workspace/data"));
    let result = fixture
        .run(fixture.shell("mkdir agents data && echo x > agents/new"))
        .await;
    assert_eq!(result.outcome.exit, ExitKind::Code(0), "{result:?}");
    assert!(!fixture.path("workspace/agents").exists());
    assert!(!fixture.path("workspace/data").exists());
}

#[tokio::test]
async fn the_sandbox_itself_leaves_no_files_behind() {
    let fixture = Fixture::new();
    let list = || {
        let mut paths: Vec<PathBuf> = walk(fixture.path("workspace"));
        paths.sort();
        paths
    };
    let before = list();
    fixture.run(fixture.command(&["true"])).await;
    assert_eq!(list(), before);
}

fn walk(folder: PathBuf) -> Vec<PathBuf> {
    let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.flat_map(|entry| walk(entry.path())).collect();
    paths.push(folder);
    paths
}

#[tokio::test]
async fn the_cost_of_a_large_workspace_is_printed() {
    let fixture = Fixture::new();
    for folder in 0..20 {
        let folder = fixture.path(&format!("workspace/many/{folder}"));
        fs::create_dir_all(&folder).unwrap();
        for file in 0..100 {
            fs::write(folder.join(file.to_string()), "").unwrap();
        }
    }
    let mut times: Vec<_> = Vec::new();
    for _ in 0..9 {
        let started = Instant::now();
        fixture.run(fixture.command(&["true"])).await;
        times.push(started.elapsed());
    }
    times.sort();
    println!(
        "`true` in a workspace of 2,000 files: {:?}, median of 9",
        times[4]
    );
}

#[tokio::test]
async fn files_are_copied_to_a_trash_on_another_file_system() {
    let mut fixture = Fixture::new();
    // A different file system than that of temporary files.
    let here = fs::metadata(fixture.path("workspace")).unwrap().dev();
    let other = tempfile::tempdir_in("/dev/shm").unwrap();
    assert_ne!(fs::metadata(other.path()).unwrap().dev(), here);
    let trash = other.path().join("trash");
    fixture.launcher = fixture.launcher.clone().with_trash(trash.clone());
    let script = "mkdir -p new/.git/hooks; echo mine > new/.git/hooks/x; ln -s /etc/passwd new/.git/link; \
                  mkfifo new/.git/fifo; mkdir -p new/.git/a/b/c/d; chmod 500 new/.git/a/b";
    let result = fixture.run(fixture.shell(script)).await;
    assert_eq!(
        result.outcome.clean_up.removed,
        [fixture.path("workspace/new/.git")],
        "{result:?}"
    );
    assert!(!fixture.path("workspace/new/.git").exists());
    let copies: Vec<PathBuf> = fs::read_dir(&trash)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    let copied = fs::read_to_string(copies[0].join("hooks/x")).unwrap();
    assert_eq!((copied.as_str(), copies.len()), ("mine\n", 1));
    assert!(fs::symlink_metadata(copies[0].join("link")).is_err());
}
