//! The browser profile lets a command create nested user namespaces. As root in one of them it has all capabilities,
//! but only there: every restriction of a command still applies.

use super::attempts::{Must, ROWS, Run};
use super::battery::evaluate;
use crate::fixture::{Fixture, program};
use lango_sandbox::{Command, LaunchError, Layer, Layers, Network, SandboxProfile};

/// Attempts that the profile allows on purpose, or that mean something else in a separate namespace.
const ALLOWED: &[&str] = &[
    "create a user namespace",
    "create a user namespace with clone",
    "change the root with chroot",
    // The socket reaches only the listeners.
    "create an IPv6 socket",
    // Only in the nested namespace.
    "become root",
    "have capabilities",
    // The prober's own processes.
    "see other processes",
];

/// Further attempts, which only a user namespace or the browser profile could make possible.
const MORE: &[(&str, &str)] = &[
    ("give a file capabilities", "give-capabilities {ws}/file"),
    ("raise its limits", "raise-limits"),
    ("create an obsolete packet socket", "old-packet"),
    ("remove a cover in /proc", "umount /proc/sys"),
    (
        "write a network setting",
        "open-for-writing /proc/sys/net/ipv4/ip_forward",
    ),
    ("write memory type ranges", "open-for-writing /proc/mtrr"),
    (
        "write interrupt settings",
        "open-for-writing /proc/irq/default_smp_affinity",
    ),
    ("change the limits of the guard", "write /proc/1/limits x"),
    (
        "avoid the OOM killer",
        "write /proc/self/oom_score_adj -1000",
    ),
    (
        "change the user map of the guard",
        "write /proc/1/uid_map x",
    ),
];

const CONCURRENCY: usize = 8;

fn browser_fixture() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.policy.network = Network::Proxied;
    fixture
}

fn nested(fixture: &Fixture, nesting: &str, run: Run) -> Command {
    let prober = program("sandbox-prober").display().to_string();
    let mut command = match run {
        Run::Prober(words) => fixture.attempt(&format!("{nesting} {words}")),
        Run::Shell(script) => {
            let script = fixture.fill_in(&format!("{{ {script}\n}} && echo escaped"));
            fixture.command(&[&prober, nesting, "run", "sh", "-c", &script])
        }
    };
    command.profile = SandboxProfile::Browser;
    command
}

/// Makes an attempt from nested namespaces; returns a description if it escaped.
async fn check_attempt(name: &'static str, nesting: &'static str, run: Run) -> Option<String> {
    let fixture = browser_fixture();
    let result = fixture.run(nested(&fixture, nesting, run)).await;
    let (possible, detail) = evaluate(run, &result);
    println!("{nesting:<13}{name:<46}{detail}");
    possible.then(|| format!("{nesting}: {name}: {detail}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn root_of_a_nested_user_namespace_cannot_escape() {
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
        // There, process 1 is the prober itself.
        .filter(|(name, nesting, _)| (*name, *nesting) != ("signal the guard", "nested-apart"))
        .collect();
    let mut escaped = Vec::new();
    for some in both.chunks(CONCURRENCY) {
        let tasks: Vec<_> = some
            .iter()
            .map(|(name, nesting, run)| tokio::spawn(check_attempt(name, nesting, *run)))
            .collect();
        for task in tasks {
            escaped.extend(task.await.unwrap());
        }
    }
    println!("{} attempts from nested namespaces", both.len());
    assert_eq!(escaped, Vec::<String>::new());
}

#[tokio::test]
async fn the_prober_is_really_root_in_nested_namespaces() {
    let fixture = browser_fixture();
    for nesting in ["nested", "nested-apart", "nested nested-apart"] {
        for words in ["capabilities", "become-root", "chroot {ws}"] {
            let mut command = fixture.attempt(&format!("{nesting} {words}"));
            command.profile = SandboxProfile::Browser;
            let result = fixture.run(command).await;
            assert!(
                result.stdout.starts_with("possible"),
                "{nesting} {words}: {result:?}"
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
    let fixture = Fixture::new().with_layers(layers);
    let mut command = fixture.shell("true");
    command.profile = SandboxProfile::Browser;
    let error = fixture
        .launcher
        .spawn(&fixture.policy, command)
        .unwrap_err();
    assert!(
        matches!(error, LaunchError::NeedsBubblewrap { .. }),
        "{error}"
    );
    let error = fixture.launcher.check_nesting().await.unwrap_err();
    assert!(
        matches!(error, LaunchError::NeedsBubblewrap { .. }),
        "{error}"
    );
}

/// Runs the nesting check with a limit on the number of user namespaces.
fn check_nesting(limit: u32) -> String {
    let script = "echo $1 > /proc/sys/user/max_user_namespaces && exec \"$0\" check-nesting";
    let output = std::process::Command::new("unshare")
        .args(["--user", "--map-root-user", "sh", "-c", script])
        .arg(program("sandbox-stand-in"))
        .arg(limit.to_string())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn the_nesting_check_reports_whether_namespaces_can_be_nested() {
    Fixture::new().launcher.check_nesting().await.unwrap();
    assert_eq!(check_nesting(100), "nested\n");
    // Enough only for bubblewrap.
    let text = check_nesting(2);
    let expected = "a browser cannot set up its own sandbox here: create a user namespace";
    assert!(text.starts_with(expected), "{text}");
}
