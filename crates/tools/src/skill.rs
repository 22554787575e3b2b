//! Skills
mod front_matter;
