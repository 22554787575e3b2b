//! A scripted resolver, and servers on loopback that count their connections.

use lango_core::BoxFuture;
use lango_net::{Budget, Egress, EgressLimits, EgressRules, HostPattern, Resolver, Url};
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A resolver that answers each lookup with the next list of addresses, and repeats the last one.
#[derive(Default)]
pub(crate) struct ScriptedResolver {
    lists: Mutex<VecDeque<Vec<IpAddr>>>,
    pub lookups: AtomicUsize,
}

impl ScriptedResolver {
    pub(crate) fn new(lists: &[&str]) -> Arc<Self> {
        let list = |text: &&str| text.split(',').map(|one| one.parse().unwrap()).collect();
        Arc::new(Self {
            lists: Mutex::new(lists.iter().map(list).collect()),
            lookups: AtomicUsize::new(0),
        })
    }
}

impl Resolver for ScriptedResolver {
    fn lookup<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.lookups.fetch_add(1, Ordering::SeqCst);
        let mut lists = self.lists.lock().unwrap();
        let next = if lists.len() > 1 {
            lists.pop_front()
        } else {
            lists.front().cloned()
        };
        let answer = next.ok_or_else(|| io::Error::other("no such name"));
        Box::pin(async move { answer })
    }
}

pub(crate) fn patterns(texts: &[&str]) -> Vec<HostPattern> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

pub(crate) fn rules(allow: &[&str], deny: &[&str]) -> EgressRules {
    EgressRules {
        allow: patterns(allow),
        deny: patterns(deny),
    }
}

pub(crate) fn egress(allow: &[&str], deny: &[&str], answers: &[&str]) -> Egress {
    egress_with_limits(allow, deny, answers, EgressLimits::default())
}

pub(crate) fn egress_with_limits(
    allow: &[&str],
    deny: &[&str],
    answers: &[&str],
    limits: EgressLimits,
) -> Egress {
    Egress::with_resolver(rules(allow, deny), limits, ScriptedResolver::new(answers))
}

pub(crate) fn budget() -> Budget {
    Budget::new(&EgressLimits::default())
}

pub(crate) fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

/// A server that answers each connection with the result of a function of the request's head.
pub(crate) struct Server {
    pub address: SocketAddr,
    pub connections: Arc<AtomicUsize>,
    pub heads: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(crate) async fn start(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::start_at("127.0.0.1:0", answer).await
    }

    pub(crate) async fn start_at(
        address: &str,
        answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (counted, recorded, answer) = (
            Arc::clone(&connections),
            Arc::clone(&heads),
            Arc::new(answer),
        );
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                let (recorded, answer) = (Arc::clone(&recorded), Arc::clone(&answer));
                tokio::spawn(async move {
                    let head = read_head(&mut stream).await;
                    recorded.lock().unwrap().push(head.clone());
                    let _ = stream.write_all(&answer(&head)).await;
                    let _ = stream.shutdown().await;
                    // Read to the end. Otherwise a reset could discard the answer.
                    let mut rest = Vec::new();
                    let _ = stream.read_to_end(&mut rest).await;
                });
            }
        });
        Self {
            address,
            connections,
            heads,
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn head(&self, index: usize) -> String {
        self.heads.lock().unwrap()[index].clone()
    }
}

pub(crate) async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read_exact(&mut byte).await.is_ok() {
        head.push(byte[0]);
    }
    String::from_utf8_lossy(&head).into_owned()
}

pub(crate) fn ok(body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

pub(crate) fn redirect(status: u16, location: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} Elsewhere\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n")
        .into_bytes()
}
