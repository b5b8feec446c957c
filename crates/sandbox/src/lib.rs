//! Windlass: sandbox.
