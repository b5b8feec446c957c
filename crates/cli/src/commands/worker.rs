//! `worker`: drives tasks that arrive on the bus, beside others that do.

use super::Setting;
use super::serve::{self, Part};
use crate::args::Serve;
use crate::failure::Failure;

pub(super) fn worker(setting: &Setting, args: &Serve) -> Result<u8, Failure> {
    serve::run(setting, args, Part::Worker)
}
