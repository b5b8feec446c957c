//! The model crate through its public API, against a real server on this machine.
#![expect(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod support;
mod conversation;
mod wire;
mod pictures;
mod refusals;
mod streams;
mod calls;
mod waits;
mod setup;
mod scripts;
mod reasoning;
