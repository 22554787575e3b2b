//! The network of commands that may contact only some hosts: a proxy for each of them, which lives as long as the command.
//!
//! The command is in a network of its own whose one way out is that proxy, so a program that does not use it reaches
//! nothing. What the proxy refused is told with the result.

use lango_core::Caller;
use lango_net::{Egress, HostPattern, Proxy, ProxyHandle, ProxyOptions, Refusal};
use lango_sandbox::{Child, PROXY_PORT};
use std::ffi::OsString;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many destinations a result names.
const MOST_REFUSALS: usize = 20;

/// The names that programs look for a proxy under.
const PROXY_VARIABLES: [&str; 6] = [
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
];
/// Hosts that are contacted without it: none.
const DIRECT_VARIABLES: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// What commands with [`Network::Proxied`](lango_sandbox::Network::Proxied) may contact.
#[derive(Debug, Clone)]
pub struct CommandProxy {
    /// The rules for every connection, and what a turn may use of the network.
    pub egress: Egress,
    /// The only hosts that commands may contact.
    pub hosts: Vec<HostPattern>,
}

impl CommandProxy {
    /// Serves the listener of a command that was just started.
    pub(super) async fn serve(
        &self,
        child: &mut Child,
        caller: &Caller,
    ) -> io::Result<ProxyHandle> {
        let listeners = child.listeners().await?;
        let options = ProxyOptions {
            only_hosts: Some(self.hosts.clone()),
            budget: self.egress.budgets().of(&caller.session, &caller.turn),
        };
        Proxy::serve(listeners.proxy, self.egress.clone(), options)
    }
}

/// The variables that lead programs to the proxy.
pub(super) fn variables() -> impl Iterator<Item = (OsString, OsString)> {
    let proxy = format!("http://127.0.0.1:{PROXY_PORT}");
    let with = PROXY_VARIABLES.map(|name| (name.into(), proxy.clone().into()));
    let without = DIRECT_VARIABLES.map(|name| (name.into(), OsString::new()));
    with.into_iter().chain(without)
}

/// The proxy of one command, and what it refused so far.
#[derive(Debug, Default)]
pub(crate) struct Traffic(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    proxy: Option<ProxyHandle>,
    refusals: Vec<Refusal>,
    unnamed: u64,
}

impl Traffic {
    pub(super) fn start(&self, proxy: ProxyHandle) {
        self.lock().proxy = Some(proxy);
    }

    /// Ends the proxy. What it refused stays known.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.collect();
        state.proxy = None;
    }

    /// A line for each destination that was refused.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let mut state = self.lock();
        state.collect();
        let mut remarks: Vec<String> = state
            .refusals
            .iter()
            .map(|refusal| format!("network: {refusal}"))
            .collect();
        if state.unnamed > 0 {
            remarks.push(format!(
                "network: {} more requests were refused",
                state.unnamed
            ));
        }
        remarks
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes over what the proxy refused since the last time.
    fn collect(&mut self) {
        let fresh = self.proxy.as_ref().map(ProxyHandle::refusals);
        for refusal in fresh.into_iter().flatten() {
            let is_same = |known: &&mut Refusal| {
                (&known.destination, &known.reason) == (&refusal.destination, &refusal.reason)
            };
            if let Some(known) = self.refusals.iter_mut().find(is_same) {
                known.count += refusal.count;
            } else if self.refusals.len() < MOST_REFUSALS {
                self.refusals.push(refusal);
            } else {
                self.unnamed += refusal.count;
            }
        }
    }
}
