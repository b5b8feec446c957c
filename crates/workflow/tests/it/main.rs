//! Workflows through their public interface: files, templates, outputs, git.

#![expect(clippy::unwrap_used, reason = "what a test sets up must be there")]

mod definitions;
mod templates;
mod outputs;
mod repository;
mod changes;
mod settings;
mod conflicts;
mod bases;
mod worktrees;
mod build_files;
mod worktree_kinds;
mod killed_git;
mod merges;
mod planning;
mod previews;
mod runner_place;
mod runners;
mod real_runners;
mod screens;
