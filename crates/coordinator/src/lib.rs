//! Windlass: coordinator.
