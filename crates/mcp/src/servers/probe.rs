//! Connecting to a server to see what comes of it.

use crate::error::ConnectError;
use crate::names::tool_name;
use crate::pins::ToolState;
use crate::server::Server;
use crate::tool::summary;
use std::time::{Duration, Instant};

/// What came of connecting to a server.
#[derive(Debug)]
pub struct Probe {
    /// The server.
    pub id: String,
    /// How long it took.
    pub took: Duration,
    /// What it is and offers, or why it was not connected.
    pub result: Result<Probed, ConnectError>,
    /// What its program complained about last.
    pub stderr: String,
}

/// A server that answered.
#[derive(Debug)]
pub struct Probed {
    /// The version of the protocol that it speaks.
    pub protocol: String,
    /// What it calls itself.
    pub name: String,
    /// Its tools.
    pub tools: Vec<ProbedTool>,
    /// What a person should know.
    pub notes: Vec<String>,
}

/// A tool of a server that answered.
#[derive(Debug)]
pub struct ProbedTool {
    /// Its name here.
    pub name: String,
    /// The beginning of what the server says of it.
    pub summary: String,
    /// How it stands against its pin.
    pub state: ToolState,
    /// Whether it is among those that are wanted.
    pub is_wanted: bool,
}

pub(super) async fn probe(server: &Server) -> Probe {
    let started = Instant::now();
    let connected = server.connect().await;
    let took = started.elapsed();
    let (result, stderr) = match connected {
        Err(failure) => (Err(failure.error), failure.stderr),
        Ok(connected) => {
            let tools = connected.pinned.tools.iter().filter_map(|(tool, pin)| {
                Some(ProbedTool {
                    name: tool_name(&server.settings.prefix, tool),
                    summary: summary(&pin.offered()?.description),
                    state: pin.state(),
                    is_wanted: server.settings.wants(tool),
                })
            });
            let probed = Probed {
                protocol: connected.about.protocol,
                name: connected.about.name,
                tools: tools.collect(),
                notes: [connected.notes, server.hints()].concat(),
            };
            (Ok(probed), server.error_output())
        }
    };
    Probe {
        id: server.id().to_owned(),
        took,
        result,
        stderr,
    }
}
