//! `worker`: drives tasks that arrive on the bus, beside others that do.

use super::AppContext;
use super::serve::{self, Part};
use crate::args::Serve;
use crate::failure::Failure;

pub(super) fn worker(app: &AppContext, args: &Serve) -> Result<u8, Failure> {
    serve::run(app, args, Part::Worker)
}
