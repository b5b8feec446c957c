//! Windlass: model.
