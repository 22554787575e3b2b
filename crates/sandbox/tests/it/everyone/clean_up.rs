//! What is kept stays, and what comes to be in its place is taken away, without ever reaching out of the workspace.

use crate::world::World;
use lango_sandbox::{ExitKind, NewFiles};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::time::Instant;

#[tokio::test]
async fn what_was_made_goes_to_the_trash_and_is_named() {
    let mut world = World::new();
    let trash = world.path("trash");
    world.launcher = world.launcher.clone().with_trash(trash.clone());
    let done = world
        .run(world.shell("mkdir new && git init -q new && echo x > deep.txt && echo y > .ENV"))
        .await;
    assert_eq!(done.ended.exit, ExitKind::Code(0), "{done:?}");
    let expected = [
        world.path("workspace/.ENV"),
        world.path("workspace/new/.git"),
    ];
    assert_eq!(done.ended.clean_up.removed, expected);
    assert!(world.path("workspace/deep.txt").exists());
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
async fn what_came_to_be_while_a_server_ran_is_left_and_named() {
    let world = World::new();
    let mut command = world.shell("mkdir new && git init -q new && echo y > .ENV");
    command.new_files = NewFiles::Report;
    let done = world.run(command).await;
    let mut left = done.ended.clean_up.left;
    left.sort();
    let made = [".ENV", "new/.git"].map(|name| world.path("workspace").join(name));
    assert_eq!(
        (left.as_slice(), done.ended.clean_up.removed.len()),
        (&made[..], 0)
    );
    assert!(made.iter().all(|path| path.exists()));
}

#[tokio::test]
async fn what_was_made_is_taken_away_though_the_command_closed_the_way_to_it() {
    let world = World::new();
    for line in [
        "echo x > .env.new; chmod 500 .",
        "mkdir -p s/.git/hooks && echo x > s/.git/hooks/pre-commit && chmod 000 s/.git/hooks s/.git; chmod 100 s",
        "mkdir d && echo x > d/.env && chmod 500 d",
        "mkdir e && mkdir e/.git && chmod 300 e",
    ] {
        let done = world.run(world.shell(line)).await;
        assert_eq!(done.ended.exit, ExitKind::Code(0), "{done:?}");
        assert_eq!(
            (
                done.ended.clean_up.removed.len(),
                done.ended.clean_up.left.len()
            ),
            (1, 0),
            "{line}: {done:?}"
        );
        assert!(!done.ended.clean_up.removed[0].exists(), "{line}");
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(world.path("workspace"), open).unwrap();
    }
}

#[tokio::test]
async fn a_folder_of_the_system_can_be_opened_whole() {
    let mut world = World::new();
    world.policy.read.push("/etc".into());
    let done = world
        .run(world.shell("ls /etc/hostname /etc/passwd && echo x > kept"))
        .await;
    assert_eq!(done.ended.exit, ExitKind::Code(0), "{done:?}");
}

#[tokio::test]
async fn a_link_in_the_place_of_a_folder_does_not_lead_the_sweep_out() {
    let world = World::new();
    fs::create_dir_all(world.path("outside/folder/.git")).unwrap();
    fs::create_dir_all(world.path("workspace/a/folder")).unwrap();
    let done = world
        .run(world.shell("rm -r a && ln -s {out} a && ln -s {out}/folder b"))
        .await;
    assert_eq!(done.ended.exit, ExitKind::Code(0), "{done:?}");
    assert_eq!(done.ended.clean_up.removed, Vec::<PathBuf>::new());
    assert!(world.path("outside/folder/.git").exists());
}

#[tokio::test]
async fn a_protected_link_that_a_command_replaced_is_reported_and_not_created_again() {
    let world = World::new();
    let link = world.path("workspace/.env.shared");
    std::os::unix::fs::symlink("file", &link).unwrap();
    // What it leads to is what it stands for.
    let done = world.run(world.shell("echo x >> file")).await;
    assert_ne!(done.ended.exit, ExitKind::Code(0));
    let done = world
        .run(world.shell("rm .env.shared && echo x > .env.shared"))
        .await;
    assert_eq!(done.ended.exit, ExitKind::Code(0), "{done:?}");
    assert!(fs::symlink_metadata(&link).is_err());
    let report = done.ended.clean_up;
    assert_eq!(
        (report.removed, report.lost),
        (vec![link.clone()], vec![link])
    );
}

#[tokio::test]
async fn a_path_that_is_kept_or_hidden_cannot_be_made_either() {
    let mut world = World::new();
    world.policy.kept.push(world.path("workspace/agents"));
    world.policy.hidden.push(world.path("workspace/data"));
    let done = world
        .run(world.shell("mkdir agents data && echo x > agents/new"))
        .await;
    assert_eq!(done.ended.exit, ExitKind::Code(0), "{done:?}");
    assert!(!world.path("workspace/agents").exists());
    assert!(!world.path("workspace/data").exists());
}

#[tokio::test]
async fn nothing_is_left_on_the_disk_by_the_sandbox_itself() {
    let world = World::new();
    let list = || {
        let mut paths: Vec<PathBuf> = walk(world.path("workspace"));
        paths.sort();
        paths
    };
    let before = list();
    world.run(world.command(&["true"])).await;
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
    let world = World::new();
    for folder in 0..20 {
        let folder = world.path(&format!("workspace/many/{folder}"));
        fs::create_dir_all(&folder).unwrap();
        for file in 0..100 {
            fs::write(folder.join(file.to_string()), "").unwrap();
        }
    }
    let mut times: Vec<_> = Vec::new();
    for _ in 0..9 {
        let started = Instant::now();
        world.run(world.command(&["true"])).await;
        times.push(started.elapsed());
    }
    times.sort();
    println!(
        "`true` in a workspace of 2,000 files: {:?}, median of 9",
        times[4]
    );
}

#[tokio::test]
async fn what_cannot_be_moved_to_another_disk_is_copied_to_the_trash_and_removed() {
    let mut world = World::new();
    // Another file system than that of temporary files, wherever those are.
    let here = fs::metadata(world.path("workspace")).unwrap().dev();
    let other = tempfile::tempdir_in("/dev/shm").unwrap();
    assert_ne!(fs::metadata(other.path()).unwrap().dev(), here);
    let trash = other.path().join("trash");
    world.launcher = world.launcher.clone().with_trash(trash.clone());
    let script = "mkdir -p new/.git/hooks; echo mine > new/.git/hooks/x; ln -s /etc/passwd new/.git/link; \
                  mkfifo new/.git/fifo; mkdir -p new/.git/a/b/c/d; chmod 500 new/.git/a/b";
    let done = world.run(world.shell(script)).await;
    assert_eq!(
        done.ended.clean_up.removed,
        [world.path("workspace/new/.git")],
        "{done:?}"
    );
    assert!(!world.path("workspace/new/.git").exists());
    let copies: Vec<PathBuf> = fs::read_dir(&trash)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    let copied = fs::read_to_string(copies[0].join("hooks/x")).unwrap();
    assert_eq!((copied.as_str(), copies.len()), ("mine\n", 1));
    assert!(fs::symlink_metadata(copies[0].join("link")).is_err());
}
