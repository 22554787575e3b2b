//! A command that may use the network reaches addresses, and nothing besides.

use crate::world::World;
use lango_sandbox::Network;

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
