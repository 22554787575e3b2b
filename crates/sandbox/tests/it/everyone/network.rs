//! A command with network access reaches addresses and nothing else.

use crate::fixture::Fixture;
use lango_sandbox::{
    Child, FILES_PORT, HelperCommand, LaunchError, Launcher, Layer, Layers, Listeners, Network,
    PROXY_PORT,
};
use std::time::Duration;
use tokio::io::AsyncReadExt;

#[tokio::test(flavor = "multi_thread")]
async fn with_network_access_commands_reach_addresses_but_no_unix_sockets() {
    let mut fixture = Fixture::new();
    fixture.policy.network = Network::Host;
    let result = fixture.run(fixture.attempt("tcp {port}")).await;
    assert!(result.stdout.starts_with("possible"), "{result:?}");
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
        let result = fixture.run(fixture.attempt(words)).await;
        assert!(result.stdout.starts_with("refused"), "{words}: {result:?}");
    }
    let result =
        fixture
            .run(fixture.shell(
                "cat /etc/resolv.conf /etc/hosts && ls /etc/ssl/certs > /dev/null && echo seen",
            ))
            .await;
    assert!(result.stdout.ends_with("seen\n"), "{result:?}");
}

/// Starts a command with a proxied network and takes its listeners.
async fn start_proxied(fixture: &mut Fixture, words: &str) -> (Child, Listeners) {
    fixture.policy.network = Network::Proxied;
    let command = fixture.attempt(words);
    let mut child = fixture.launcher.spawn(&fixture.policy, command).unwrap();
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
async fn only_a_proxied_command_reaches_its_two_listeners() {
    for port in [PROXY_PORT, FILES_PORT] {
        let mut fixture = Fixture::new();
        let (mut child, listeners) = start_proxied(&mut fixture, &format!("tcp {port}")).await;
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
        // The same address on this machine is not that of the listener.
        let _ = std::net::TcpStream::connect(("127.0.0.1", port));
        let error = unused.accept().unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
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
        let mut fixture = Fixture::new();
        let (mut child, _listeners) = start_proxied(&mut fixture, words).await;
        let text = printed(&mut child).await;
        assert!(text.starts_with("refused"), "{words}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxied_command_can_run_a_server_and_check_certificates() {
    let mut fixture = Fixture::new();
    fixture.policy.network = Network::Proxied;
    let script = "import socket, ssl\ns = socket.create_server(('127.0.0.1', 8080))\nc = socket.create_connection(('127.0.0.1', 8080))\nassert ssl.create_default_context().cert_store_stats()['x509_ca'] > 0\nprint('served')";
    let result = fixture
        .run(fixture.command(&["/usr/bin/python3", "-c", script]))
        .await;
    assert_eq!(result.stdout, "served\n", "{result:?}");
}

#[tokio::test]
async fn without_bubblewrap_a_proxied_network_is_refused() {
    let layers = Layers {
        bubblewrap: Layer::LeftOut,
        ..Layers::default()
    };
    let mut fixture = Fixture::new().with_layers(layers);
    fixture.policy.network = Network::Proxied;
    let error = fixture
        .launcher
        .spawn(&fixture.policy, fixture.shell("true"))
        .unwrap_err();
    assert!(
        matches!(error, LaunchError::NeedsBubblewrap { .. }),
        "{error}"
    );
    assert!(error.to_string().contains("bubblewrap"), "{error}");
}

#[tokio::test]
async fn missing_listeners_are_explained() {
    let fixture = Fixture::new();
    let command = fixture.shell("true");
    let mut child = fixture.launcher.spawn(&fixture.policy, command).unwrap();
    let error = child.listeners().await.unwrap_err();
    assert!(error.to_string().contains("no listeners"), "{error}");

    let layers = Layers {
        cgroup: Layer::LeftOut,
        ..Layers::default()
    };
    let mut fixture = Fixture::new().with_layers(layers);
    fixture.policy.network = Network::Proxied;
    let missing = fixture.path("outside/none");
    fixture.launcher = Launcher::new(HelperCommand {
        program: missing,
        arguments: Vec::new(),
    });
    let mut child = fixture
        .launcher
        .spawn(&fixture.policy, fixture.shell("true"))
        .unwrap();
    let error = child.listeners().await.unwrap_err();
    assert!(error.to_string().contains("could not be set up"), "{error}");
}
