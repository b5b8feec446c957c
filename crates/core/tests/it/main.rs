//! The policy through its public seam.

mod corpus;
mod properties;
mod bounds;
mod rules;
mod denials;
mod explanations;
