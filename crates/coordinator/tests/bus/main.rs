//! The bus: one suite for both implementations, and what only Redis can go through.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue should stop")]

mod suite;
mod outage;
