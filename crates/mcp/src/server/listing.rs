//! The tools that a server lists: compared with the pins when they are listed, and with the offered definition before a
//! call.

use super::Server;
use crate::connection::{Connection, ServerInfo, ToolListing};
use crate::error::ConnectFailure;
use crate::names::one_line;
use crate::pins::{PinnedServer, ServerSnapshot};
use lango_core::ToolError;

impl Server {
    /// Lists the tools again if the server has announced a change.
    pub(super) async fn refresh_tools(
        &self,
        connection: &Connection,
    ) -> Result<(), ConnectFailure> {
        let listed_changes = connection.tool_list_changes();
        if listed_changes == self.state().listed_changes {
            return Ok(());
        }
        let listing = connection.tools(self.context.start_timeout).await?;
        self.record_tools(listing, listed_changes, &connection.info);
        Ok(())
    }

    /// Compares the listed tools with the pins and records the changes. Returns the pins, and notes for the user.
    pub(super) fn record_tools(
        &self,
        listing: ToolListing,
        listed_changes: u64,
        info: &ServerInfo,
    ) -> (PinnedServer, Vec<String>) {
        let ToolListing {
            tools,
            left_out: mut notes,
        } = listing;
        {
            let hashes = tools
                .iter()
                .map(|(name, definition)| (name.clone(), definition.hash.clone()));
            let mut state = self.state();
            state.listed = hashes.collect();
            state.listed_changes = listed_changes;
        }
        let (pinned, written) = self.context.pins.record_tools(ServerSnapshot {
            server: self.id(),
            settings: &self.digest,
            name: &info.name,
            title: &info.title,
            tools,
        });
        if let Err(error) = written {
            notes.push(lango_core::error_chain(&error));
        }
        (pinned, notes)
    }

    /// Fails unless the tool's definition is still the offered one.
    pub(super) fn check_unchanged(&self, tool: &str, hash: &str) -> Result<(), ToolError> {
        let id = self.id();
        let message = match self.state().listed.get(tool) {
            Some(listed) if listed == hash => return Ok(()),
            Some(_) => format!(
                "the MCP server `{id}` changed its tool `{tool}` since it was pinned, so it was not called; the user can \
                 see the change with `lango mcp list` and accept it with `lango mcp trust {id}`"
            ),
            None => format!(
                "the MCP server `{id}` no longer has the tool `{}`",
                one_line(tool, 80)
            ),
        };
        Err(ToolError::new(message))
    }
}
