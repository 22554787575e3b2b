//! The signals that end a process: Ctrl-C, SIGTERM, SIGHUP and SIGQUIT. After its first use tokio handles a signal until the
//! process ends, so code that has listened once must keep listening.

use crate::app::failure::{Failure, FailureKind};
use crate::app::vault::can_ask;
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// A signal that ends a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopSignal {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM, SIGQUIT, or SIGHUP because the terminal was closed.
    Terminate,
}

impl From<StopSignal> for Failure {
    fn from(signal: StopSignal) -> Self {
        match signal {
            StopSignal::Interrupt => Self::new(FailureKind::Interrupted, "interrupted"),
            StopSignal::Terminate => Self::new(FailureKind::Terminated, "terminated by a signal"),
        }
    }
}

/// The signals since [`listen`](Self::listen). A signal that arrives while nothing waits is delivered to the next
/// wait.
pub struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    quit: Signal,
}

impl StopSignals {
    /// Handles the signals from now on. They no longer end the process by default.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
        })
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) -> StopSignal {
        tokio::select! {
            _ = self.interrupt.recv() => StopSignal::Interrupt,
            _ = self.terminate.recv() => StopSignal::Terminate,
            _ = self.hangup.recv() => StopSignal::Terminate,
            _ = self.quit.recv() => StopSignal::Terminate,
        }
    }

    /// Waits for a signal other than Ctrl-C.
    pub async fn terminated(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
            _ = self.quit.recv() => {}
        }
    }

    /// Runs work to its end, or fails with the first signal and drops the work.
    pub async fn guard<T>(
        &mut self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        tokio::select! {
            biased;
            result = work => result,
            signal = self.next() => Err(signal.into()),
        }
    }
}

/// The signals during the start of a command that may prompt. Without a terminal there are no prompts, and signals
/// keep their default action.
pub struct StartSignals(Option<StopSignals>);

impl StartSignals {
    /// Handles the signals from now on, if there is a terminal.
    pub fn listen() -> io::Result<Self> {
        let signals = can_ask().then(StopSignals::listen);
        signals.transpose().map(Self)
    }

    /// Runs work as [`StopSignals::guard`] does.
    pub async fn guard<T>(
        &mut self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        match &mut self.0 {
            Some(signals) => signals.guard(work).await,
            None => work.await,
        }
    }
}
