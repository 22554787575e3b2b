//! Two workers over one PostgreSQL: either continues a session of the other, and a session runs one turn at a time.
//!
//! `cargo run --example postgres_workers -- postgres://user@127.0.0.1/database`

use lango::{Lango, Storage};

fn worker(address: &str) -> Result<Lango, lango::Error> {
    let storage = Storage::Postgres(address.to_owned());
    Lango::builder().store(storage).build()
}

#[tokio::main]
async fn main() -> Result<(), lango::Error> {
    let Some(address) = std::env::args().nth(1) else {
        eprintln!("usage: postgres_workers postgres://USER@HOST/DATABASE");
        std::process::exit(2);
    };
    // In production these are processes on different machines.
    let (first, second) = (worker(&address)?, worker(&address)?);
    let session = first.session();
    let report = session.run("hello").await?;
    println!("first worker: {}", report.text());
    let same = second.open(session.id().clone()).await?;
    let (one, two) = tokio::join!(
        session.run("make a plan for a picnic"),
        same.run("hello again"),
    );
    println!("outcomes: {}, {}", one?.outcome.name(), two?.outcome.name());
    let events = same.events(1, 1_000).await?;
    let turns = events.iter().filter(|event| event.author == "user").count();
    println!(
        "{turns} turns in one log of {} events, without gaps",
        events.len()
    );
    Ok(())
}
