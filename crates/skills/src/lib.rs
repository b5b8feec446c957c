//! Windlass: skills.
