//! What lango's tests share: models that follow a script, tools and remote agents that count, a clock and names that tests
//! decide, a server that speaks as providers do, well or badly, an MCP server that does as it is told, a real
//! PostgreSQL, and contract suites that every implementation of a seam passes. A dev-dependency only.

pub mod ambient;
pub mod canary;
pub mod http;
pub mod mcp_server;
pub mod model;
pub mod postgres;
pub mod remote;
pub mod secrets;
pub mod session_store_contract;
pub mod tool;
pub mod wire_server;
