//! Windlass: testkit.
