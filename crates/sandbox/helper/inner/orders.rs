//! What windlass orders, read and done.

use std::io;

use super::Inner;
use crate::protocol::{Cause, Order, Report, WINDOW};
use crate::{sys, wire};

impl Inner<'_> {
    pub(super) fn receive(&mut self) {
        match sys::receive(self.from, &mut self.buffer) {
            Ok(0) => self.over = true,
            Ok(count) => self.received.extend_from_slice(&self.buffer[..count]),
            Err(error) if sys::errno(&error) == sys::EAGAIN => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.over = true,
        }
        let received = std::mem::take(&mut self.received);
        let mut rest = received.as_slice();
        loop {
            match wire::cut(rest) {
                Ok(Some((frame, length))) => {
                    match Order::read(frame) {
                        Ok(order) => self.obey(order),
                        // A windlass that speaks another language is no windlass of ours.
                        Err(_) => self.over = true,
                    }
                    rest = &rest[length..];
                }
                Ok(None) => break,
                Err(_) => {
                    self.over = true;
                    break;
                }
            }
        }
        self.received = rest.to_vec();
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Setup(_) => self.over = true,
            Order::Start(start) => {
                let id = start.id;
                if let Err(error) = self.start(start) {
                    let errno = sys::errno(&error);
                    Report::Refused { id, stage: "start".to_owned(), errno }.write(&mut self.out);
                }
            }
            Order::Kill { id, grace_ms } => {
                if let Some(command) = self.commands.get_mut(&id) {
                    command.end(Cause::Killed, grace_ms);
                }
            }
            Order::Input { id, bytes } => {
                if let Some(command) = self.commands.get_mut(&id) {
                    command.waiting_input.push_back(bytes);
                }
                self.feed(id);
            }
            Order::Taken { id, credit } => {
                if let Some(command) = self.commands.get_mut(&id) {
                    command.credit = command.credit.saturating_add(credit).min(WINDOW);
                }
            }
            Order::Reply { connection, bytes } => {
                if let Some(found) = self.connections.get_mut(&connection) {
                    found.reply(bytes);
                    self.carry(connection, 0);
                }
            }
            Order::Passed { connection, credit } => {
                if let Some(found) = self.connections.get_mut(&connection) {
                    found.grant(credit);
                }
            }
            Order::Hangup { connection } => {
                if let Some(found) = self.connections.get_mut(&connection) {
                    found.finish();
                    self.carry(connection, 0);
                }
            }
        }
    }
}
