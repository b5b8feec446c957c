//! The store through its public seam, in one process and in several.
#![expect(clippy::unwrap_used, reason = "a test that cannot continue stops")]

mod world;
mod process;
mod integrity;
mod health;
mod journal;
mod retention;
mod writer;
mod tasks;
mod commitments;
mod keys;
mod mailbox;
mod outbox;
mod ready;
mod ownership;
mod opening;
mod changes;
mod claims;
mod schema;
mod constraints;
mod outputs;
mod memories;
mod standing_rules;
mod search;
mod generated;
mod crash;
