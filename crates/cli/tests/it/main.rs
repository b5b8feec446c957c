//! The program as a user meets it: command lines, exit codes, files, events.

mod layers;
