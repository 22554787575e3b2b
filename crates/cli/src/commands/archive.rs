//! `lango sessions export`, `import`, `verify` and `delete`.

mod delete;
mod export;
mod import;

pub(super) use delete::delete;
pub(super) use export::export;
pub(super) use import::import;

use crate::args::VerifyArguments;
use crate::exit::Exit;
use crate::screen::{self, Ticker, count, one_line};
use lango::app::archive::SessionIds;
use lango::app::{App, Failure};
use lango_core::StoreError;
use lango_store::archive::{LogContents, verify_record};

/// Verifies logs; prints for each how many events it has, or where it is damaged.
pub(super) async fn verify(app: &App, arguments: VerifyArguments) -> Result<Exit, Failure> {
    let store = app.existing_store()?;
    let mut ids =
        SessionIds::select(app, arguments.selection.all, &arguments.selection.ids).await?;
    let mut ticker = Ticker::new();
    let (mut whole, mut damaged) = (0, 0);
    while let Some(id) = ids.next(&store).await? {
        let mut seen = |events| {
            let done = format!("{} checked, {id}: event {events}", count(whole, "session"));
            ticker.show(|| done);
        };
        let verified = match store.session_record(&id).await {
            Ok(record) => verify_record(&store, &record, &mut seen).await,
            Err(error) => Err(error),
        };
        ticker.clear();
        match verified {
            Ok(LogContents { events, .. }) => {
                whole += 1;
                let events = count(events, "event");
                screen::print(&format!("{:<24}  {events}", one_line(id.as_str(), 100)))?;
            }
            // An id that is not valid text is listed with replacement characters, which no session has.
            Err(StoreError::NotFound { .. }) if id.as_str().contains('\u{fffd}') => {
                damaged += 1;
                let id = one_line(id.as_str(), 100);
                screen::print(&format!("damaged: session `{id}`: its id is not text"))?;
            }
            Err(error @ StoreError::Damaged { .. }) => {
                damaged += 1;
                screen::print(&format!("damaged: {}", one_line(&error.to_string(), 500)))?;
            }
            // With `--all`, a session may have been deleted meanwhile.
            Err(StoreError::NotFound { .. }) if arguments.selection.all => {}
            Err(error) => return Err(error.into()),
        }
    }
    let sessions = count(whole + damaged, "session");
    if damaged == 0 {
        screen::say(&format!(
            "{sessions} checked: no gaps, every author known, every hash correct"
        ));
        return Ok(Exit::Ok);
    }
    screen::say(&format!(
        "{sessions} checked, {damaged} damaged\n  next: restore them from a backup; `lango sessions export ID` exports the undamaged ones"
    ));
    Ok(Exit::Failed)
}
