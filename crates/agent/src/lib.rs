//! Windlass: agent.
