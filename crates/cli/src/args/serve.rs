//! The arguments of `lango serve`.

use clap::Args;

/// Arguments of `lango serve`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  lango serve\n  lango serve --port 0\n  \
                  curl http://127.0.0.1:18789/.well-known/agent-card.json\n\n\
                  Callers must send the token, whose location is printed at the start. Ctrl-C stops after running tasks have finished.")]
pub struct ServeArguments {
    /// The address to listen on, instead of server.host.
    #[arg(long)]
    pub host: Option<String>,
    /// The port, instead of server.port; 0 picks a free one.
    #[arg(long)]
    pub port: Option<u16>,
    /// How long running tasks may continue when the server is stopped, such as 30s.
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub grace: DurationArg,
    /// Ask about interrupted turns instead of resuming them: for a database that was copied or restored by other means
    /// than `lango store restore`.
    #[arg(long)]
    pub no_recovery: bool,
}

/// A duration given on the command line.
#[derive(Debug, Clone, Copy)]
pub struct DurationArg(pub std::time::Duration);

impl std::str::FromStr for DurationArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        lango_config::duration(text)
            .map(Self)
            .map_err(|expected| format!("must be {expected}"))
    }
}
