//! A proxy to the server that can lose a reply, so that a request is executed but not acknowledged, or can become silent, so that
//! nothing arrives any more.

use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A proxy between a store and its server.
pub(super) struct Proxy {
    /// The address of the proxy for the store.
    pub address: String,
    /// The next reply to a request that contains these bytes is lost, and the connection is closed.
    pub loses: Arc<Mutex<Option<Vec<u8>>>>,
    /// Number of replies that were lost.
    pub lost: Arc<AtomicU64>,
    /// Number of connections so far.
    pub made: Arc<AtomicU64>,
    /// Number of connections, counted from the first, that are silent.
    pub silent: Arc<AtomicU64>,
}

impl Proxy {
    /// Starts a proxy to the server at an address, on a free port.
    pub(super) async fn to(address: &str) -> Self {
        let (_, rest) = address.split_once('@').unwrap();
        let (server, _) = rest.split_once('/').unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let here = listener.local_addr().unwrap().to_string();
        let proxy = Self {
            address: address.replace(server, &here),
            loses: Arc::default(),
            lost: Arc::default(),
            made: Arc::default(),
            silent: Arc::default(),
        };
        let (loses, lost) = (Arc::clone(&proxy.loses), Arc::clone(&proxy.lost));
        let (made, silent) = (Arc::clone(&proxy.made), Arc::clone(&proxy.silent));
        let server = server.to_owned();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let there = TcpStream::connect(&server).await.unwrap();
                let number = made.fetch_add(1, Ordering::Relaxed);
                let passing = pass(client, there, Arc::clone(&loses), Arc::clone(&lost));
                let silent = Arc::clone(&silent);
                tokio::spawn(async move {
                    let mut passing = std::pin::pin!(passing);
                    poll_fn(|context| {
                        if number < silent.load(Ordering::Relaxed) {
                            Poll::Pending
                        } else {
                            passing.as_mut().poll(context)
                        }
                    })
                    .await;
                });
            }
        });
        proxy
    }

    /// Stops forwarding on all existing connections, without closing them.
    pub(super) fn silence(&self) {
        let made = self.made.load(Ordering::Relaxed);
        self.silent.store(made, Ordering::Relaxed);
    }

    /// Loses the next reply to a request that contains this text.
    pub(super) fn lose(&self, text: &str) {
        *self.loses.lock().unwrap() = Some(text.as_bytes().to_vec());
    }
}

async fn pass(
    mut client: TcpStream,
    mut server: TcpStream,
    loses: Arc<Mutex<Option<Vec<u8>>>>,
    lost: Arc<AtomicU64>,
) {
    let (mut from_client, mut from_server) = (vec![0; 65536], vec![0; 65536]);
    loop {
        tokio::select! {
            read = client.read(&mut from_client) => {
                let Ok(count @ 1..) = read else { return };
                let sent = &from_client[..count];
                if server.write_all(sent).await.is_err() {
                    return;
                }
                let is_fatal = {
                    let mut loses = loses.lock().unwrap();
                    let contains = |text: &Vec<u8>| sent.windows(text.len()).any(|part| part == text);
                    loses.take_if(|text| contains(text)).is_some()
                };
                if is_fatal {
                    // Once the server replies, the request has been executed.
                    let _ = server.read(&mut from_server).await;
                    lost.fetch_add(1, Ordering::Relaxed);
                    return;
                }
            }
            read = server.read(&mut from_server) => {
                let Ok(count @ 1..) = read else { return };
                if client.write_all(&from_server[..count]).await.is_err() {
                    return;
                }
            }
        }
    }
}
