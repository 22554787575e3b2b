//! The arguments of `lango setup` and `lango doctor`.

use clap::Args;

/// Arguments of `lango setup`.
#[derive(Debug, Default, Clone, Args)]
#[command(
    after_help = "Examples:\n  lango setup\n  lango setup --provider ollama --yes\n  \
                  lango setup --provider anthropic --key-stdin --yes < key.txt\n  \
                  lango setup --provider mine --base-url http://127.0.0.1:8000/v1\n  \
                  lango setup --remove mine\n\n\
                  Asks for what is not given. Without a terminal, everything must be given."
)]
pub struct SetupArguments {
    /// The provider, such as anthropic, openai, gemini, openrouter or ollama; or a name of yours, with --base-url.
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,

    /// The model, as provider/model, or without the provider if --provider is given.
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,

    /// The address of an OpenAI-compatible API, such as http://127.0.0.1:8000/v1.
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,

    /// Read the API key from standard input.
    #[arg(long)]
    pub key_stdin: bool,

    /// Remove the stored key of this provider and the settings that setup wrote for it.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["provider", "model", "base_url", "key_stdin", "yes"])]
    pub remove: Option<String>,

    /// Use the default of every question that has one.
    #[arg(short, long)]
    pub yes: bool,
}

/// Arguments of `lango doctor`.
#[derive(Debug, Clone, Copy, Args)]
pub struct DoctorArguments {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,

    /// Do not call the model.
    #[arg(long)]
    pub offline: bool,
}
