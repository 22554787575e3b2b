//! Files that other programs act on: existing ones are read-only, and new ones are removed.

use crate::fixture::Fixture;
use lango_sandbox::{ExitKind, Layer, Layers};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

fn in_workspace(fixture: &Fixture, names: &[&str]) -> Vec<PathBuf> {
    let workspace = fixture.path("workspace");
    names.iter().map(|name| workspace.join(name)).collect()
}

#[tokio::test]
async fn files_that_other_programs_act_on_are_removed_when_a_command_creates_them() {
    let fixture = Fixture::new();
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
    let result = fixture.run(fixture.shell(&script)).await;
    assert_eq!(result.outcome.exit, ExitKind::Code(0), "{result:?}");
    let mut removed = result.outcome.clean_up.removed;
    removed.sort();
    assert_eq!(removed, in_workspace(&fixture, &names));
}

#[tokio::test]
async fn files_that_other_programs_act_on_are_read_only_when_they_exist() {
    let fixture = Fixture::new();
    for name in ["AGENTS.md", "sub/.vscode/tasks.json", ".cargo/config.toml"] {
        let path = fixture.path("workspace").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "mine").unwrap();
        for script in [
            format!("echo x >> {name}"),
            format!("rm {name}"),
            format!("mv {name} other"),
            format!("mv $(dirname {name}) elsewhere"),
        ] {
            let result = fixture.run(fixture.shell(&script)).await;
            assert_ne!(
                result.outcome.exit,
                ExitKind::Code(0),
                "{script}: {result:?}"
            );
            assert_eq!(fs::read_to_string(&path).unwrap(), "mine", "{script}");
        }
    }
}

const BARE: &str = "mkdir -p docs/objects docs/refs; echo 'ref: refs/heads/main' > docs/HEAD; echo '[core] fsmonitor=x' > docs/config";

#[tokio::test]
async fn a_directory_that_becomes_a_repository_does_not_stay_one() {
    let fixture = Fixture::new();
    // A new one is removed as a whole.
    let result = fixture.run(fixture.shell(BARE)).await;
    assert_eq!(
        result.outcome.clean_up.removed,
        in_workspace(&fixture, &["docs"]),
        "{result:?}"
    );
    // One with files of the user loses only its `HEAD`.
    fs::create_dir(fixture.path("workspace/docs")).unwrap();
    fs::write(fixture.path("workspace/docs/page"), "mine").unwrap();
    let result = fixture.run(fixture.shell(BARE)).await;
    assert_eq!(
        result.outcome.clean_up.removed,
        in_workspace(&fixture, &["docs/HEAD"])
    );
    assert!(fixture.path("workspace/docs/page").exists());
    // The same if two commands each do half of it.
    let result = fixture
        .run(fixture.shell("echo 'ref: refs/heads/main' > docs/HEAD"))
        .await;
    assert_eq!(
        result.outcome.clean_up.removed,
        in_workspace(&fixture, &["docs/HEAD"])
    );
    // A worktree of another repository needs only two files.
    let result = fixture
        .run(fixture.shell("mkdir w; echo x > w/HEAD; echo ../docs > w/commondir"))
        .await;
    assert_eq!(
        result.outcome.clean_up.removed,
        in_workspace(&fixture, &["w"])
    );
}

#[tokio::test]
async fn a_repository_without_the_usual_name_is_read_only() {
    let fixture = Fixture::new();
    for folder in ["objects", "refs"] {
        fs::create_dir_all(fixture.path("workspace/fixture").join(folder)).unwrap();
    }
    fs::write(fixture.path("workspace/fixture/HEAD"), "ref: x\n").unwrap();
    let result = fixture.run(fixture.shell("echo x > fixture/config")).await;
    assert_ne!(result.outcome.exit, ExitKind::Code(0), "{result:?}");
    assert!(result.outcome.clean_up.is_empty());
    assert!(fixture.path("workspace/fixture/HEAD").exists());
}

#[tokio::test]
async fn repositories_can_be_created_if_the_policy_allows_it() {
    let mut fixture = Fixture::new();
    fixture.policy.allow_git_init = true;
    let result = fixture
        .run(fixture.shell("git init -q new && git init -q --bare bare.git && mkdir new/.vscode"))
        .await;
    assert_eq!(result.outcome.exit, ExitKind::Code(0), "{result:?}");
    assert!(fixture.path("workspace/new/.git/HEAD").exists());
    assert!(fixture.path("workspace/bare.git/HEAD").exists());
    assert_eq!(
        result.outcome.clean_up.removed,
        in_workspace(&fixture, &["new/.vscode"])
    );
}

#[tokio::test]
async fn a_protected_file_among_many_others_is_found() {
    let fixture = Fixture::new();
    let filler = fixture.path("workspace/filler");
    fs::create_dir(&filler).unwrap();
    let first = filler.join("0");
    fs::write(&first, "").unwrap();
    for number in 1..110_000 {
        // Creating links is faster than creating files; a file can have only a limited number of them.
        if number % 50_000 == 0 {
            fs::write(filler.join(number.to_string()), "").unwrap();
        }
        let from = filler.join((number / 50_000 * 50_000).to_string());
        let _ = fs::hard_link(from, filler.join(number.to_string()));
    }
    fs::create_dir_all(fixture.path("workspace/z/y")).unwrap();
    let result = fixture.run(fixture.shell("mkdir z/y/.git")).await;
    assert_eq!(
        result.outcome.clean_up.removed,
        in_workspace(&fixture, &["z/y/.git"]),
        "{result:?}"
    );
}

#[tokio::test]
async fn the_setuid_and_setgid_bits_cannot_be_set() {
    let fixture = Fixture::new();
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
        let result = fixture.run(fixture.attempt(&attempt)).await;
        assert!(
            result.stdout.starts_with("refused"),
            "{attempt}: {result:?}"
        );
    }
    let result = fixture
        .run(fixture.shell("chmod 750 file && mkdir -m 755 d"))
        .await;
    assert_eq!(result.outcome.exit, ExitKind::Code(0), "{result:?}");
}

#[tokio::test]
async fn the_setuid_bit_is_cleared_afterwards_even_if_the_filter_failed() {
    let layers = Layers {
        seccomp: Layer::LeftOut,
        ..Layers::default()
    };
    let fixture = Fixture::new().with_layers(layers);
    let result = fixture
        .run(fixture.shell("mkdir made; cp /bin/true made/x; chmod 6755 made/x"))
        .await;
    assert_eq!(result.outcome.exit, ExitKind::Code(0), "{result:?}");
    let made = fixture.path("workspace/made/x");
    assert_eq!(result.outcome.clean_up.cleared, std::slice::from_ref(&made));
    assert_eq!(
        fs::metadata(made).unwrap().permissions().mode() & 0o7777,
        0o755
    );
}

#[tokio::test]
async fn a_directory_inherits_the_setgid_bit() {
    let fixture = Fixture::new();
    let shared = fixture.path("workspace/shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o2755)).unwrap();
    let result = fixture.run(fixture.shell("mkdir shared/new")).await;
    assert_eq!(result.outcome.exit, ExitKind::Code(0), "{result:?}");
    let mode = fs::metadata(shared.join("new"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o2000, 0o2000);
    assert!(result.outcome.clean_up.is_empty(), "{result:?}");
}

#[tokio::test]
async fn new_startup_files_in_the_home_are_removed_and_other_dotfiles_reported() {
    let mut fixture = Fixture::new();
    let workspace = fixture.path("workspace");
    fs::create_dir_all(workspace.join(".config/tool")).unwrap();
    fs::write(workspace.join(".shrc"), "mine").unwrap();
    fixture.policy.hide_dotfiles_in = Some(workspace.clone());
    let result = fixture
        .run(fixture.shell("cat .shrc; echo x > .zshrc; mkdir .cache; echo x > visible"))
        .await;
    let report = result.outcome.clean_up;
    assert_eq!(report.removed, in_workspace(&fixture, &[".zshrc"]));
    assert_eq!(report.remaining, in_workspace(&fixture, &[".cache"]));
    assert!(!result.stdout.contains("mine") && workspace.join("visible").exists());
    assert!(workspace.join(".shrc").exists() && workspace.join(".config/tool").exists());
}

fn set_mode(path: &std::path::Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn files_in_a_directory_that_its_owner_made_inaccessible_stay() {
    for mode in [0o300, 0o400] {
        let fixture = Fixture::new();
        let closed = fixture.path("workspace/closed");
        fs::create_dir_all(closed.join("proj/.git")).unwrap();
        fs::write(closed.join(".envrc"), "mine").unwrap();
        set_mode(&closed, mode);
        // A protected file in an inaccessible directory cannot be covered, so nothing may run.
        if let Ok(mut child) = fixture
            .launcher
            .spawn(&fixture.policy, fixture.shell("touch new"))
            && let Ok(outcome) = child.wait().await
        {
            assert!(outcome.clean_up.removed.is_empty(), "{outcome:?}");
        }
        let now = fs::metadata(&closed).unwrap().permissions().mode();
        assert_eq!(now & 0o7777, mode);
        set_mode(&closed, 0o755);
        assert!(closed.join("proj/.git").exists() && closed.join(".envrc").exists());
    }
}

#[tokio::test]
async fn a_command_cannot_hide_files_from_the_next_scan_by_changing_modes() {
    let fixture = Fixture::new();
    fs::create_dir_all(fixture.path("workspace/sub/.vscode")).unwrap();
    for close in [
        "chmod 0300 .",
        "chmod 0300 sub",
        "chmod 0400 sub",
        "chmod 0 sub .",
    ] {
        fixture.run(fixture.shell(close)).await;
        let script = "chmod 755 . sub; echo x >> .git/config; echo x > sub/.vscode/tasks.json; echo x > AGENTS.md; true";
        let result = fixture.run(fixture.shell(script)).await;
        assert_eq!(
            result.outcome.clean_up.removed,
            in_workspace(&fixture, &["AGENTS.md"]),
            "{close}: {result:?}"
        );
        let config = fs::read_to_string(fixture.path("workspace/.git/config")).unwrap();
        assert!(!config.contains('x'), "{close}: {config}");
        assert!(!fixture.path("workspace/sub/.vscode/tasks.json").exists());
    }
}

#[tokio::test]
async fn a_hard_link_to_a_protected_link_is_new() {
    let fixture = Fixture::new();
    let workspace = fixture.path("workspace");
    fs::create_dir_all(workspace.join("envs")).unwrap();
    fs::write(workspace.join("envs/dev"), "mine").unwrap();
    std::os::unix::fs::symlink("envs/dev", workspace.join(".envrc")).unwrap();
    let script = "mkdir -p new/envs; echo evil > new/envs/dev; ln -P .envrc new/.envrc";
    let result = fixture.run(fixture.shell(script)).await;
    assert_eq!(
        result.outcome.clean_up.removed,
        in_workspace(&fixture, &["new/.envrc"]),
        "{result:?}"
    );
}

#[tokio::test]
async fn a_protected_file_that_the_user_saves_meanwhile_stays() {
    let fixture = Fixture::new();
    let file = fixture.path("workspace/AGENTS.md");
    fs::write(&file, "old").unwrap();
    let mut command = fixture.shell("echo started; cat");
    command.stdin = lango_sandbox::Stdin::Piped;
    let mut child = fixture.launcher.spawn(&fixture.policy, command).unwrap();
    let mut line = [0; 8];
    tokio::io::AsyncReadExt::read_exact(child.stdout.as_mut().unwrap(), &mut line)
        .await
        .unwrap();
    fs::write(fixture.path("workspace/AGENTS.md.new"), "new").unwrap();
    fs::rename(fixture.path("workspace/AGENTS.md.new"), &file).unwrap();
    drop(child.stdin.take());
    let outcome = child.wait().await.unwrap();
    assert!(outcome.clean_up.is_empty(), "{outcome:?}");
    assert_eq!(fs::read_to_string(file).unwrap(), "new");
}

#[tokio::test]
async fn a_file_that_one_command_planted_cannot_be_restored_by_another() {
    let mut fixture = Fixture::new();
    let home = fixture.path("home");
    let launcher = fixture.launcher.clone().with_trash(home.join("trash"));
    fixture.launcher = launcher.with_records(home.join("clean-up"));
    let start = |script: &str| {
        let mut command = fixture.shell(script);
        command.stdin = lango_sandbox::Stdin::Piped;
        let mut child = fixture.launcher.spawn(&fixture.policy, command).unwrap();
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
    // The second command starts while the files of the first exist, and puts them back after the first one's clean-up.
    let plant =
        "mkdir .vscode; echo evil > .npmrc; ln .npmrc stash; echo planted; read x; mv .vscode dir";
    let mut first = start(plant).await;
    let mut second = start("echo ready; read x; mv stash .npmrc; mv dir .vscode").await;
    drop(first.stdin.take());
    first.wait().await.unwrap();
    drop(second.stdin.take());
    let outcome = second.wait().await.unwrap();
    for name in [".npmrc", ".vscode"] {
        let path = fixture.path("workspace").join(name);
        assert!(fs::symlink_metadata(&path).is_err(), "{name}: {outcome:?}");
    }
}
