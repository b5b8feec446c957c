//! While a program works: its reports go into the journal, answers to the program.

use tokio::sync::mpsc;
use windlass_core::event::{Event, QuestionClosed, RunnerReported};
use windlass_core::id::QuestionId;
use windlass_core::question::{Question, QuestionKind};

use super::Program;
use crate::engine::{Error, question};
use crate::runner::{Asks, Ended, Job, Link, Order, REPORTS, Report, RunnerQuestion};
use crate::state::Asked;

/// Answers that may wait for a program.
const ORDERS: usize = 32;

impl Program<'_> {
    /// Passes reports into the journal and answers to the program, until it has ended.
    pub(super) async fn attend(
        &self,
        job: Job,
        sandbox: &dyn windlass_sandbox::Sandbox,
    ) -> Result<Ended, Error> {
        let (reports, mut received) = mpsc::channel(REPORTS);
        let (orders, order_list) = mpsc::channel(ORDERS);
        let running = self.runner.run(job, sandbox, Link { reports, orders: order_list });
        tokio::pin!(running);
        let mut mail = self.attempt.engine.tree.store().mailbox().changes();
        let mut open: Vec<(QuestionId, RunnerQuestion)> = Vec::new();
        let mut is_stopping = false;
        loop {
            let mut batch = Vec::new();
            tokio::select! {
                biased;
                count = received.recv_many(&mut batch, REPORTS) => {
                    if count > 0 {
                        self.note_reports(batch, &mut open, &orders).await?;
                    }
                    if count == 0 {
                        return Ok(running.await);
                    }
                }
                ended = &mut running => {
                    received.close();
                    while let Some(report) = received.recv().await {
                        batch.push(report);
                    }
                    self.note_reports(batch, &mut open, &orders).await?;
                    return Ok(ended);
                }
                changed = mail.changed() => changed?,
                () = self.attempt.halt.cancelled(), if !is_stopping => {
                    is_stopping = true;
                    // A full channel means that it has not read its last orders; it ends by its own limits then.
                    let _ = orders.try_send(Order::Stop);
                }
            }
            self.journal.drain(self.now()).await?;
            self.pass_answers(&orders, &mut open).await?;
        }
    }

    async fn pass_answers(
        &self,
        orders: &mpsc::Sender<Order>,
        open: &mut Vec<(QuestionId, RunnerQuestion)>,
    ) -> Result<(), Error> {
        let mut given = Vec::new();
        for (id, asked) in open.iter() {
            if let Some(text) = self.journal.answer_to(*id).await {
                given.push(*id);
                // It may have ended meanwhile.
                let _ = orders.send(Order::Answer { question: asked.id.clone(), text }).await;
            }
        }
        open.retain(|(id, _)| !given.contains(id));
        if !given.is_empty() {
            self.unblock().await?;
        }
        Ok(())
    }

    async fn note_reports(
        &self,
        reports: Vec<Report>,
        open: &mut Vec<(QuestionId, RunnerQuestion)>,
        orders: &mpsc::Sender<Order>,
    ) -> Result<(), Error> {
        let mut printed = String::new();
        let mut events = Vec::new();
        let (mut new, mut gone) = (Vec::new(), Vec::new());
        let mut note =
            |reported: RunnerReported| events.push(Event::RunnerReported(Box::new(reported)));
        for report in reports {
            match report {
                Report::Output(text) => printed.push_str(&text),
                Report::Session(session) => {
                    note(RunnerReported { session: Some(session), ..RunnerReported::default() });
                }
                Report::Activity(activity) => {
                    let activity = Some(activity.to_string());
                    note(RunnerReported { activity, ..RunnerReported::default() });
                }
                Report::Question(asked) => new.push(asked),
                Report::Withdrawn(id) => {
                    new.retain(|asked| asked.id != id);
                    gone.extend(open.extract_if(.., |(_, asked)| asked.id == id));
                }
                // Its end has the sum.
                Report::Usage(_) => {}
            }
        }
        if !printed.is_empty() {
            note(RunnerReported { output: Some(printed), ..RunnerReported::default() });
        }
        for (question, _) in &gone {
            let reason = "the program asks no more".to_owned();
            let closed = QuestionClosed { question: *question, reason };
            events.push(Event::QuestionClosed(closed));
        }
        if !events.is_empty() {
            self.journal.commit(self.now(), events).await?;
        }
        if !gone.is_empty() {
            self.unblock().await?;
        }
        for asked in new {
            if let Some(refusal) = self.refused_edit(&asked).await? {
                let order = Order::Answer { question: asked.id, text: format!("Deny: {refusal}") };
                // It may have ended meanwhile.
                let _ = orders.send(order).await;
                continue;
            }
            let id = self.question_id(&asked.fingerprint).await?;
            open.push((id, asked));
        }
        for (id, asked) in open.iter() {
            if self.journal.read(|_, run| run.asked(*id) == Asked::No).await {
                self.journal.ask(self.now(), in_inbox(*id, asked)).await?;
                self.block().await?;
            }
        }
        Ok(())
    }

    /// The same for the same question after a restart. One that is asked once more after its end is another one.
    async fn question_id(&self, fingerprint: &str) -> Result<QuestionId, Error> {
        let is_it = |question: &Question| {
            question.binding.as_ref().is_some_and(|binding| binding.arguments_hash == fingerprint)
        };
        let mut last = None;
        let mut asked = 0;
        for record in self.attempt.engine.tree.store().journal().of(self.journal.id())? {
            match record.event {
                Event::QuestionAsked(question) if is_it(&question) => {
                    (last, asked) = (Some(question.id), asked + 1);
                }
                _ => {}
            }
        }
        if let Some(last) = last
            && self.journal.read(|_, run| run.asked(last) == Asked::Open).await
        {
            return Ok(last);
        }
        let task = self.journal.id().to_string();
        Ok(QuestionId::derived(&task, &format!("{fingerprint} {asked}")))
    }
}

/// A program's question as the inbox shows it.
fn in_inbox(id: QuestionId, asked: &RunnerQuestion) -> Question {
    let kind = match asked.asks {
        Asks::Permission => QuestionKind::Permission,
        Asks::Choice | Asks::Confirm | Asks::Text => QuestionKind::Runner,
    };
    Question {
        kind,
        options: asked.options.clone(),
        context: asked.context.clone(),
        // After a restart the same question is known by this.
        binding: Some(windlass_core::question::Binding {
            arguments_hash: asked.fingerprint.clone(),
            cwd: String::new(),
            files: Vec::new(),
        }),
        ..question(id, asked.question.clone())
    }
}
