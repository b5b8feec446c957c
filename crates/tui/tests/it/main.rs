//! The terminal through its seams: bytes in, state and rows out, and an emulator behind the writer.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue should stop")]

mod following;
mod keys;
mod links;
mod composing;
mod queueing;
mod modes;
mod colours;
mod spoken;
mod asking;
mod binding;
mod pages;
mod looks;
mod screen;
mod scrolling;
mod terminal;
mod vim;
mod anything;
mod world;
