//! The address of the provider: checked before the user types a key, and asked for again at a terminal.

use super::dialog::{self, Answer};
use super::provider::Selection;
use crate::args::SetupArguments;
use crate::screen;
use lango::app::setup::{Connection, check_address};
use lango::app::{App, Failure};

/// Asks for the address of an API; `None` if the user quits.
pub(super) async fn ask() -> Result<Option<String>, Failure> {
    let question = "address of the API, such as http://127.0.0.1:8000/v1 (Enter quits): ";
    Ok(match dialog::ask(question).await? {
        Answer::Text(address) => Some(address),
        Answer::Empty | Answer::Quit => None,
    })
}

/// Prepares the connection. At a terminal it also checks that the server answers, and asks for another address if not;
/// `None` if the user quits.
pub(super) async fn connect(
    app: &App,
    arguments: &SetupArguments,
    selection: &mut Selection,
) -> Result<Option<Connection>, Failure> {
    let can_ask = dialog::can_ask() && !arguments.yes;
    loop {
        let checked = selection.address.as_deref().map(check_address).transpose();
        match checked {
            Err(failure) if can_ask => screen::say(&failure.to_string()),
            checked => {
                selection.address = checked?;
                let connection = selection.connection(app)?;
                if !can_ask || connection.own_address().is_none() {
                    return Ok(Some(connection));
                }
                match connection.reach(app).await {
                    Ok(()) => return Ok(Some(connection)),
                    Err(error) => screen::say(&Failure::from(error).message()),
                }
            }
        }
        match ask().await? {
            Some(address) => selection.change_address(app, address),
            None => return Ok(None),
        }
    }
}
