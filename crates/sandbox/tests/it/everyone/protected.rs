//! Files that other programs act on: read-only where they exist, removed where a command creates them.

use crate::world::World;
use lango_sandbox::{ExitKind, Layer, Layers};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

fn in_workspace(world: &World, names: &[&str]) -> Vec<PathBuf> {
    let workspace = world.path("workspace");
    names.iter().map(|name| workspace.join(name)).collect()
}

#[tokio::test]
async fn files_that_other_programs_act_on_are_removed_when_a_command_creates_them() {
    let world = World::new();
    let names = [
        ".claude",
        ".envrc",
        ".husky",
        ".idea",
        ".mcp.json",
        ".npmrc",
        ".vscode",
        "AGENTS.md",
        "sub/.cargo/config.toml",
        "sub/agents.md",
        "x.code-workspace",
    ];
    let script: String = names
        .iter()
        .map(|name| format!("mkdir -p $(dirname {name}); echo x > {name};"))
        .collect();
    let done = world.run(world.shell(&script)).await;
    assert_eq!(done.ended.exit, ExitKind::Code(0), "{done:?}");
    let mut removed = done.ended.clean_up.removed;
    removed.sort();
    assert_eq!(removed, in_workspace(&world, &names));
}

#[tokio::test]
async fn files_that_other_programs_act_on_are_read_only_when_they_exist() {
    let world = World::new();
    for name in ["AGENTS.md", "sub/.vscode/tasks.json", ".cargo/config.toml"] {
        let path = world.path("workspace").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "mine").unwrap();
        for script in [
            format!("echo x >> {name}"),
            format!("rm {name}"),
            format!("mv {name} other"),
            format!("mv $(dirname {name}) elsewhere"),
        ] {
            let done = world.run(world.shell(&script)).await;
            assert_ne!(done.ended.exit, ExitKind::Code(0), "{script}: {done:?}");
            assert_eq!(fs::read_to_string(&path).unwrap(), "mine", "{script}");
        }
    }
}

const BARE: &str = "mkdir -p docs/objects docs/refs; echo 'ref: refs/heads/main' > docs/HEAD; echo '[core] fsmonitor=x' > docs/config";

#[tokio::test]
async fn a_directory_that_becomes_a_repository_does_not_stay_one() {
    let world = World::new();
    // A new one goes as a whole.
    let done = world.run(world.shell(BARE)).await;
    assert_eq!(
        done.ended.clean_up.removed,
        in_workspace(&world, &["docs"]),
        "{done:?}"
    );
    // One with files of the user's loses what makes it a repository.
    fs::create_dir(world.path("workspace/docs")).unwrap();
    fs::write(world.path("workspace/docs/page"), "mine").unwrap();
    let done = world.run(world.shell(BARE)).await;
    assert_eq!(
        done.ended.clean_up.removed,
        in_workspace(&world, &["docs/HEAD"])
    );
    assert!(world.path("workspace/docs/page").exists());
    // Two commands that each do a half of it are no better.
    let done = world
        .run(world.shell("echo 'ref: refs/heads/main' > docs/HEAD"))
        .await;
    assert_eq!(
        done.ended.clean_up.removed,
        in_workspace(&world, &["docs/HEAD"])
    );
    // A worktree of another repository needs only two files.
    let done = world
        .run(world.shell("mkdir w; echo x > w/HEAD; echo ../docs > w/commondir"))
        .await;
    assert_eq!(done.ended.clean_up.removed, in_workspace(&world, &["w"]));
}

#[tokio::test]
async fn a_repository_without_the_usual_name_is_read_only() {
    let world = World::new();
    for folder in ["objects", "refs"] {
        fs::create_dir_all(world.path("workspace/fixture").join(folder)).unwrap();
    }
    fs::write(world.path("workspace/fixture/HEAD"), "ref: x\n").unwrap();
    let done = world.run(world.shell("echo x > fixture/config")).await;
    assert_ne!(done.ended.exit, ExitKind::Code(0), "{done:?}");
    assert!(done.ended.clean_up.is_empty());
    assert!(world.path("workspace/fixture/HEAD").exists());
}

#[tokio::test]
async fn repositories_may_be_created_where_that_is_allowed() {
    let mut world = World::new();
    world.policy.allow_git_init = true;
    let done = world
        .run(world.shell("git init -q new && git init -q --bare bare.git && mkdir new/.vscode"))
        .await;
    assert_eq!(done.ended.exit, ExitKind::Code(0), "{done:?}");
    assert!(world.path("workspace/new/.git/HEAD").exists());
    assert!(world.path("workspace/bare.git/HEAD").exists());
    assert_eq!(
        done.ended.clean_up.removed,
        in_workspace(&world, &["new/.vscode"])
    );
}

#[tokio::test]
async fn what_is_planted_below_many_files_is_found() {
    let world = World::new();
    let filler = world.path("workspace/filler");
    fs::create_dir(&filler).unwrap();
    let first = filler.join("0");
    fs::write(&first, "").unwrap();
    for number in 1..110_000 {
        // Links are made faster than files; a file has a limited number of them.
        if number % 50_000 == 0 {
            fs::write(filler.join(number.to_string()), "").unwrap();
        }
        let from = filler.join((number / 50_000 * 50_000).to_string());
        let _ = fs::hard_link(from, filler.join(number.to_string()));
    }
    fs::create_dir_all(world.path("workspace/z/y")).unwrap();
    let done = world.run(world.shell("mkdir z/y/.git")).await;
    assert_eq!(
        done.ended.clean_up.removed,
        in_workspace(&world, &["z/y/.git"]),
        "{done:?}"
    );
}

#[tokio::test]
async fn the_setuid_and_setgid_bits_cannot_be_set() {
    let world = World::new();
    let mut attempts = vec![
        "chmod {ws}/file 4755".to_owned(),
        "fchmod {ws}/file 4755".to_owned(),
        "fchmodat {ws}/file 2755".to_owned(),
        "fchmodat2 {ws}/file 4755".to_owned(),
        "mknod-file {ws}/node 4755".to_owned(),
        "create {ws}/new1 4755".to_owned(),
        "create-temporary {ws} 2755".to_owned(),
        "openat2-create {ws}/new2 4755".to_owned(),
        "mkdir {ws}/folder 2755".to_owned(),
        "later-call".to_owned(),
    ];
    for attempt in attempts.drain(..) {
        let done = world.run(world.attempt(&attempt)).await;
        assert!(done.stdout.starts_with("refused"), "{attempt}: {done:?}");
    }
    let done = world
        .run(world.shell("chmod 750 file && mkdir -m 755 d"))
        .await;
    assert_eq!(done.ended.exit, ExitKind::Code(0), "{done:?}");
}

#[tokio::test]
async fn the_setuid_bit_is_cleared_afterwards_even_if_the_filter_did_not_hold() {
    let layers = Layers {
        seccomp: Layer::LeftOut,
        ..Layers::default()
    };
    let world = World::new().with_layers(layers);
    let done = world
        .run(world.shell("mkdir made; cp /bin/true made/x; chmod 6755 made/x"))
        .await;
    assert_eq!(done.ended.exit, ExitKind::Code(0), "{done:?}");
    let made = world.path("workspace/made/x");
    assert_eq!(done.ended.clean_up.cleared, std::slice::from_ref(&made));
    assert_eq!(
        fs::metadata(made).unwrap().permissions().mode() & 0o7777,
        0o755
    );
}

#[tokio::test]
async fn a_directory_inherits_the_setgid_bit() {
    let world = World::new();
    let shared = world.path("workspace/shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o2755)).unwrap();
    let done = world.run(world.shell("mkdir shared/new")).await;
    assert_eq!(done.ended.exit, ExitKind::Code(0), "{done:?}");
    let mode = fs::metadata(shared.join("new"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o2000, 0o2000);
    assert!(done.ended.clean_up.is_empty(), "{done:?}");
}

#[tokio::test]
async fn in_the_home_new_start_up_files_are_removed_and_other_dotfiles_reported() {
    let mut world = World::new();
    let workspace = world.path("workspace");
    fs::create_dir_all(workspace.join(".config/tool")).unwrap();
    fs::write(workspace.join(".shrc"), "mine").unwrap();
    world.policy.hide_dotfiles_in = Some(workspace.clone());
    let done = world
        .run(world.shell("cat .shrc; echo x > .zshrc; mkdir .cache; echo x > visible"))
        .await;
    let report = done.ended.clean_up;
    assert_eq!(report.removed, in_workspace(&world, &[".zshrc"]));
    assert_eq!(report.left, in_workspace(&world, &[".cache"]));
    assert!(!done.stdout.contains("mine") && workspace.join("visible").exists());
    assert!(workspace.join(".shrc").exists() && workspace.join(".config/tool").exists());
}

fn set_mode(path: &std::path::Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn what_is_in_a_directory_that_its_owner_closed_stays_there() {
    for mode in [0o300, 0o400] {
        let world = World::new();
        let closed = world.path("workspace/closed");
        fs::create_dir_all(closed.join("proj/.git")).unwrap();
        fs::write(closed.join(".envrc"), "mine").unwrap();
        set_mode(&closed, mode);
        // Where the way to a protected file is closed it cannot be covered, and nothing runs.
        if let Ok(mut child) = world
            .launcher
            .spawn(&world.policy, world.shell("touch new"))
            && let Ok(ended) = child.wait().await
        {
            assert!(ended.clean_up.removed.is_empty(), "{ended:?}");
        }
        let now = fs::metadata(&closed).unwrap().permissions().mode();
        assert_eq!(now & 0o7777, mode);
        set_mode(&closed, 0o755);
        assert!(closed.join("proj/.git").exists() && closed.join(".envrc").exists());
    }
}

#[tokio::test]
async fn a_command_cannot_blind_the_next_one_by_closing_a_directory() {
    let world = World::new();
    fs::create_dir_all(world.path("workspace/sub/.vscode")).unwrap();
    for close in [
        "chmod 0300 .",
        "chmod 0300 sub",
        "chmod 0400 sub",
        "chmod 0 sub .",
    ] {
        world.run(world.shell(close)).await;
        let script = "chmod 755 . sub; echo x >> .git/config; echo x > sub/.vscode/tasks.json; echo x > AGENTS.md; true";
        let done = world.run(world.shell(script)).await;
        assert_eq!(
            done.ended.clean_up.removed,
            in_workspace(&world, &["AGENTS.md"]),
            "{close}: {done:?}"
        );
        let config = fs::read_to_string(world.path("workspace/.git/config")).unwrap();
        assert!(!config.contains('x'), "{close}: {config}");
        assert!(!world.path("workspace/sub/.vscode/tasks.json").exists());
    }
}

#[tokio::test]
async fn a_protected_link_under_another_name_is_new() {
    let world = World::new();
    let workspace = world.path("workspace");
    fs::create_dir_all(workspace.join("envs")).unwrap();
    fs::write(workspace.join("envs/dev"), "mine").unwrap();
    std::os::unix::fs::symlink("envs/dev", workspace.join(".envrc")).unwrap();
    let script = "mkdir -p new/envs; echo evil > new/envs/dev; ln -P .envrc new/.envrc";
    let done = world.run(world.shell(script)).await;
    assert_eq!(
        done.ended.clean_up.removed,
        in_workspace(&world, &["new/.envrc"]),
        "{done:?}"
    );
}

#[tokio::test]
async fn a_protected_file_that_the_user_saves_meanwhile_is_the_users() {
    let world = World::new();
    let file = world.path("workspace/AGENTS.md");
    fs::write(&file, "old").unwrap();
    let mut command = world.shell("echo started; cat");
    command.stdin = lango_sandbox::Stdin::Piped;
    let mut child = world.launcher.spawn(&world.policy, command).unwrap();
    let mut line = [0; 8];
    tokio::io::AsyncReadExt::read_exact(child.stdout.as_mut().unwrap(), &mut line)
        .await
        .unwrap();
    fs::write(world.path("workspace/AGENTS.md.new"), "new").unwrap();
    fs::rename(world.path("workspace/AGENTS.md.new"), &file).unwrap();
    drop(child.stdin.take());
    let ended = child.wait().await.unwrap();
    assert!(ended.clean_up.is_empty(), "{ended:?}");
    assert_eq!(fs::read_to_string(file).unwrap(), "new");
}

#[tokio::test]
async fn what_one_command_planted_is_not_laundered_by_another() {
    let mut world = World::new();
    let home = world.path("home");
    let launcher = world.launcher.clone().with_trash(home.join("trash"));
    world.launcher = launcher.with_records(home.join("clean-up"));
    let start = |script: &str| {
        let mut command = world.shell(script);
        command.stdin = lango_sandbox::Stdin::Piped;
        let mut child = world.launcher.spawn(&world.policy, command).unwrap();
        let stdout = child.stdout.take().unwrap();
        async move {
            let mut line = String::new();
            let mut stdout = tokio::io::BufReader::new(stdout);
            tokio::io::AsyncBufReadExt::read_line(&mut stdout, &mut line)
                .await
                .unwrap();
            child
        }
    };
    // The second one starts while the plants of the first one are in place, and brings them back after its clean-up.
    let plant =
        "mkdir .vscode; echo evil > .npmrc; ln .npmrc stash; echo planted; read x; mv .vscode dir";
    let mut first = start(plant).await;
    let mut second = start("echo ready; read x; mv stash .npmrc; mv dir .vscode").await;
    drop(first.stdin.take());
    first.wait().await.unwrap();
    drop(second.stdin.take());
    let ended = second.wait().await.unwrap();
    for name in [".npmrc", ".vscode"] {
        let path = world.path("workspace").join(name);
        assert!(fs::symlink_metadata(&path).is_err(), "{name}: {ended:?}");
    }
}
