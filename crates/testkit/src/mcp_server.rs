//! A scripted MCP server: a Python 3 program that a test writes to a file and starts.

/// The program's source. Its command-line options, declared at the top, select how it behaves.
pub const PROGRAM: &str = include_str!("../data/mcp_server.py");
