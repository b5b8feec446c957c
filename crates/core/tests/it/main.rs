//! The nouns through their public interface.

mod outcomes;
mod answers;
