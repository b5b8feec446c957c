//! The loop at its own seam: a goal and a scripted model in, a journal out.

mod journal;
mod control;
