//! The policy through its public seam.

mod corpus;
