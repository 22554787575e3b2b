//! The local chain and the hosts that require payment, as Node programs on 127.0.0.1, with direct access to the chain.

use super::common::random::Random;
use super::common::server_process::free_port;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The contract of USDC on Base Sepolia.
const TOKEN: &str = "0x036CbD53842c5426634e7929541eC2318f3dCF7e";

/// The first account of the chain. It mints tokens and pays the fees of hosts. All keys here are publicly known.
pub(crate) const MINTER: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
const MINTER_KEY: &str = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";

/// The hash of the event `Transfer(address,address,uint256)`.
const TRANSFER: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

/// A Node program. It is killed when this value is dropped.
pub(crate) struct Program {
    child: Child,
    pub port: u16,
}

impl Program {
    fn start(script: &str, random: &mut Random, more: &[&str]) -> Self {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let script = folder.join("../payment/tests/chain").join(script);
        let packages = std::env::var("LANGO_PAYMENTS_NPM").expect(
            "LANGO_PAYMENTS_NPM must name the folder of the npm packages; run scripts/payments, which creates it",
        );
        let port = free_port(random);
        let mut child = Command::new("node")
            .arg(&script)
            .args([Path::new(&packages), Path::new(&port.to_string())])
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node starts");
        let stdout = child.stdout.take().expect("stdout is piped");
        let mut line = String::new();
        let _ = BufReader::new(stdout).read_line(&mut line);
        assert_eq!(line.trim(), "ready", "{} did not start", script.display());
        Self { child, port }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a host that requires payment.
pub(crate) fn paid_host(chain: &Chain, random: &mut Random) -> Program {
    Program::start("paid.js", random, &[&chain.url(), MINTER_KEY])
}

pub(crate) struct Chain(Program);

/// A transfer from a wallet, as recorded on the chain.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Transfer {
    /// The nonce of its authorization, which is the payment's id in the ledger.
    pub id: String,
    pub recipient: String,
    pub amount: u64,
}

impl Chain {
    pub(crate) fn start(random: &mut Random) -> Self {
        Self(Program::start("chain.js", random, &[]))
    }

    pub(crate) fn url(&self) -> String {
        self.0.url()
    }

    pub(crate) fn port(&self) -> u16 {
        self.0.port
    }

    pub(crate) fn call(&self, method: &str, params: Value) -> Value {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let answer = post(self.0.port, &request.to_string());
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Gives a wallet USDC, and ETH for fees.
    pub(crate) fn fund(&self, wallet: &str, units: u64) {
        self.call("hardhat_setBalance", json!([wallet, "0xde0b6b3a7640000"]));
        let data = format!("0x40c10f19{}{units:064x}", word(wallet));
        let mint = json!({ "from": MINTER, "to": TOKEN, "data": data });
        self.call("eth_sendTransaction", json!([mint]));
    }

    /// Returns the number of the wallet's transactions in blocks.
    pub(crate) fn transactions(&self, wallet: &str) -> u64 {
        let count = self.call("eth_getTransactionCount", json!([wallet, "latest"]));
        number(&count)
    }

    /// Advances the chain's clock and mines a block.
    pub(crate) fn advance_time(&self, seconds: u64) {
        self.call("evm_increaseTime", json!([seconds]));
        self.mine();
    }

    pub(crate) fn mine(&self) {
        self.call("evm_mine", json!([]));
    }

    /// Sets whether each transaction is mined immediately.
    pub(crate) fn set_automine(&self, is_on: bool) {
        self.call("evm_setAutomine", json!([is_on]));
    }

    /// Returns all transfers that a wallet authorized.
    pub(crate) fn transfers(&self, wallet: &str) -> Vec<Transfer> {
        let filter = json!({
            "fromBlock": "0x0", "toBlock": "latest", "address": TOKEN,
            "topics": [null, format!("0x{}", word(wallet))],
        });
        let logs = self.call("eth_getLogs", json!([filter]));
        let logs = logs.as_array().expect("a list");
        let is_transfer = |log: &&Value| log["topics"][0] == TRANSFER;
        let hash = |log: &Value| {
            log["transactionHash"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let mut used: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
        for log in logs.iter().filter(|log| !is_transfer(log)) {
            used.entry(hash(log)).or_default().push(log);
        }
        let transfers = logs.iter().filter(is_transfer).map(|log| {
            let [used] = used[&hash(log)][..] else {
                panic!("a transfer without one authorization: {log}");
            };
            let nonce = used["topics"][2].as_str().expect("a nonce");
            let recipient = log["topics"][2].as_str().expect("an address");
            Transfer {
                id: nonce[2..].to_owned(),
                recipient: format!("0x{}", &recipient[26..]),
                amount: number(&log["data"]),
            }
        });
        transfers.collect()
    }
}

/// Returns an address as a word of contract data, without `0x`.
fn word(address: &str) -> String {
    format!("{:0>64}", address[2..].to_lowercase())
}

fn number(value: &Value) -> u64 {
    let digits = value.as_str().expect("a number");
    u64::from_str_radix(&digits[2..], 16).expect("a number")
}

/// Posts JSON and returns the body of the response.
pub(crate) fn post(port: u16, body: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the server accepts");
    let head = format!(
        "POST / HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("the server reads");
    stream.write_all(body.as_bytes()).expect("the server reads");
    let mut answer = String::new();
    stream
        .read_to_string(&mut answer)
        .expect("the server answers");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a head");
    body.to_owned()
}

/// Sends a GET request and returns the body of the response.
pub(crate) fn get(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the server accepts");
    let head = format!("GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("the server reads");
    let mut answer = String::new();
    stream
        .read_to_string(&mut answer)
        .expect("the server answers");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a head");
    body.to_owned()
}
