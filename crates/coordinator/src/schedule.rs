//! Schedules: what is due, and when the next thing is.

use windlass_core::trigger::{ScheduledTrigger, TriggerStream};

use crate::{Coordinator, Error, Handled};

impl Coordinator {
    pub(crate) async fn due(&self, _trigger: &ScheduledTrigger) -> Result<Handled, Error> {
        let stream = TriggerStream::ScheduledTrigger;
        Err(Error::BadTrigger { stream, problem: "there are no schedules yet".to_owned() })
    }
}
