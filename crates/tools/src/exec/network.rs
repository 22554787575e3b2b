//! Network access of commands that may contact only listed hosts: each command has its own proxy, which lives as long
//! as the command.
//!
//! The command runs in its own network namespace, and the proxy is the only way out, so a program that ignores the
//! proxy reaches nothing. The tool's result lists refused destinations.

use lango_core::Caller;
use lango_net::{
    Credentials, Egress, HostList, HostPattern, Proxy, ProxyHandle, ProxyOptions, Refusal,
};
use lango_sandbox::Child;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The configuration key of the hosts.
const HOSTS_KEY: &str = "tools.exec.network";

/// Maximum number of refused destinations in a result.
const MAX_REFUSALS: usize = 20;

/// The network access of commands with [`Network::Proxied`](lango_sandbox::Network::Proxied).
#[derive(Debug, Clone)]
pub struct CommandProxy {
    /// The egress guard with the turn's budget.
    pub egress: Egress,
    /// The only hosts that commands may contact.
    pub hosts: Vec<HostPattern>,
}

impl CommandProxy {
    /// Serves the listener of a newly started command.
    pub(super) async fn serve(
        &self,
        child: &mut Child,
        caller: &Caller,
        credentials: Option<Credentials>,
    ) -> io::Result<ProxyHandle> {
        let listeners = child.listeners().await?;
        let options = ProxyOptions {
            only_hosts: Some(HostList {
                hosts: self.hosts.clone(),
                key: HOSTS_KEY.to_owned(),
            }),
            budget: self.egress.budgets().of(&caller.session, &caller.turn),
            credentials,
        };
        Proxy::serve(listeners.proxy, self.egress.clone(), options)
    }
}

/// The proxy of one command, with the refusals so far.
#[derive(Debug, Default)]
pub(crate) struct CommandTraffic(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    proxy: Option<ProxyHandle>,
    refusals: Vec<Refusal>,
    unnamed: u64,
    /// Notes about secrets.
    remarks: Vec<String>,
}

impl CommandTraffic {
    pub(super) fn start(&self, proxy: ProxyHandle) {
        self.lock().proxy = Some(proxy);
    }

    /// Adds notes for the result.
    pub(super) fn add_remarks(&self, remarks: Vec<String>) {
        self.lock().remarks.extend(remarks);
    }

    /// Stops the proxy. Its refusals stay available.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.collect();
        state.proxy = None;
    }

    /// Returns a line for each refused destination, and the notes about secrets.
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
        remarks.extend(state.remarks.iter().cloned());
        remarks
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Collects the proxy's refusals since the last call.
    fn collect(&mut self) {
        let fresh = self.proxy.as_ref().map(ProxyHandle::refusals);
        for refusal in fresh.into_iter().flatten() {
            let is_same = |known: &&mut Refusal| {
                (&known.destination, &known.reason) == (&refusal.destination, &refusal.reason)
            };
            if let Some(known) = self.refusals.iter_mut().find(is_same) {
                known.count += refusal.count;
            } else if self.refusals.len() < MAX_REFUSALS {
                self.refusals.push(refusal);
            } else {
                self.unnamed += refusal.count;
            }
        }
    }
}
