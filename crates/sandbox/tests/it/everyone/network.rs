//! A command that may use the network reaches addresses, and nothing besides.

use crate::world::World;
use lango_sandbox::{
    Child, FILES_PORT, Helper, LaunchError, Launcher, Layer, Layers, Listeners, Network, PROXY_PORT,
};
use std::time::Duration;
use tokio::io::AsyncReadExt;

#[tokio::test(flavor = "multi_thread")]
async fn with_the_network_addresses_are_reached_and_sockets_of_programs_are_not() {
    let mut world = World::new();
    world.policy.network = Network::Host;
    let done = world.run(world.attempt("tcp {port}")).await;
    assert!(done.stdout.starts_with("possible"), "{done:?}");
    let refused = [
        "unix {out}/socket",
        "abstract {abstract}",
        "raw",
        "packet",
        "netlink",
        "vsock",
        "unshare-user",
        "signal {pid}",
        "open-for-reading /etc/shadow",
    ];
    for words in refused {
        let done = world.run(world.attempt(words)).await;
        assert!(done.stdout.starts_with("refused"), "{words}: {done:?}");
    }
    let done =
        world
            .run(world.shell(
                "cat /etc/resolv.conf /etc/hosts && ls /etc/ssl/certs > /dev/null && echo seen",
            ))
            .await;
    assert!(done.stdout.ends_with("seen\n"), "{done:?}");
}

/// Starts a command with listeners of its own, and takes them.
async fn start_proxied(world: &mut World, words: &str) -> (Child, Listeners) {
    world.policy.network = Network::Proxied;
    let command = world.attempt(words);
    let mut child = world.launcher.spawn(&world.policy, command).unwrap();
    let listeners = child.listeners().await.unwrap();
    (child, listeners)
}

async fn printed(child: &mut Child) -> String {
    let mut text = String::new();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxied_command_reaches_its_two_listeners_and_nobody_else_does() {
    for port in [PROXY_PORT, FILES_PORT] {
        let mut world = World::new();
        let (mut child, listeners) = start_proxied(&mut world, &format!("tcp {port}")).await;
        assert!(child.listeners().await.is_err(), "they are handed out once");
        let (used, unused) = match port {
            PROXY_PORT => (listeners.proxy, listeners.files),
            _ => (listeners.files, listeners.proxy),
        };
        let used = tokio::net::TcpListener::from_std(used).unwrap();
        let (_, client) = tokio::time::timeout(Duration::from_secs(10), used.accept())
            .await
            .unwrap()
            .unwrap();
        assert!(client.ip().is_loopback());
        let text = printed(&mut child).await;
        assert!(text.starts_with("possible"), "{text}");
        // The same address of this machine is another one.
        let _ = std::net::TcpStream::connect(("127.0.0.1", port));
        let nobody = unused.accept().unwrap_err();
        assert_eq!(nobody.kind(), std::io::ErrorKind::WouldBlock);
        let more = tokio::time::timeout(Duration::from_millis(50), used.accept()).await;
        assert!(more.is_err(), "{more:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxied_command_reaches_nothing_else() {
    let refused = [
        "tcp {port}",
        "udp",
        "multipath",
        "raw",
        "packet",
        "old-packet",
        "netlink",
        "vsock",
        "unix {out}/socket",
        "abstract {abstract}",
        "descriptors",
        "unshare-user",
        "open-for-reading /etc/resolv.conf",
    ];
    for words in refused {
        let mut world = World::new();
        let (mut child, _listeners) = start_proxied(&mut world, words).await;
        let text = printed(&mut child).await;
        assert!(text.starts_with("refused"), "{words}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxied_command_may_serve_itself_and_check_certificates() {
    let mut world = World::new();
    world.policy.network = Network::Proxied;
    let script = "import socket, ssl\ns = socket.create_server(('127.0.0.1', 8080))\nc = socket.create_connection(('127.0.0.1', 8080))\nassert ssl.create_default_context().cert_store_stats()['x509_ca'] > 0\nprint('served')";
    let done = world
        .run(world.command(&["/usr/bin/python3", "-c", script]))
        .await;
    assert_eq!(done.stdout, "served\n", "{done:?}");
}

#[tokio::test]
async fn without_bubblewrap_a_proxied_network_is_refused() {
    let layers = Layers {
        bubblewrap: Layer::LeftOut,
        ..Layers::default()
    };
    let mut world = World::new().with_layers(layers);
    world.policy.network = Network::Proxied;
    let error = world
        .launcher
        .spawn(&world.policy, world.shell("true"))
        .unwrap_err();
    assert!(
        matches!(error, LaunchError::NeedsBubblewrap { .. }),
        "{error}"
    );
    assert!(error.to_string().contains("bubblewrap"), "{error}");
}

#[tokio::test]
async fn listeners_say_why_they_do_not_come() {
    let world = World::new();
    let command = world.shell("true");
    let mut child = world.launcher.spawn(&world.policy, command).unwrap();
    let error = child.listeners().await.unwrap_err();
    assert!(error.to_string().contains("no listeners"), "{error}");

    let layers = Layers {
        cgroup: Layer::LeftOut,
        ..Layers::default()
    };
    let mut world = World::new().with_layers(layers);
    world.policy.network = Network::Proxied;
    let missing = world.path("outside/none");
    world.launcher = Launcher::new(Helper {
        program: missing,
        arguments: Vec::new(),
    });
    let mut child = world
        .launcher
        .spawn(&world.policy, world.shell("true"))
        .unwrap();
    let error = child.listeners().await.unwrap_err();
    assert!(error.to_string().contains("could not be set up"), "{error}");
}
