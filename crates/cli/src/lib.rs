//! The binary `windlass`: arguments, configuration, wiring. It alone reads the environment.

pub mod config;
