//! The sandbox through its public seam, with real processes, as root and as an ordinary user.

mod support;
mod commands;
mod confinement;
mod landlock;
mod trees;
mod cancels;
mod owner;
mod network;
mod toolchains;
