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
