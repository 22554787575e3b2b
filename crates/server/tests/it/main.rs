//! lango over HTTP, as a caller sees it.
