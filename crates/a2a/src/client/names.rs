//! Looking up host names, in a thread of its own.
//!
//! The system's look-up cannot be stopped, and may take half a minute where there is no network. In the runtime's pool
//! of threads it would hold up the end of the process for as long; a thread that nobody waits for does not.

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::io;
use std::net::ToSocketAddrs;
use tokio::sync::oneshot;

/// The look-up of the system.
pub(crate) struct Names;

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let (found, answer) = oneshot::channel();
            let look_up = move || {
                // Whoever asked may have lost patience.
                let _ = found.send((name.as_str(), 0).to_socket_addrs());
            };
            std::thread::Builder::new()
                .name("name look-up".to_owned())
                .spawn(look_up)?;
            let addresses = answer
                .await
                .map_err(|_| io::Error::other("the look-up of the name broke off"))??;
            Ok(Box::new(addresses) as Addrs)
        })
    }
}
