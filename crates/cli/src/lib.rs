//! Windlass: cli.
