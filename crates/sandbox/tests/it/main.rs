//! The sandbox through its public seam, with real processes, as root and as an ordinary user.

mod support;
mod commands;
