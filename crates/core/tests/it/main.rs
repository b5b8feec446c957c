mod schedules;
mod endings;
mod roles;
mod commitments;
