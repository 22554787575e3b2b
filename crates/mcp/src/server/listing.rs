//! What a server says of its tools: held against the pins when it is heard, and against what was offered before a call.

use super::Server;
use crate::connection::{About, Connection, Listing};
use crate::error::Failure;
use crate::names::line;
use crate::pins::{PinnedServer, Seen};
use lango_core::ToolError;

impl Server {
    /// Asks for the tools again if the server said that they are others now.
    pub(super) async fn hear_news(&self, connection: &Connection) -> Result<(), Failure> {
        let announced = connection.new_tools();
        if announced == self.state().announced {
            return Ok(());
        }
        let listing = connection.tools(self.surroundings.patience).await?;
        self.take_in(listing, announced, &connection.about);
        Ok(())
    }

    /// Holds what the server lists against what is pinned, and remembers what is new.
    pub(super) fn take_in(
        &self,
        listing: Listing,
        announced: u64,
        about: &About,
    ) -> (PinnedServer, Vec<String>) {
        let Listing {
            tools,
            left_out: mut notes,
        } = listing;
        {
            let hashes = tools
                .iter()
                .map(|(name, form)| (name.clone(), form.hash.clone()));
            let mut state = self.state();
            state.listed = hashes.collect();
            state.announced = announced;
        }
        let (pinned, written) = self.surroundings.pins.take_in(Seen {
            server: self.id(),
            settings: &self.digest,
            name: &about.name,
            title: &about.title,
            tools,
        });
        if let Err(error) = written {
            notes.push(lango_core::error_chain(&error));
        }
        (pinned, notes)
    }

    /// A tool is called in the form in which it was offered, or not at all.
    pub(super) fn refuse_what_changed(&self, tool: &str, hash: &str) -> Result<(), ToolError> {
        let id = self.id();
        let message = match self.state().listed.get(tool) {
            Some(listed) if listed == hash => return Ok(()),
            Some(_) => format!(
                "the MCP server `{id}` changed its tool `{tool}` since it was pinned, so it was not called; the person can \
                 look at it with `lango mcp list` and accept it with `lango mcp trust {id}`"
            ),
            None => format!(
                "the MCP server `{id}` has no tool `{}` any more",
                line(tool, 80)
            ),
        };
        Err(ToolError::new(message))
    }
}
