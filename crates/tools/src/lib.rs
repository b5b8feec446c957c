//! Windlass: tools.
