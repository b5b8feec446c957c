//! The HTTP surface over real sockets. The model is scripted, the clock is set, everything else is real.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue should stop")]

mod world;
mod refusals;
mod ownership;
mod pages;
mod privacy;
mod signing_in;
mod connections;
mod events;
mod tasks;
mod commitments;
mod sessions;
mod attaching;
mod leavings;
mod notices;
mod plans;
mod repeating;
mod workflows;
mod tls;
mod contract;
mod damage;
