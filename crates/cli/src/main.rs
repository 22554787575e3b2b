//! The binary `lango`: parses the command line, runs the command, and returns its exit code.

use clap::error::ErrorKind;
use lango::app::sandbox_setup::SANDBOX_ARGUMENT;
use std::ffi::OsString;
use std::process::ExitCode;

/// The most threads a server uses for blocking work such as reading files. Each needs memory, and more would not be
/// faster.
const MAX_BLOCKING_THREADS: usize = 64;

fn main() -> ExitCode {
    let mut typed = std::env::args_os().skip(1);
    if typed
        .next()
        .is_some_and(|argument| argument == SANDBOX_ARGUMENT)
    {
        lango_sandbox::enter(typed);
    }
    lango_cli::core_dumps::forbid();
    // Whatever ends this function, the terminal is left as it was.
    let _region = lango_cli::terminal::Region;
    let typed = lango_cli::args::with_flags_first(std::env::args_os().collect());
    let arguments =
        lango_cli::args::read(typed.clone()).unwrap_or_else(|error| refuse(&typed, &error));
    if let Err(problem) = lango_cli::logs::init(arguments.log_format, arguments.is_server()) {
        lango_cli::screen::say(&format!("error: {problem}"));
        return ExitCode::from(lango_cli::exit::Exit::Usage.code());
    }
    // A server uses all cores; a command starts faster on one thread.
    let mut runtime = if arguments.is_server() {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        runtime.max_blocking_threads(MAX_BLOCKING_THREADS);
        runtime
    } else {
        tokio::runtime::Builder::new_current_thread()
    };
    let runtime = runtime.enable_all().build();
    let exit = match runtime {
        Ok(runtime) => {
            let exit = runtime.block_on(async {
                let exit = lango_cli::commands::run(arguments).await;
                lango_cli::commands::finish().await;
                exit
            });
            // An abandoned tool call, or a pending read of the terminal, must not delay the exit.
            runtime.shutdown_background();
            exit
        }
        Err(error) => {
            eprintln!("error: the process cannot start: {error}");
            lango_cli::exit::Exit::Failed
        }
    };
    ExitCode::from(exit.code())
}

/// Prints what is wrong with the command line, or the requested help, and exits.
fn refuse(typed: &[OsString], error: &clap::Error) -> ! {
    if let Some(problem) = lango_cli::args::explained(typed, error) {
        lango_cli::screen::say(&format!("error: {problem}"));
        std::process::exit(lango_cli::exit::Exit::Usage.code().into());
    }
    if error.kind() != ErrorKind::InvalidUtf8 {
        error.exit();
    }
    let invalid: Vec<String> = std::env::args_os()
        .filter_map(|argument| argument.into_string().err())
        .map(|argument| format!("`{}`", argument.to_string_lossy()))
        .collect();
    lango_cli::screen::say(&format!(
        "error: arguments are not valid UTF-8: {}\n  next: pass them in UTF-8",
        invalid.join(", ")
    ));
    std::process::exit(lango_cli::exit::Exit::Usage.code().into());
}
