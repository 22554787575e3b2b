//! JSON-RPC over the guarded client. The user configured the host, so its own address is allowed wherever it is, and no other
//! is. What a node says is not trusted: it can hide a payment or invent one on lango's screen, but cannot move money.

use crate::error::PaymentError;
use lango_net::{Budget, Egress, EgressLimits, EgressRules, HeaderMap, HostPattern, Outgoing, Url};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The longest answer in bytes.
const MOST_BYTES: usize = 1 << 20;

/// The longest text of an error that is shown, in characters.
const MOST_MESSAGE: usize = 300;

/// The time that one call may take.
const CALL_TIME: Duration = Duration::from_secs(15);

/// An RPC endpoint.
#[derive(Debug)]
pub struct Rpc {
    url: Url,
    egress: Egress,
    budget: Budget,
    next_id: AtomicU64,
}

impl Rpc {
    /// Creates a client for a URL: `https`, or `http` on this machine. Contacts nothing yet.
    pub fn new(url: &str) -> Result<Self, String> {
        let start = "it must begin with `https://`, or `http://` on this machine";
        let url = Url::parse(url).map_err(|_| format!("it is not a URL; {start}"))?;
        let port = url.port_or_known_default().unwrap_or(443);
        let host = url.host_str().unwrap_or_default();
        let is_here = is_loopback(&url);
        match url.scheme() {
            "https" => {}
            "http" if is_here => {}
            _ => return Err(start.to_owned()),
        }
        let mut allow = vec![format!("{host}:{port}")];
        if host == "localhost" {
            allow.extend([format!("127.0.0.1:{port}"), format!("[::1]:{port}")]);
        }
        let allow = allow.iter().map(|entry| entry.parse::<HostPattern>());
        let rules = EgressRules {
            allow: allow
                .collect::<Result<_, _>>()
                .map_err(|error| error.to_string())?,
            deny: Vec::new(),
        };
        let limits = EgressLimits {
            requests: u64::MAX,
            total_bytes: u64::MAX,
            request_time: CALL_TIME,
            ..EgressLimits::default()
        };
        let budget = Budget::new(&limits);
        Ok(Self {
            url,
            egress: Egress::new(rules, limits),
            budget,
            next_id: AtomicU64::new(1),
        })
    }

    /// Calls a method.
    pub(crate) async fn call(
        &self,
        method: &'static str,
        params: Value,
    ) -> Result<Value, PaymentError> {
        let unreachable = |detail: String| PaymentError::Unreachable { method, detail };
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let outgoing = Outgoing {
            url: &self.url,
            headers: &HeaderMap::new(),
            json: Some(request.to_string().into_bytes()),
            most_bytes: MOST_BYTES,
        };
        let answered = self.egress.client().send(outgoing, &self.budget).await;
        let answered = answered.map_err(|error| unreachable(lango_core::error_chain(&error)))?;
        let mut answer: Value = serde_json::from_slice(&answered.body)
            .map_err(|_| unreachable(format!("status {} without JSON", answered.status)))?;
        if let Some(error) = answer.get("error").filter(|error| !error.is_null()) {
            let message = error["message"]
                .as_str()
                .unwrap_or("an error without a message");
            let message = message.chars().filter(|letter| !letter.is_control());
            let message = message.take(MOST_MESSAGE).collect();
            return Err(PaymentError::Refused { method, message });
        }
        if answer["id"] != id {
            return Err(unreachable("it answers another call".to_owned()));
        }
        match answer.get_mut("result") {
            Some(result) => Ok(result.take()),
            None => Err(unreachable("it answers without a result".to_owned())),
        }
    }
}

/// Returns whether a URL names this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    let address = literal.parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_rpc_is_encrypted_or_on_this_machine() {
        for right in [
            "https://example.com/v2/key",
            "http://127.0.0.1:8545",
            "http://[::1]:1",
        ] {
            assert!(Rpc::new(right).is_ok(), "{right}");
        }
        for wrong in [
            "http://example.com",
            "http://10.0.0.1:8545",
            "ws://127.0.0.1",
            "x",
        ] {
            assert!(Rpc::new(wrong).is_err(), "{wrong}");
        }
    }
}
