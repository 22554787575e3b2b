//! A scripted RPC node, and a wallet with a well-known key.

use lango_core::{BoxFuture, PaymentLimits};
use lango_payment::{
    KeyBytes, Network, PaymentError, PaymentParts, Payments, Rpc, WalletKey, Wei, parse_key,
};
use lango_store::Store;
use lango_testkit::clock_and_ids::ManualClock;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(crate) const WALLET: &str = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
pub(crate) const TOKEN: &str = "0x036CbD53842c5426634e7929541eC2318f3dCF7e";

/// The node's reply to a method: a JSON-RPC result, or a whole HTTP response.
pub(crate) enum Reply {
    Result(Value),
    Response(String),
}

type Script = dyn Fn(&str) -> Reply + Send + Sync;

pub(crate) struct Node {
    pub url: String,
    methods: Arc<Mutex<Vec<String>>>,
}

impl Node {
    pub(crate) async fn start(script: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let methods = Arc::new(Mutex::new(Vec::new()));
        let (script, called): (Arc<Script>, _) = (Arc::new(script), Arc::clone(&methods));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&script), Arc::clone(&called)));
            }
        });
        Self { url, methods }
    }

    /// Returns the methods that were called, in order.
    pub(crate) fn methods(&self) -> Vec<String> {
        self.methods.lock().unwrap().clone()
    }
}

async fn serve(mut stream: TcpStream, script: Arc<Script>, called: Arc<Mutex<Vec<String>>>) {
    let mut request = Vec::new();
    let body = loop {
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).await.unwrap_or(0);
        if count == 0 {
            return;
        }
        request.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((_, body)) = text.split_once("\r\n\r\n")
            && let Ok(body) = serde_json::from_str::<Value>(body)
        {
            break body;
        }
    };
    let method = body["method"].as_str().unwrap().to_owned();
    let answer = match script(&method) {
        Reply::Result(result) => {
            let answer = json!({ "jsonrpc": "2.0", "id": body["id"], "result": result });
            response("200 OK", &answer.to_string())
        }
        Reply::Response(response) => response,
    };
    called.lock().unwrap().push(method);
    let _ = stream.write_all(answer.as_bytes()).await;
}

pub(crate) fn response(status: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
}

/// Replies as an honest node of Base Sepolia that never mines a transaction.
pub(crate) fn honest(method: &str) -> Reply {
    Reply::Result(match method {
        "eth_chainId" => "0x14a34".into(),
        "eth_getBlockByNumber" => {
            json!({ "number": "0x10", "timestamp": "0x6b49d200", "baseFeePerGas": "0xf4240" })
        }
        "eth_call" => format!("0x{:064x}", 5_000_000).into(),
        "eth_estimateGas" => "0x11170".into(),
        "eth_getTransactionReceipt" | "eth_getTransactionByHash" => Value::Null,
        _ => "0x0".into(),
    })
}

struct KnownKey;

impl WalletKey for KnownKey {
    fn key(&self) -> BoxFuture<'_, Result<KeyBytes, PaymentError>> {
        let key = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
        Box::pin(std::future::ready(parse_key(key)))
    }
}

pub(crate) fn payments(url: &str) -> (Payments, Arc<Store>) {
    let store = Arc::new(Store::in_memory());
    let payments = Payments::new(PaymentParts {
        network: Network::BaseSepolia,
        rpc: Rpc::new(url).unwrap(),
        store: store.clone(),
        key: Arc::new(KnownKey),
        clock: Arc::new(ManualClock::default()),
        limits: PaymentLimits {
            payment: 2_000_000,
            day: 3_000_000,
            recipient: 3_000_000,
            purpose: 3_000_000,
        },
        max_fee: Wei(1_000_000_000_000_000),
        confirmation_timeout: Duration::from_millis(250),
    });
    (payments, store)
}
