//! Commands that the person ran: the agent reads them with the next message.

/// Bytes of what a command printed that the agent reads.
const MAX_PRINTED_BYTES: usize = 16 * 1024;

/// Commands that the person ran, each as the agent reads it.
#[derive(Clone, Debug, Default)]
pub struct RanCommands {
    /// For the next message.
    pub waiting: Vec<String>,
    /// Those in a message on its way.
    pub sent: Vec<String>,
}

impl RanCommands {
    /// Adds a command, to be sent with the next message.
    pub(super) fn add(&mut self, command: &str, printed: &str) {
        let printed = windlass_core::text::suffix(printed, MAX_PRINTED_BYTES);
        self.waiting.push(format!(
            "I ran this command:\n\n    $ {command}\n\nIt printed:\n\n```\n{}\n```\n",
            printed.trim_end()
        ));
    }

    /// Puts what waits before a message. It is kept until the message has arrived.
    pub fn send_with(&mut self, text: String) -> String {
        let waiting = std::mem::take(&mut self.waiting);
        self.sent.extend(waiting.iter().cloned());
        waiting.into_iter().chain([text]).collect::<Vec<_>>().join("\n")
    }

    /// Forgets what was in the message: it has arrived.
    pub(super) fn forget_sent(&mut self) {
        self.sent.clear();
    }

    /// Keeps what was in a message that was not sent for the next one.
    pub(super) fn take_back(&mut self) {
        let later = std::mem::replace(&mut self.waiting, std::mem::take(&mut self.sent));
        self.waiting.extend(later);
    }
}
