//! A remote agent that speaks A2A 1.0, as a sub-agent of the orchestrator.
//!
//! `cargo run --example remote_agent -- http://127.0.0.1:18789 [TOKEN] ["message"]`, for example with `lango serve` on the
//! other side.

use lango::{Lango, connect_remote};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lango::Error> {
    let mut arguments = std::env::args().skip(1);
    let Some(url) = arguments.next() else {
        eprintln!("usage: remote_agent URL [TOKEN] [MESSAGE]");
        std::process::exit(2);
    };
    let token = arguments.next().filter(|token| !token.is_empty());
    let message = arguments.next().unwrap_or("ask the remote agent".to_owned());
    let remote = connect_remote("colleague", &url, token.as_deref()).await?;
    let lango = Lango::builder().remote_agent(remote).build()?;
    let report = lango.session().run(message).await?;
    println!("{}: {}", report.author(), report.text());
    Ok(())
}
