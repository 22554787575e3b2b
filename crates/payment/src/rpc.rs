//! JSON-RPC over the guarded HTTP client. The user configured the host, so the client may contact exactly this host,
//! even on a private network. The node's responses are not trusted: a malicious node can hide payments or make lango
//! show fake ones, but it cannot move money.

use crate::error::PaymentError;
use lango_net::{
    Budget, Egress, EgressLimits, EgressRules, HeaderMap, HostPattern, OutgoingRequest, Url,
    is_this_machine,
};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Maximum size of a response, in bytes.
const MAX_RESPONSE_BYTES: usize = 1 << 20;

/// Maximum length of an error message, in characters. Longer ones are truncated.
const MAX_MESSAGE_CHARS: usize = 300;

/// Timeout of one call.
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
    /// Creates a client for a URL: `https`, or `http` on this machine. Does not connect yet.
    pub fn new(url: &str) -> Result<Self, String> {
        let start = "it must start with `https://`, or `http://` on this machine";
        let url = Url::parse(url).map_err(|_| format!("it is not a URL; {start}"))?;
        let port = url.port_or_known_default().unwrap_or(443);
        let host = url.host_str().unwrap_or_default();
        match url.scheme() {
            "https" => {}
            "http" if is_this_machine(&url) => {}
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

    pub(crate) async fn call(
        &self,
        method: &'static str,
        params: Value,
    ) -> Result<Value, PaymentError> {
        let unreachable = |detail: String| PaymentError::Unreachable { method, detail };
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let outgoing = OutgoingRequest {
            url: &self.url,
            headers: &HeaderMap::new(),
            json: Some(request.to_string().into_bytes()),
            max_bytes: MAX_RESPONSE_BYTES,
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
            let message = message.take(MAX_MESSAGE_CHARS).collect();
            return Err(PaymentError::Refused { method, message });
        }
        if answer["id"] != id {
            return Err(unreachable("the response is for another call".to_owned()));
        }
        match answer.get_mut("result") {
            Some(result) => Ok(result.take()),
            None => Err(unreachable("the response has no result".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_rpc_url_is_encrypted_or_on_this_machine() {
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
