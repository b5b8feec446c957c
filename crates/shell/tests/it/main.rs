//! Scripts through the public seam: what is found in them, and what the policy says to that.

mod corpus;
mod properties;
mod bounds;
mod rule_files;
mod rules;
mod denials;
