//! The browser profile lets a command make user namespaces below its own. As root in one of those it has all capabilities, over
//! nothing: everything that holds a command holds it there too.

use super::attempts::{Must, ROWS, Run};
use super::battery::verdict;
use crate::world::{World, program};
use lango_sandbox::{Command, LaunchError, Layer, Layers, Network, Profile};

/// What the profile allows on purpose, or what has another meaning in a namespace of its own.
const ALLOWED: &[&str] = &[
    "make a user namespace",
    "make a user namespace with a process",
    "change the root the old way",
    // Sockets that reach nothing but the listeners.
    "make a socket of the newer internet",
    // Of its own namespace.
    "become root",
    "have capabilities",
    // The prober's own processes.
    "see other processes",
];

/// What only a process in a user namespace could hope for, and what only the browser profile could have opened.
const MORE: &[(&str, &str)] = &[
    ("give a file capabilities", "give-capabilities {ws}/file"),
    ("raise its limits", "raise-limits"),
    ("make an old packet socket", "old-packet"),
    ("take away a cover in /proc", "umount /proc/sys"),
    (
        "write a setting of the network",
        "open-for-writing /proc/sys/net/ipv4/ip_forward",
    ),
    (
        "write a range of memory types",
        "open-for-writing /proc/mtrr",
    ),
    (
        "write the kernel's interrupts",
        "open-for-writing /proc/irq/default_smp_affinity",
    ),
    ("change the limits of the guard", "write /proc/1/limits x"),
    (
        "be spared when memory runs out",
        "write /proc/self/oom_score_adj -1000",
    ),
    (
        "change the user map of the guard",
        "write /proc/1/uid_map x",
    ),
];

const AT_A_TIME: usize = 8;

fn browser_world() -> World {
    let mut world = World::new();
    world.policy.network = Network::Proxied;
    world
}

fn nested(world: &World, nesting: &str, run: Run) -> Command {
    let prober = program("sandbox-prober").display().to_string();
    let mut command = match run {
        Run::Prober(words) => world.attempt(&format!("{nesting} {words}")),
        Run::Shell(script) => {
            let script = world.fill_in(&format!("{{ {script}\n}} && echo got-out"));
            world.command(&[&prober, nesting, "run", "sh", "-c", &script])
        }
    };
    command.profile = Profile::Browser;
    command
}

/// What got out, if it did.
async fn judge(name: &'static str, nesting: &'static str, run: Run) -> Option<String> {
    let world = browser_world();
    let done = world.run(nested(&world, nesting, run)).await;
    let (possible, detail) = verdict(run, &done);
    println!("{nesting:<13}{name:<46}{detail}");
    possible.then(|| format!("{nesting}: {name}: {detail}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn root_of_a_nested_user_namespace_gets_out_no_more_than_others() {
    let rows = ROWS
        .iter()
        .filter(|row| row.must == Must::Fail && !ALLOWED.contains(&row.name));
    let attempts: Vec<(&str, Run)> = rows
        .map(|row| (row.name, row.run))
        .chain(MORE.iter().map(|(name, words)| (*name, Run::Prober(words))))
        .collect();
    let both: Vec<_> = ["nested", "nested-apart"]
        .into_iter()
        .flat_map(|nesting| {
            attempts
                .iter()
                .map(move |(name, run)| (*name, nesting, *run))
        })
        // Its first process is itself.
        .filter(|(name, nesting, _)| (*name, *nesting) != ("signal the guard", "nested-apart"))
        .collect();
    let mut got_out = Vec::new();
    for some in both.chunks(AT_A_TIME) {
        let tasks: Vec<_> = some
            .iter()
            .map(|(name, nesting, run)| tokio::spawn(judge(name, nesting, *run)))
            .collect();
        for task in tasks {
            got_out.extend(task.await.unwrap());
        }
    }
    println!("{} attempts from nested namespaces", both.len());
    assert_eq!(got_out, Vec::<String>::new());
}

#[tokio::test]
async fn a_nested_root_is_really_one() {
    let world = browser_world();
    for nesting in ["nested", "nested-apart", "nested nested-apart"] {
        for words in ["capabilities", "become-root", "chroot {ws}"] {
            let mut command = world.attempt(&format!("{nesting} {words}"));
            command.profile = Profile::Browser;
            let done = world.run(command).await;
            assert!(
                done.stdout.starts_with("possible"),
                "{nesting} {words}: {done:?}"
            );
        }
    }
}

#[tokio::test]
async fn the_browser_profile_without_bubblewrap_is_refused() {
    let layers = Layers {
        bubblewrap: Layer::LeftOut,
        ..Layers::default()
    };
    let world = World::new().with_layers(layers);
    let mut command = world.shell("true");
    command.profile = Profile::Browser;
    let error = world.launcher.spawn(&world.policy, command).unwrap_err();
    assert!(
        matches!(error, LaunchError::NeedsBubblewrap { .. }),
        "{error}"
    );
    let error = world.launcher.check_nesting().await.unwrap_err();
    assert!(
        matches!(error, LaunchError::NeedsBubblewrap { .. }),
        "{error}"
    );
}

/// Tries nesting on a machine that allows only so many user namespaces.
fn check_nesting(most: u32) -> String {
    let script = "echo $1 > /proc/sys/user/max_user_namespaces && exec \"$0\" check-nesting";
    let output = std::process::Command::new("unshare")
        .args(["--user", "--map-root-user", "sh", "-c", script])
        .arg(program("sandbox-stand-in"))
        .arg(most.to_string())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn nesting_is_found_out_by_trying() {
    World::new().launcher.check_nesting().await.unwrap();
    assert_eq!(check_nesting(100), "nested\n");
    // Enough for bubblewrap alone.
    let text = check_nesting(2);
    let expected = "a browser cannot set up its own sandbox here: create a user namespace";
    assert!(text.starts_with(expected), "{text}");
}
