//! What one command could change of its minder for the next: limits and scheduling need no more than its user.

use crate::sys::{self, number};

const RESOURCES: usize = 16;
const WHOLE_PROCESS: usize = 1;

/// Everything of this process that another of the same user may set, as the kernel tells it.
#[derive(PartialEq, Eq)]
pub struct Settings {
    limits: [[u64; 2]; RESOURCES],
    /// Policy, priority, deadlines, clamps.
    scheduling: [u64; 8],
    processors: [u64; 128],
    input_output: usize,
}

impl Settings {
    /// As they are now; `None` where the kernel does not tell.
    pub fn now() -> Option<Self> {
        let mut settings = Self {
            limits: [[0; 2]; RESOURCES],
            scheduling: [0; 8],
            processors: [0; 128],
            input_output: 0,
        };
        for (resource, limit) in settings.limits.iter_mut().enumerate() {
            *limit = sys::limit_of(resource as u32)?;
        }
        let (scheduling, processors) = (&mut settings.scheduling, &mut settings.processors);
        let ask = |call, arguments| {
            // SAFETY: each is given room for as many bytes as it is told, or numbers alone.
            unsafe { sys::raw(call, arguments) }.ok()
        };
        let (at, bytes) = (scheduling.as_mut_ptr() as usize, size_of_val(scheduling));
        ask(number::SCHED_GETATTR, [0, at, bytes, 0, 0])?;
        let (at, bytes) = (processors.as_mut_ptr() as usize, size_of_val(processors));
        ask(number::SCHED_GETAFFINITY, [0, bytes, at, 0, 0])?;
        settings.input_output = ask(number::IOPRIO_GET, [WHOLE_PROCESS, 0, 0, 0, 0])?;
        Some(settings)
    }
}
