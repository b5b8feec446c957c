mod answers;
mod event_words;
mod outcomes;
mod schedules;
mod endings;
mod roles;
mod commitments;
