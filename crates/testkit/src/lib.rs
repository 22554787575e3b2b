//! Shared test support for lango: scripted models, tools and remote agents that count their calls, a manual clock and
//! predictable ids, a fake model provider with selectable faults, a scripted MCP server, a real PostgreSQL, and the
//! contract suite that every session store must pass. A dev-dependency only.

pub mod canary;
pub mod clock_and_ids;
pub mod http;
pub mod mcp_server;
pub mod model;
pub mod postgres;
pub mod remote;
pub mod secrets;
pub mod session_store_contract;
pub mod tool;
pub mod wire_server;
