//! The model crate through its seam, against a real server on this machine.

mod support;
mod conversation;
