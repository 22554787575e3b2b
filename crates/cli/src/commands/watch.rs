//! Running a turn while somebody watches: what is shown goes to a function, and Ctrl-C stops the turn.

use crate::exit::Failure;
use lango_engine::{Conversation, Shown, Stop, TurnReport};
use std::io::ErrorKind;
use tokio::sync::mpsc;

/// Waits for Ctrl-C, or for the signals with which systems end a service.
async fn asked_to_stop() {
    use tokio::signal::unix::{SignalKind, signal};
    let other = |kind| async move {
        match signal(kind) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = other(SignalKind::terminate()) => {}
        () = other(SignalKind::hangup()) => {}
    }
}

/// Runs one turn to its outcome. That nobody looks any more is no failure.
pub async fn watch(
    conversation: &mut Conversation,
    question: &str,
    mut show: impl FnMut(Shown) -> std::io::Result<()>,
) -> Result<TurnReport, Failure> {
    let stop = Stop::new();
    let (sender, mut shown) = mpsc::channel(64);
    let run = async {
        // The sender is dropped with the turn, which ends the showing.
        let sender = sender;
        let turn = conversation.turn(question, &stop, &sender);
        tokio::pin!(turn);
        tokio::select! {
            report = &mut turn => report,
            () = asked_to_stop() => {
                stop.stop();
                turn.await
            }
        }
    };
    // The receiver is dropped when showing fails, so that the turn goes on to its end and waits for nobody.
    let showing = async move {
        while let Some(item) = shown.recv().await {
            show(item)?;
        }
        Ok::<(), std::io::Error>(())
    };
    let (report, showing) = tokio::join!(run, showing);
    let report = report?;
    match showing {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(report),
    }
}
