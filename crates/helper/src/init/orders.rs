//! Orders from windlass, read and carried out.

use std::io;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::stdio::stdin;
use windlass_helper::protocol::{Cause, Order, Report, WINDOW};
use windlass_helper::wire;

use super::Init;
use crate::sys;

impl Init<'_> {
    pub(super) fn read_orders(&mut self) {
        match sys::read(stdin(), &mut self.buffer) {
            Ok(0) => self.is_over = true,
            Ok(count) => self.received.extend_from_slice(&self.buffer[..count]),
            Err(error) if sys::would_block(&error) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.is_over = true,
        }
        let received = std::mem::take(&mut self.received);
        let mut rest = received.as_slice();
        loop {
            match wire::next_frame(rest).and_then(|next| {
                next.map(|(frame, length)| Ok((Order::read(frame)?, length))).transpose()
            }) {
                Ok(Some((order, length))) => {
                    self.obey(order);
                    rest = &rest[length..];
                }
                Ok(None) => break,
                // The other side is not a windlass of this version.
                Err(_) => {
                    self.is_over = true;
                    break;
                }
            }
        }
        self.received = rest.to_vec();
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Setup(_) => self.is_over = true,
            Order::Lease { milliseconds } => {
                self.lease_end = Instant::now().checked_add(Duration::from_millis(milliseconds));
            }
            Order::Start(start) => {
                let id = start.id;
                if let Err(error) = self.start(&start) {
                    let errno = sys::errno(&error);
                    Report::Refused { id, stage: "start".to_owned(), errno }.write(&mut self.out);
                }
            }
            Order::Kill { id, grace_ms } => {
                if let Some(command) = self.commands.get_mut(&id) {
                    command.terminate(Cause::Killed, grace_ms);
                }
            }
            Order::Input { id, bytes } => {
                if let Some(command) = self.commands.get_mut(&id) {
                    command.waiting_input.push_back(bytes);
                }
                self.write_input(id);
            }
            Order::OutputCredit { id, credit } => {
                if let Some(command) = self.commands.get_mut(&id) {
                    command.credit = command.credit.saturating_add(credit).min(WINDOW);
                }
            }
            Order::Reply { connection, bytes } => {
                if let Some(found) = self.connections.get_mut(&connection) {
                    found.reply(bytes);
                    self.transfer(connection, PollFlags::empty());
                }
            }
            Order::ConnectionCredit { connection, credit } => {
                if let Some(found) = self.connections.get_mut(&connection) {
                    found.grant(credit);
                }
            }
            Order::Hangup { connection } => {
                if let Some(found) = self.connections.get_mut(&connection) {
                    found.finish();
                    self.transfer(connection, PollFlags::empty());
                }
            }
        }
    }
}
