//! The binary `lango`: reads the command line and hands over to the command. All it adds is the exit code.

use clap::error::ErrorKind;
use lango_cli::hands::SANDBOX_MARK;
use std::process::ExitCode;

/// Threads of a server for work that blocks, such as reading files. Each one needs memory, and more of them are not faster.
const MAX_BLOCKING_THREADS: usize = 64;

fn main() -> ExitCode {
    let mut typed = std::env::args_os().skip(1);
    if typed.next().is_some_and(|mark| mark == SANDBOX_MARK) {
        lango_sandbox::enter(typed);
    }
    lango_cli::core_dumps::forbid();
    let typed = lango_cli::args::with_flags_first(std::env::args_os().collect());
    let arguments = lango_cli::args::read(typed).unwrap_or_else(|error| refuse(&error));
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
            // A tool that was given up on, or a terminal that is still being read, must not hold up the end.
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

/// Says what is wrong with the command line, or prints the help that was asked for, and ends.
fn refuse(error: &clap::Error) -> ! {
    if error.kind() != ErrorKind::InvalidUtf8 {
        error.exit();
    }
    let wrong: Vec<String> = std::env::args_os()
        .filter_map(|argument| argument.into_string().err())
        .map(|argument| format!("`{}`", argument.to_string_lossy()))
        .collect();
    lango_cli::screen::say(&format!(
        "error: not UTF-8 text on the command line: {}\n  next: give it in UTF-8",
        wrong.join(", ")
    ));
    std::process::exit(lango_cli::exit::Exit::Usage.code().into());
}
