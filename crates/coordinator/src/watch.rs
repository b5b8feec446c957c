//! Following a task: its events as they are committed, and previews of what is coming.

use std::collections::VecDeque;

use tokio::sync::broadcast;
use windlass_agent::Preview;
use windlass_core::event::{Event, Record};
use windlass_core::id::TaskId;
use windlass_store::{Changes, Store};

use crate::{Coordinator, Error};

/// Events read at once while following.
const PAGE: usize = 256;

/// Something to show.
#[derive(Clone, Debug)]
pub enum Update {
    /// It happened.
    Event(Box<Record>),
    /// It is happening; not journaled, and void if the reply starts anew.
    Preview(Preview),
}

/// A task as it goes on, or a task with all that work for it.
pub struct Following {
    store: Store,
    task: TaskId,
    /// Whose events are read, the task's own first.
    journals: Vec<Followed>,
    below: bool,
    ready: VecDeque<Record>,
    changes: Changes,
    previews: broadcast::Receiver<Preview>,
}

/// One journal, read up to here.
struct Followed {
    task: TaskId,
    seq: u64,
    /// Nothing more will be written there.
    over: bool,
}

impl Followed {
    fn new(task: TaskId, seq: u64) -> Self {
        Self { task, seq, over: false }
    }
}

impl Coordinator {
    /// Follows a task from behind event `seq`; 0 is the beginning.
    pub fn follow(&self, task: TaskId, seq: u64) -> Following {
        Following {
            store: self.store.clone(),
            task,
            journals: vec![Followed::new(task, seq)],
            below: false,
            ready: VecDeque::new(),
            changes: self.store.changes(),
            previews: self.previews.subscribe(),
        }
    }

    /// Follows a task from behind event `seq` and, from here on, every sub-agent below it. What a sub-agent did comes
    /// before the event that tells of its end.
    pub fn follow_all(&self, task: TaskId, seq: u64) -> Result<Following, Error> {
        let mut following = self.follow(task, seq);
        following.below = true;
        let mut at = 0;
        while let Some(above) = following.journals.get(at) {
            for spawn in self.state(above.task)?.sub_agents.into_values() {
                let seen = self.store.tasks().get(spawn.task_id)?.map_or(0, |row| row.last_seq);
                following.journals.push(Followed::new(spawn.task_id, seen));
            }
            at += 1;
        }
        Ok(following)
    }
}

impl Following {
    /// The next thing to show; waits for it.
    pub async fn next(&mut self) -> Result<Update, Error> {
        loop {
            self.changes.tick();
            if let Some(record) = self.committed()? {
                return Ok(Update::Event(Box::new(record)));
            }
            tokio::select! {
                changed = self.changes.changed() => changed?,
                preview = self.previews.recv() => match preview {
                    Ok(preview) if preview.task == self.task => return Ok(Update::Preview(preview)),
                    // Another task's, or too many at once: previews are not promises.
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
                },
            }
        }
    }

    /// The next event that is committed already, without waiting.
    pub fn committed(&mut self) -> Result<Option<Record>, Error> {
        if self.ready.is_empty() {
            self.read()?;
        }
        let next = self.ready.pop_front();
        if let Some(record) = &next {
            self.took(record);
        }
        Ok(next)
    }

    /// Reads from above downwards, so that what is told of a sub-agent above was written below already, and gives
    /// it from below upwards.
    fn read(&mut self) -> Result<(), Error> {
        let mut pages = Vec::new();
        for journal in &self.journals {
            pages.push(self.store.journal().after(journal.task, journal.seq, PAGE)?);
        }
        let mut empty = pages.iter().map(Vec::is_empty);
        self.journals.retain(|journal| !(empty.next().unwrap_or(false) && journal.over));
        self.ready.extend(pages.into_iter().rev().flatten());
        Ok(())
    }

    fn took(&mut self, record: &Record) {
        if let Some(journal) = self.journals.iter_mut().find(|journal| journal.task == record.task)
        {
            journal.seq = record.seq;
        }
        match &record.event {
            Event::SubAgentSpawn(spawn) if self.below => {
                self.journals.push(Followed::new(spawn.task_id, 0));
            }
            Event::SubAgentComplete(complete) => {
                let ended = self.journals.iter_mut().filter(|one| one.task == complete.task_id);
                ended.for_each(|journal| journal.over = true);
            }
            _ => {}
        }
    }
}
