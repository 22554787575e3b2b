//! Paid requests: `payment_fetch` against a host that verifies and settles with the official x402 packages.

use super::chain::{Chain, Program, get};
use super::wallet::{KnownKey, Setup};
use lango_core::{
    Caller, Inspection, OutputSink, PaymentQuery, PaymentState, PaymentStore, Tool, Trust,
};
use lango_net::{Egress, EgressLimits, EgressRules};
use lango_payment::{Payments, payment_tools};
use lango_store::Store;
use serde_json::{Value, json};
use std::sync::Arc;

/// An agent with `payment_fetch` and a wallet.
struct Agent {
    tool: Arc<dyn Tool>,
    payments: Payments,
    store: Arc<Store>,
    key: KnownKey,
    host: u16,
}

/// Runs all tests and returns how many there were.
pub(crate) async fn run(chain: &Chain, host: &Program) -> usize {
    for version in ["v1", "v2"] {
        a_request_is_paid_once(chain, host, version).await;
    }
    a_budget_needs_one_approval_until_it_is_spent(chain, host).await;
    a_host_that_demands_more_is_not_paid_again(chain, host).await;
    a_payment_that_the_host_submits_later_is_settled_then(chain, host).await;
    nothing_is_paid_without_need_or_permission(chain, host).await;
    6
}

impl Agent {
    fn new(number: u8, chain: &Chain, host: &Program) -> Self {
        let key = KnownKey::funded(number, chain);
        let store = Arc::new(Store::in_memory());
        let payments = Setup::new(chain.url(), &key, store.clone()).payments();
        let allow = format!("127.0.0.1:{}", host.port).parse().unwrap();
        let rules = EgressRules {
            allow: vec![allow],
            deny: Vec::new(),
        };
        let egress = Egress::new(rules, EgressLimits::default());
        let tools = payment_tools(&payments, &egress);
        let is_fetch = |tool: &Arc<dyn Tool>| tool.spec().name.as_str() == "payment_fetch";
        Self {
            tool: tools.into_iter().find(is_fetch).unwrap(),
            payments,
            store,
            key,
            host: host.port,
        }
    }

    fn caller(&self, call: &str) -> Caller {
        Caller {
            user: "local".into(),
            session: "s_1".into(),
            turn: "t_1".into(),
            agent: "vault".into(),
            call: call.into(),
            trust: Trust::Trusted,
            inspection: Inspection::default(),
            output: OutputSink::default(),
        }
    }

    /// Runs a call as the gate does. Returns whether the user must approve it, and the result.
    async fn fetch(&self, call: &str, path: &str, more: Value) -> (bool, Result<String, String>) {
        let mut arguments = json!({ "url": format!("http://127.0.0.1:{}{path}", self.host) });
        for (name, value) in more.as_object().unwrap() {
            arguments[name] = value.clone();
        }
        let arguments = Arc::new(arguments);
        let mut caller = self.caller(call);
        caller.inspection = self.tool.inspect(&caller, Arc::clone(&arguments)).await;
        let is_asked = caller.inspection.user_only.is_some();
        let ran = self.tool.run(&caller, arguments).await;
        let text = ran.map(|output| output.text);
        (is_asked, text.map_err(|error| error.message))
    }

    async fn states(&self) -> Vec<(PaymentState, u64)> {
        let query = PaymentQuery::Newest(self.key.account());
        let payments = self.store.payments(query, 100).await.unwrap();
        let states = payments
            .iter()
            .map(|payment| (payment.state, payment.amount));
        states.collect()
    }

    /// Returns the payment headers that the host has received.
    fn headers(&self) -> Vec<Value> {
        let counts: Value = serde_json::from_str(&get(self.host, "/counts")).unwrap();
        counts["payments"].as_array().unwrap().clone()
    }
}

async fn a_request_is_paid_once(chain: &Chain, host: &Program, version: &str) {
    let agent = Agent::new(if version == "v1" { 20 } else { 21 }, chain, host);
    let path = format!("/{version}/1234");
    let before = agent.headers().len();
    let (is_asked, text) = agent
        .fetch("c_1", &path, json!({ "max_amount": "0.01" }))
        .await;
    let text = text.unwrap();
    assert!(
        is_asked && text.contains("content for 1234"),
        "{version}: {text}"
    );
    assert_eq!(agent.states().await, [(PaymentState::Settled, 1234)]);
    let transfers = chain.transfers(&agent.key.address());
    assert_eq!((transfers.len(), transfers[0].amount), (1, 1234));
    assert_eq!(
        transfers[0].recipient,
        "0x209693bc6afc0c5328ba36faf03c514ef312287c"
    );
    assert_eq!(agent.headers().len(), before + 1);
    // Repeating the same call sends nothing, because the payment is settled.
    let (_, again) = agent
        .fetch("c_1", &path, json!({ "max_amount": "0.01" }))
        .await;
    assert!(again.is_err(), "{again:?}");
    assert_eq!(chain.transfers(&agent.key.address()).len(), 1);
}

async fn a_budget_needs_one_approval_until_it_is_spent(chain: &Chain, host: &Program) {
    let agent = Agent::new(22, chain, host);
    let more = json!({ "max_amount": "0.001", "budget": "0.003" });
    let mut asked = Vec::new();
    for call in 0..5 {
        let (is_asked, text) = agent
            .fetch(&format!("c_{call}"), "/v2/900", more.clone())
            .await;
        assert!(text.unwrap().contains("content for 900"));
        asked.push(is_asked);
    }
    // 3000 units pay for three requests of 900. The 300 units that are left are too few for another one.
    assert_eq!(asked, [true, false, false, true, false]);
    assert_eq!(agent.states().await.len(), 5);
    assert_eq!(chain.transfers(&agent.key.address()).len(), 5);
}

async fn a_host_that_demands_more_is_not_paid_again(chain: &Chain, host: &Program) {
    let agent = Agent::new(23, chain, host);
    let before = agent.headers().len();
    let more = json!({ "max_amount": "0.01", "budget": "1" });
    let (_, text) = agent.fetch("c_1", "/greedy/500", more.clone()).await;
    let text = text.unwrap();
    assert!(
        text.starts_with("status 402") && text.contains("unknown"),
        "{text}"
    );
    let headers = agent.headers();
    assert_eq!(headers.len(), before + 1);
    assert_eq!(agent.states().await, [(PaymentState::Submitted, 500)]);
    // After a crash the same call sends the same authorization, so a retry cannot pay twice.
    let (_, _) = agent.fetch("c_1", "/greedy/500", more).await;
    let again = agent.headers();
    assert_eq!(again.len(), before + 2);
    let payload = |value: &Value| value.as_str().unwrap().to_owned();
    assert_eq!(payload(&again[before]), payload(&again[before + 1]));
    assert!(chain.transfers(&agent.key.address()).is_empty());
    // The payment is open until the authorization has expired.
    chain.advance_time(50);
    assert_eq!(agent.payments.reconcile().await.unwrap().open, 1);
    chain.advance_time(60);
    assert_eq!(agent.payments.reconcile().await.unwrap().failed, 1);
}

async fn a_payment_that_the_host_submits_later_is_settled_then(chain: &Chain, host: &Program) {
    let agent = Agent::new(24, chain, host);
    let (_, text) = agent
        .fetch("c_1", "/slow/700", json!({ "max_amount": "0.01" }))
        .await;
    assert!(text.unwrap().contains("content on trust"));
    assert_eq!(agent.states().await, [(PaymentState::Submitted, 700)]);
    assert_eq!(get(host.port, "/settle"), "settled");
    assert_eq!(agent.payments.reconcile().await.unwrap().settled, 1);
    assert_eq!(chain.transfers(&agent.key.address()).len(), 1);
}

async fn nothing_is_paid_without_need_or_permission(chain: &Chain, host: &Program) {
    let agent = Agent::new(25, chain, host);
    let most = json!({ "max_amount": "0.0001" });
    let (_, free) = agent.fetch("c_1", "/free", most.clone()).await;
    assert!(free.unwrap().contains("nothing was paid"));
    let (_, dear) = agent.fetch("c_2", "/v2/101", most.clone()).await;
    assert!(dear.unwrap_err().contains("`max_amount` is 0.0001 USDC"));
    let (_, moved) = agent.fetch("c_3", "/moved", most.clone()).await;
    assert!(moved.unwrap().contains("not followed"));
    // A call without an approval has no budget to spend.
    let arguments = Arc::new(
        json!({ "url": format!("http://127.0.0.1:{}/v2/50", agent.host), "max_amount": "0.0001" }),
    );
    let mut caller = agent.caller("c_4");
    caller.inspection = agent.tool.inspect(&caller, Arc::clone(&arguments)).await;
    caller.inspection.user_only = None;
    let refused = agent.tool.run(&caller, arguments).await.unwrap_err();
    assert!(refused.message.contains("budget"), "{}", refused.message);
    assert!(agent.states().await.is_empty());
    assert!(chain.transfers(&agent.key.address()).is_empty());
}
