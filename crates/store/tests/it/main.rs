//! The store through its public seam, in one process and in several.

mod world;
mod journal;
