//! `lango completions` and `lango man`: completion scripts and manual pages, generated from the command line itself.

use crate::args;
use crate::exit::Exit;
use crate::screen;
use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use lango::app::Failure;
use std::path::Path;

/// Prints the completion script for a shell.
pub(super) fn completions(shell: Shell) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::command(), "lango", &mut script);
    print(&script)
}

/// Prints the page of `lango`, or writes the pages of all commands into a folder.
pub(super) fn man(folder: Option<&Path>) -> Result<Exit, Failure> {
    let mut command = args::command().disable_help_subcommand(true);
    // Sets the full names, such as `lango sessions list`.
    command.build();
    let Some(folder) = folder else {
        return print(&page(command)?);
    };
    std::fs::create_dir_all(folder)
        .and_then(|()| write_pages(&command, folder))
        .map_err(|error| {
            let message = format!("pages cannot be written to `{}`: {error}", folder.display());
            Failure::usage(message).next("choose a folder that you can write to")
        })?;
    Ok(Exit::Ok)
}

/// Writes the page of a command and of those below it, such as `lango-sessions-list.1`.
fn write_pages(command: &Command, folder: &Path) -> std::io::Result<()> {
    let path = folder.join(format!("{}.1", page_name(command)));
    std::fs::write(path, page(command.clone())?)?;
    for below in command.get_subcommands() {
        write_pages(below, folder)?;
    }
    Ok(())
}

/// Returns the page of a command in roff.
fn page(command: Command) -> std::io::Result<Vec<u8>> {
    let title = page_name(&command);
    let mut page = Vec::new();
    Man::new(command)
        .title(title)
        .source(concat!("lango ", env!("CARGO_PKG_VERSION")))
        .render(&mut page)?;
    Ok(page)
}

fn page_name(command: &Command) -> String {
    let name = command.get_display_name();
    name.unwrap_or(command.get_name()).to_owned()
}

fn print(text: &[u8]) -> Result<Exit, Failure> {
    screen::print_rendered(String::from_utf8_lossy(text).trim_end())?;
    Ok(Exit::Ok)
}
