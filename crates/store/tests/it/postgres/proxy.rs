//! A way to the server that loses an answer: what was asked is carried out, and nobody hears of it. Or that is lost without
//! a word: whatever is sent arrives nowhere.

use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Stands between a store and its server.
pub struct Proxy {
    /// Where the store finds it.
    pub address: String,
    /// An answer to whatever contains this is lost, and the connection with it.
    pub loses: Arc<Mutex<Option<Vec<u8>>>>,
    /// How many answers were lost.
    pub lost: Arc<AtomicU64>,
    /// How many connections were made.
    pub made: Arc<AtomicU64>,
    /// How many of them, the first ones, are silent.
    pub silent: Arc<AtomicU64>,
}

impl Proxy {
    /// A way to the server at an address with a port of its own.
    pub async fn to(address: &str) -> Self {
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
                    poll_fn(|context| match number < silent.load(Ordering::Relaxed) {
                        true => Poll::Pending,
                        false => passing.as_mut().poll(context),
                    })
                    .await;
                });
            }
        });
        proxy
    }

    /// From now on nothing comes through the connections that there are, and none of them is closed.
    pub fn silence(&self) {
        let made = self.made.load(Ordering::Relaxed);
        self.silent.store(made, Ordering::Relaxed);
    }

    /// The next answer to something that contains these words is lost.
    pub fn lose(&self, words: &str) {
        *self.loses.lock().unwrap() = Some(words.as_bytes().to_vec());
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
                    let contains = |words: &Vec<u8>| sent.windows(words.len()).any(|part| part == words);
                    loses.take_if(|words| contains(words)).is_some()
                };
                if is_fatal {
                    // It was carried out when it is answered.
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
