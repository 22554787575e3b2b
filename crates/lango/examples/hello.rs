//! The smallest program: one session, one turn.
//!
//! `cargo run --example hello`

use lango::Lango;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lango::Error> {
    let lango = Lango::builder().build()?;
    let session = lango.session();
    let report = session.run("hello").await?;
    println!("{}: {}", report.author(), report.text());
    Ok(())
}
