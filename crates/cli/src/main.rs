//! The binary `lango`: reads the command line and hands over to the command. All it adds is the exit code.

use clap::Parser;
use lango_cli::args::Arguments;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let exit = match runtime {
        Ok(runtime) => runtime.block_on(lango_cli::commands::run(arguments)),
        Err(error) => {
            eprintln!("error: the process cannot start: {error}");
            lango_cli::exit::Exit::Failed
        }
    };
    ExitCode::from(exit.code())
}
