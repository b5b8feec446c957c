//! Windlass: store.
