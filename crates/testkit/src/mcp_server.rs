//! An MCP server that follows a script: a program for python3, which a test writes into a folder and starts as it likes.

/// The text of the program. Its first lines say what it can be told.
pub const PROGRAM: &str = include_str!("../data/mcp_server.py");
